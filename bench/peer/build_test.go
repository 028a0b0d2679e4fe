package main

import (
	"archive/tar"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Only llama.cpp's files leave the archive, and only to where they belong.
func TestExtract(t *testing.T) {
	work := t.TempDir()
	archive := filepath.Join(work, "sdist.tar.gz")
	f, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	out := tar.NewWriter(z)
	for _, name := range []string{inside + "src/a.cpp", "llama_cpp_python-" + release + "/setup.py", inside + "../escaped", inside + "run.sh"} {
		mode := int64(0o644)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o755
		}
		out.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(name)), Typeflag: tar.TypeReg})
		out.Write([]byte(name))
	}
	out.WriteHeader(&tar.Header{Name: inside + "link", Typeflag: tar.TypeSymlink, Linkname: "/etc"})
	out.Close()
	z.Close()
	f.Close()

	if err := check(archive); err == nil || !strings.Contains(err.Error(), "expected "+sum) {
		t.Errorf("check of another archive: %v", err)
	}
	dir := llama{work}.source()
	if err := extract(archive, dir); err != nil {
		t.Fatal(err)
	}
	var got []string
	filepath.Walk(work, func(path string, info os.FileInfo, _ error) error {
		if !info.IsDir() && path != archive {
			rel, _ := filepath.Rel(work, path)
			got = append(got, filepath.ToSlash(rel)+" "+info.Mode().String())
		}
		return nil
	})
	if want := release + "/llama.cpp/run.sh -rwxr-xr-x, " + release + "/llama.cpp/src/a.cpp -rw-r--r--"; strings.Join(got, ", ") != want {
		t.Errorf("extracted %v, want %s", got, want)
	}
	os.Remove(archive)
	if err := extract(archive, dir); err != nil {
		t.Errorf("what is there is not extracted again: %v", err)
	}
	for _, s := range settings { // of another release, neither source nor builds are there
		if build := (llama{work}).build(s); filepath.Dir(build) != filepath.Dir(dir) {
			t.Errorf("%s is built in %s, and its source is in %s", s.name, build, dir)
		}
	}
}
