package pull

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// checkPath accepts a relative, slash-separated path that means the same file on every system: no way up or out,
// nothing Windows reads specially (drives, streams, devices, trailing dots), nothing a terminal would act on.
func checkPath(p string) error {
	if len(p) > 1024 {
		return fmt.Errorf("path of %d bytes is longer than 1024", len(p))
	}
	for name := range strings.SplitSeq(p, "/") {
		if err := checkFileName(name); err != nil {
			return fmt.Errorf("path %q: %w", p, err)
		}
	}
	return nil
}

// checkFileName accepts one element of such a path.
func checkFileName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("empty name")
	case name == "." || name == "..":
		return fmt.Errorf("name %q would leave its folder", name)
	case len(name) > 255:
		return fmt.Errorf("name of %d bytes is longer than 255", len(name))
	case !utf8.ValidString(name):
		return fmt.Errorf("name %q is not UTF-8", name)
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return fmt.Errorf("name %q ends in a dot or a space, which Windows drops", name)
	}
	for _, r := range name {
		if !unicode.IsPrint(r) || strings.ContainsRune(`/\:*?"<>|`, r) {
			return fmt.Errorf("name %q holds %q, which is not allowed in file names", name, r)
		}
	}
	if isWindowsDevice(name) {
		return fmt.Errorf("name %q is a device on Windows", name)
	}
	return nil
}

// isWindowsDevice reports names such as NUL, con.gguf and Com1.txt: Windows opens a device for them whatever the
// extension.
func isWindowsDevice(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	stem = strings.ToUpper(strings.TrimRight(stem, " "))
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	port, ok := strings.CutPrefix(stem, "COM")
	if !ok {
		port, ok = strings.CutPrefix(stem, "LPT")
	}
	return ok && utf8.RuneCountInString(port) == 1 && strings.ContainsAny(port, "0123456789¹²³")
}

// folderName turns any model name into the name of its folder: a part for people and a hash that tells apart names
// which look alike, also on file systems that ignore case.
func folderName(name string) string {
	slug := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, name)
	slug = strings.Trim(slug[:min(len(slug), 64)], "-")
	sum := sha256.Sum256([]byte(name))
	return slug + "-" + hex.EncodeToString(sum[:6])
}

// isHex reports whether s is n lower-case hexadecimal digits: the form of digests, commits and blob names.
func isHex(s string, n int) bool {
	if len(s) != n {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// printable keeps what a server or a tool said fit for one line of an error: no control characters, not too long.
func printable(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if r := []rune(s); len(r) > 240 {
		s = string(r[:240]) + "…"
	}
	return s
}

// ByteSize prints a size in decimal units, as disks and download pages do.
func ByteSize(n int64) string {
	const units = "kMGTPE"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, u := float64(n)/1000, 0
	for v >= 999.95 && u < len(units)-1 {
		v, u = v/1000, u+1
	}
	return fmt.Sprintf("%.1f %cB", v, units[u])
}
