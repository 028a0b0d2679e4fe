package pull

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// A Kind says where a [Ref] points.
type Kind int

const (
	KindBuiltin Kind = iota + 1 // a name of the table in builtin.go
	KindHub                     // a Hugging Face repository, or one file of it
	KindPackage                 // a GGUF file inside a Python package
	KindURL                     // a GGUF file at an https address
)

// A Ref is a checked model name. Every field is safe to build paths, addresses and command lines from.
type Ref struct {
	Kind Kind

	Name string // builtin

	Repo     string // hub: "org/repo"
	Revision string // hub: branch, tag or commit; "" is main

	Package string // package: name as given
	Version string // package: exact version; "" is the newest

	File string // hub and package: the .gguf file wanted, slash-separated; "" lets the source decide

	URL    string // url: as given, without the fragment
	SHA256 string // url: 64 hex digits from #sha256=, or ""
}

const maxRef = 4096 // signed addresses run to one or two thousand bytes

var (
	nameForm    = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*(:[a-z0-9][a-z0-9._-]*)?$`)
	repoForm    = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?$`) // each half; "--" separates them in the cache
	packageForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)   // PEP 508
	versionForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.!+_-]*[A-Za-z0-9])?$`)
)

// ParseRef reads a model name. Its errors say what is wrong with the name and what a right one looks like.
func ParseRef(s string) (Ref, error) {
	if len(s) > maxRef {
		return Ref{}, fmt.Errorf("model name of %d bytes is longer than %d", len(s), maxRef)
	}
	scheme, rest, _ := strings.Cut(s, ":")
	var r Ref
	var err error
	switch {
	case s == "":
		err = errors.New("model name is empty")
	case scheme == "hf":
		r, err = parseHub(rest)
	case scheme == "pip":
		r, err = parsePackage(rest)
	case scheme == "https" || scheme == "http":
		r, err = parseURL(s)
	case nameForm.MatchString(s):
		if _, ok := builtin(s); !ok {
			err = fmt.Errorf("no such built-in name (there are %s); otherwise name a source: hf:org/repo, pip:package or https://…/file.gguf", builtinNames())
		}
		r = Ref{Kind: KindBuiltin, Name: s}
	case strings.Count(s, "/") == 1 && !strings.ContainsAny(s, `:\`):
		err = fmt.Errorf("neither a built-in name nor a source; for the Hugging Face repository write hf:%s", s)
	default:
		err = fmt.Errorf("not a model name; the forms are %s, hf:org/repo[@revision][/file.gguf], pip:package[==version][/file.gguf] and https://…/file.gguf", builtinNames())
	}
	if err != nil {
		return Ref{}, fmt.Errorf("model %q: %w", printable(s), err)
	}
	return r, nil
}

// String is the name under which the model is kept and listed: ParseRef(r.String()) means the same model.
// Passwords and queries, which carry access rights, are not part of it.
func (r Ref) String() string {
	switch r.Kind {
	case KindHub:
		s := "hf:" + r.Repo
		if r.Revision != "" {
			s += "@" + url.PathEscape(r.Revision)
		}
		return s + withSlash(r.File)
	case KindPackage:
		s := "pip:" + r.Package
		if r.Version != "" {
			s += "==" + r.Version
		}
		return s + withSlash(r.File)
	case KindURL:
		u, err := url.Parse(r.URL)
		if err != nil {
			panic("pull: a Ref that ParseRef did not make: " + err.Error())
		}
		u.User, u.RawQuery, u.ForceQuery = nil, "", false
		if r.SHA256 != "" {
			u.Fragment = "sha256=" + r.SHA256
		}
		return u.String()
	}
	return r.Name
}

func withSlash(file string) string {
	if file == "" {
		return ""
	}
	return "/" + file
}

// parseHub reads org/repo[@revision][/file.gguf].
func parseHub(s string) (Ref, error) {
	org, s, _ := strings.Cut(s, "/")
	s, file, named := strings.Cut(s, "/")
	repo, rev, pinned := strings.Cut(s, "@")
	for _, half := range []string{org, repo} {
		if !repoForm.MatchString(half) || len(half) > 96 || strings.Contains(half, "--") || strings.Contains(half, "..") {
			return Ref{}, fmt.Errorf("%q is no Hugging Face user or repository name; the form is hf:org/repo[@revision][/file.gguf]", printable(half))
		}
	}
	r := Ref{Kind: KindHub, Repo: org + "/" + repo, File: file}
	if pinned {
		// A revision with slashes (refs/pr/1) is written as in the hub's own addresses: refs%2Fpr%2F1.
		var err error
		if r.Revision, err = url.PathUnescape(rev); err != nil {
			return Ref{}, fmt.Errorf("revision %q: %w", printable(rev), err)
		}
		if err := checkPath(r.Revision); err != nil || strings.ContainsAny(r.Revision, "@# ") {
			return Ref{}, fmt.Errorf("revision %q is no branch, tag or commit", printable(r.Revision))
		}
		if r.Revision == "main" {
			r.Revision = ""
		}
	}
	if named {
		var err error
		r.File, err = checkModelFile(file)
		return r, err
	}
	return r, nil
}

// parsePackage reads package[==version][/file.gguf].
func parsePackage(s string) (Ref, error) {
	s, file, named := strings.Cut(s, "/")
	name, version, pinned := strings.Cut(s, "==")
	if !packageForm.MatchString(name) || len(name) > 128 {
		return Ref{}, fmt.Errorf("%q is no Python package name; the form is pip:package[==version][/file.gguf]", printable(name))
	}
	if pinned && (!versionForm.MatchString(version) || len(version) > 64) {
		return Ref{}, fmt.Errorf("%q is no package version; the form is pip:package==1.2.3", printable(version))
	}
	r := Ref{Kind: KindPackage, Package: name, Version: version, File: file}
	if named {
		var err error
		r.File, err = checkModelFile(file)
		return r, err
	}
	return r, nil
}

// checkModelFile accepts the path of a GGUF file and returns it, or the first split of the set it belongs to.
func checkModelFile(file string) (string, error) {
	if err := checkPath(file); err != nil {
		return "", err
	}
	if !strings.HasSuffix(strings.ToLower(file), ".gguf") {
		return "", fmt.Errorf("file %q is not a .gguf file: only those hold a whole model", file)
	}
	set, err := splits(file)
	if err != nil {
		return "", err
	}
	return set[0], nil
}

// parseURL reads an address and turns pages and files of the Hugging Face site into references to it.
func parseURL(s string) (Ref, error) {
	u, err := url.Parse(s)
	if err != nil {
		return Ref{}, errors.New("not a valid address")
	}
	if h := strings.ToLower(u.Host); h == "huggingface.co" || h == "hf.co" {
		return parseHubPage(u)
	}
	r := Ref{Kind: KindURL}
	if u.Fragment != "" {
		sum, ok := strings.CutPrefix(u.Fragment, "sha256=")
		r.SHA256 = strings.ToLower(sum)
		if !ok || !isHex(r.SHA256, 64) {
			return Ref{}, fmt.Errorf("fragment %q is not sha256= and 64 hexadecimal digits", printable(u.Fragment))
		}
	}
	u.Fragment, u.RawFragment = "", ""
	switch {
	case u.Hostname() == "":
		return Ref{}, errors.New("the address names no host")
	case u.Scheme == "http" && r.SHA256 == "" && !isLoopback(u.Hostname()):
		return Ref{}, errors.New("over http nothing shows whether the file arrived unchanged: use https or append #sha256=…")
	}
	// The last element names the file on disk; what precedes it is the server's business.
	dir, given := path.Split(u.Path)
	first, err := checkModelFile(given)
	if err != nil {
		return Ref{}, fmt.Errorf("%w; for a model in several files use hf:org/repo", err)
	}
	if splitForm.MatchString(first) && r.SHA256 != "" {
		return Ref{}, errors.New("#sha256= covers one file, and this model is split into several")
	}
	if first != given {
		u.Path, u.RawPath = dir+first, ""
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	r.URL = u.String()
	return r, nil
}

// parseHubPage reads the addresses people copy from the site: org/repo, org/repo/tree/REV, org/repo/{blob,resolve}/REV/FILE.
func parseHubPage(u *url.URL) (Ref, error) {
	parts := strings.Split(strings.Trim(u.EscapedPath(), "/"), "/")
	switch {
	case len(parts) == 2:
		return parseHub(parts[0] + "/" + parts[1])
	case len(parts) == 4 && parts[2] == "tree":
		return parseHub(parts[0] + "/" + parts[1] + "@" + parts[3])
	case len(parts) > 4 && (parts[2] == "blob" || parts[2] == "resolve"):
		file, err := url.PathUnescape(strings.Join(parts[4:], "/"))
		if err != nil {
			return Ref{}, err
		}
		return parseHub(parts[0] + "/" + parts[1] + "@" + parts[3] + "/" + file)
	}
	return Ref{}, errors.New("not the address of a model or of a file in one; the form is https://huggingface.co/org/repo")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

var splitForm = regexp.MustCompile(`^(.*)-([0-9]{5})-of-([0-9]{5})\.gguf$`)

const maxSplits = 1024

// splits returns the files that make up a model, given one of them: llama.cpp cuts large GGUF files into
// name-00001-of-00003.gguf and so on. A file that is no split stands alone.
func splits(file string) ([]string, error) {
	m := splitForm.FindStringSubmatch(file)
	if m == nil {
		return []string{file}, nil
	}
	total, err := strconv.Atoi(m[3])
	if at, _ := strconv.Atoi(m[2]); err != nil || total < 1 || total > maxSplits || at < 1 || at > total {
		return nil, fmt.Errorf("file %q: part %s of %s; at most %d parts, counted from 1", file, m[2], m[3], maxSplits)
	}
	files := make([]string, total)
	for i := range files {
		files[i] = fmt.Sprintf("%s-%05d-of-%05d.gguf", m[1], i+1, total)
	}
	return files, nil
}
