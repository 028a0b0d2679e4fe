package pull

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever is accepted names itself and stays inside the store.
func FuzzParseRef(f *testing.F) {
	for _, seed := range []string{"smollm2:135m", "hf:org/repo@refs%2Fpr%2F1/a/x.gguf", "pip:p==1.0/x.gguf", "https://u:p@h:1/a%2f/x.gguf?q#sha256=" + zeros, "https://hf.co/a/b/blob/main/x.gguf", "hf:../..", "https://h/..%2f.gguf"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ref, err := ParseRef(s)
		if err != nil {
			return
		}
		again, err := ParseRef(ref.String())
		if err != nil || again.String() != ref.String() {
			t.Fatalf("%q is %q, which reads as %q, %v", s, ref, again, err)
		}
		if ref.File != "" && !filepath.IsLocal(filepath.FromSlash(ref.File)) || ref.Revision != "" && !filepath.IsLocal(filepath.FromSlash(ref.Revision)) || strings.Count(ref.Repo, "/") > 1 {
			t.Fatalf("%q has the parts %+v", s, ref)
		}
	})
}

// Every name and digest of a list that is accepted may become part of a path.
func FuzzParseListing(f *testing.F) {
	f.Add([]byte(`{"sha":"` + testCommit + `","siblings":[{"rfilename":"a/b","size":3,"blobId":"` + testCommit + `","lfs":{"sha256":"` + zeros + `","size":3}},{"rfilename":"../x"}]}`))
	f.Add([]byte(`{"sha":7}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		repo, err := parseListing(b)
		if err != nil {
			return
		}
		for _, file := range repo.Files {
			if !isHex(repo.Commit, 40) || !filepath.IsLocal(filepath.FromSlash(file.Path)) || file.blob() != "" && !isHex(file.blob(), 64) && !isHex(file.blob(), 40) || file.Size < -1 {
				t.Fatalf("accepted %+v at %q", file, repo.Commit)
			}
		}
	})
}

// Archives are read without a panic, whatever they are.
func FuzzWheel(f *testing.F) {
	f.Add([]byte("PK\x05\x06" + strings.Repeat("\x00", 18)))
	var seed bytes.Buffer
	z := zip.NewWriter(&seed)
	for name, body := range map[string]string{
		"p/x.gguf": "GGUFxyz", "p/y.gguf.part00": "GGUF", "p/SHA256SUMS": zeros + "  x.gguf\n",
		"p-1.dist-info/METADATA": "License: MIT\nRequires-Dist: p-part1 (==1)\n\n", "p-1.dist-info/RECORD": "p/x.gguf,sha256=AAAA,7\n",
	} {
		w, err := z.Create(name)
		if err != nil {
			f.Fatal(err)
		}
		io.WriteString(w, body)
	}
	z.Close()
	f.Add(seed.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "p-1-py3-none-any.whl")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		w, err := openWheel(path)
		if err != nil {
			return
		}
		defer w.Close()
		w.metadata()
		w.chunks()
		w.summed("x.gguf")
		for _, g := range w.ggufs("") {
			if p := (piece{w, g}); p.check() == nil && g.UncompressedSize64 < 1<<20 {
				p.unpack(&strings.Builder{})
			}
		}
	})
}
