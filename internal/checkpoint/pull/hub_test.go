package pull

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func hubStore(t *testing.T, h *fakeHub) *Store {
	s := testStore(t)
	s.Endpoint = h.URL
	return s
}

// The cache looks as huggingface_hub leaves it, and holds what a safetensors model needs: no copies of the weights in
// other formats, no code.
func TestPullHubLayout(t *testing.T) {
	h := newHub(t, safetensorsRepo())
	s := hubStore(t, h)
	m := mustPull(t, s, "hf:org/repo")
	snapshot := "snapshots/" + testCommit
	var want []string
	for _, name := range []string{
		"LICENSE", "README.md", "chat_template.jinja", "config.json", "generation_config.json", "model-00001-of-00002.safetensors",
		"model-00002-of-00002.safetensors", "model.safetensors.index.json", "tokenizer.json", "tokenizer_config.json",
	} {
		blob := gitOID(h.files[name])
		if isLFS(name) {
			blob = sha(h.files[name])
		}
		want = append(want, "blobs/"+blob, snapshot+"/"+name+" -> ../../blobs/"+blob)
		wantFile(t, filepath.Join(m.Path, name), h.files[name])
	}
	want = append(want, "refs/main")
	slices.Sort(want)
	folder := filepath.Join(s.HubCache, "models--org--repo")
	got := tree(t, folder)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cache (-want +got):\n%s", diff)
	}
	wantFile(t, filepath.Join(folder, "refs", "main"), []byte(testCommit))
	if m.Path != filepath.Join(folder, filepath.FromSlash(snapshot)) || m.Name != "hf:org/repo" || m.Licence != "apache-2.0" {
		t.Errorf("model is %+v", m)
	}
}

// A branch is looked up again, a commit is not; files that are there are never fetched again.
func TestPullHubTwice(t *testing.T) {
	h := newHub(t, safetensorsRepo())
	s := hubStore(t, h)
	mustPull(t, s, "hf:org/repo")
	listing := "/api/models/org/repo/revision/"
	mustPull(t, s, "hf:org/repo")
	if n := len(h.gets(listing + "main")); n != 2 {
		t.Errorf("main was looked up %d times, want 2", n)
	}
	mustPull(t, s, "hf:org/repo@"+testCommit)
	if n := len(h.gets(listing + testCommit)); n != 0 {
		t.Errorf("a commit that is there was looked up %d times", n)
	}
	for name := range h.files {
		if n := len(h.fileGets(name)); n > 1 {
			t.Errorf("%s was fetched %d times", name, n)
		}
	}
	s.Offline = true
	mustPull(t, s, "hf:org/repo")
	_, err := s.Pull(context.Background(), "hf:org/other", nil)
	wantError(t, err, "HF_HUB_OFFLINE")
}

// The size of a model is that of the weights that are loaded, not of copies beside them that another tool fetched.
func TestSnapshotCountsWeightsOnce(t *testing.T) {
	s := testStore(t)
	snapshot := s.snapshot("org/repo", testCommit)
	for _, name := range []string{"config.json", "model.safetensors", "consolidated.safetensors"} {
		write(t, filepath.Join(snapshot, name), make([]byte, 100))
	}
	if m, ok := s.Find("hf:org/repo@" + testCommit); !ok || m.Size != 200 {
		t.Errorf("found %+v, %v", m, ok)
	}
}

// What Python tools downloaded is found without a network, and only what is missing is fetched.
func TestHubCacheOfPython(t *testing.T) {
	h := newHub(t, safetensorsRepo())
	s := hubStore(t, h)
	folder := filepath.Join(s.HubCache, "models--org--repo")
	write(t, filepath.Join(folder, "refs", "main"), []byte(testCommit))
	put := func(name string) {
		b := h.files[name]
		write(t, filepath.Join(folder, "blobs", sha(b)), b)
		write(t, filepath.Join(folder, "snapshots", testCommit, ".keep"), nil)
		if err := os.Symlink("../../blobs/"+sha(b), filepath.Join(folder, "snapshots", testCommit, name)); err != nil {
			t.Fatal(err)
		}
	}
	put("config.json")
	put("model-00001-of-00002.safetensors")
	if m, ok := s.Find("hf:org/repo"); ok {
		t.Fatalf("a model without index and second shard is found: %+v", m)
	}
	put("model.safetensors.index.json")
	if m, ok := s.Find("hf:org/repo"); ok {
		t.Fatalf("a model without its second shard is found: %+v", m)
	}
	put("model-00002-of-00002.safetensors")
	if _, ok := s.Find("hf:org/repo"); !ok {
		t.Fatal("a whole model is not found")
	}
	if len(h.log)+len(h.cdn.log) > 0 {
		t.Error("Find asked the network")
	}
	// Content that only another revision shows so far.
	write(t, filepath.Join(folder, "blobs", sha(h.files["tokenizer.json"])), h.files["tokenizer.json"])
	m := mustPull(t, s, "hf:org/repo")
	wantFile(t, filepath.Join(m.Path, "tokenizer.json"), h.files["tokenizer.json"])
	for _, name := range []string{"config.json", "tokenizer.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"} {
		if n := len(h.fileGets(name)); n != 0 {
			t.Errorf("%s was fetched although it is there", name)
		}
	}
}

// The token goes to the hub and to nobody else, whatever it redirects to; neither does the signed address go on.
func TestTokenStaysAtHub(t *testing.T) {
	h := newHub(t, map[string][]byte{"config.json": []byte("{}"), "model.safetensors": ggufBytes(1, 1000)})
	h.token = "hf_secret"
	s := hubStore(t, h)
	s.Token = "hf_secret"
	mustPull(t, s, "hf:org/repo")
	for _, r := range h.log {
		if r.Header.Get("Authorization") != "Bearer hf_secret" {
			t.Errorf("%s %s came without the token", r.Method, r.URL)
		}
	}
	if len(h.cdn.log) == 0 {
		t.Fatal("nothing came from the content network")
	}
	for _, r := range h.cdn.log {
		if len(r.Header["Authorization"])+len(r.Header["Referer"]) > 0 {
			t.Errorf("%s came with %v", r.URL, r.Header)
		}
	}
}

func TestRedirectToHTTPRefused(t *testing.T) {
	via, _ := http.NewRequest(http.MethodGet, "https://hub/x", nil)
	for _, to := range []string{"http://hub/x", "http://cdn/x"} {
		req, _ := http.NewRequest(http.MethodGet, to, nil)
		req.Response = &http.Response{}
		if err := checkRedirect(req, []*http.Request{via}); err == nil {
			t.Errorf("redirect to %s is followed", to)
		}
	}
}

func TestHubRefusals(t *testing.T) {
	page := func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<html>Blocked by company policy</html>")
		return true
	}
	withoutConfig := map[string][]byte{"model.safetensors": ggufBytes(1, 1000)}
	for _, c := range []struct {
		name, model string
		files       map[string][]byte
		gated       string
		token       string
		hook        func(http.ResponseWriter, *http.Request) bool
		why         []string
	}{
		{name: "gated, no token", gated: "t", why: []string{"gated", "/org/repo", "HF_TOKEN"}},
		{name: "gated, no access", gated: "t", token: "other", why: []string{"has no access yet", "/org/repo"}},
		{name: "no such repository", model: "hf:org/none", why: []string{"no such repository", "/org/none", "HF_TOKEN"}},
		{name: "no such revision", model: "hf:org/repo@v9", why: []string{`no revision "v9"`}},
		{name: "no such file", model: "hf:org/repo/x.gguf", why: []string{"has no file x.gguf", "hf:org/repo/model-q4_0.gguf (40.0 kB)"}},
		{name: "block page", hook: page, why: []string{"web page"}},
		{name: "not JSON", hook: func(w http.ResponseWriter, r *http.Request) bool { io.WriteString(w, "hello"); return true }, why: []string{"file list"}},
		{name: "no weights", files: map[string][]byte{"config.json": []byte("{}"), "pytorch_model.bin": {1}}, why: []string{"neither .safetensors nor .gguf"}},
		{name: "no config", files: withoutConfig, why: []string{"no file config.json"}},
		{name: "several GGUF files", files: map[string][]byte{
			"a-Q8_0.gguf": ggufBytes(1, 2000), "a-Q4_0.gguf": ggufBytes(2, 1000), "mmproj-a.gguf": ggufBytes(3, 10),
			"big/b-00001-of-00002.gguf": ggufBytes(4, 1500), "big/b-00002-of-00002.gguf": ggufBytes(5, 1500),
		}, why: []string{"has 3 GGUF files", "hf:org/repo/a-Q4_0.gguf (1.0 kB), hf:org/repo/a-Q8_0.gguf (2.0 kB), hf:org/repo/big/b-00001-of-00002.gguf (3.0 kB)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.files == nil {
				c.files = safetensorsRepo()
			}
			h := newHub(t, c.files)
			h.token = c.gated
			if c.hook != nil {
				h.hook = c.hook
			}
			s := hubStore(t, h)
			s.Token = c.token
			if c.model == "" {
				c.model = "hf:org/repo"
			}
			_, err := s.Pull(context.Background(), c.model, nil)
			wantError(t, err, append(c.why, c.model)...)
			if m, ok := s.Find(c.model); ok {
				t.Errorf("%+v is found", m)
			}
		})
	}
}

func TestPullHubGGUF(t *testing.T) {
	files := map[string][]byte{
		"README.md": []byte("---\nlicense: other\nlicense_name: gemma\n---\n"), "config.json": []byte("{}"),
		"q/x-00001-of-00002.gguf": ggufBytes(1, 1000), "q/x-00002-of-00002.gguf": ggufBytes(2, 2000), "y.gguf": ggufBytes(3, 500),
	}
	h := newHub(t, files)
	s := hubStore(t, h)
	m := mustPull(t, s, "hf:org/repo@v1/q/x-00001-of-00002.gguf")
	wantFile(t, m.Path, files["q/x-00001-of-00002.gguf"])
	wantFile(t, filepath.Join(filepath.Dir(m.Path), "x-00002-of-00002.gguf"), files["q/x-00002-of-00002.gguf"])
	if m.Name != "hf:org/repo@v1/q/x-00001-of-00002.gguf" || m.Size != 3000 || m.Licence != "gemma" || m.Files[1].SHA256 != sha(files["q/x-00002-of-00002.gguf"]) {
		t.Errorf("model is %+v", m)
	}
	if len(h.fileGets("y.gguf"))+len(h.fileGets("config.json")) > 0 {
		t.Error("files were fetched that nobody asked for")
	}
}

// A repository with one GGUF file leaves no choice, so the file need not be named.
func TestPullHubOnlyGGUF(t *testing.T) {
	h := newHub(t, map[string][]byte{"x.gguf": ggufBytes(1, 1000), "mmproj-x.gguf": ggufBytes(2, 1000)})
	s := hubStore(t, h)
	m := mustPull(t, s, "hf:org/repo")
	if m.Name != "hf:org/repo/x.gguf" {
		t.Errorf("model is %+v", m)
	}
	if again, ok := s.Find("hf:org/repo"); !ok || again.Path != m.Path {
		t.Errorf("Find = %+v, %v", again, ok)
	}
}

// The list is believed only as far as names and digests have their form, and files only as far as they match it.
func TestHostileListing(t *testing.T) {
	sibling := func(l map[string]any, name string) map[string]any {
		for _, s := range l["siblings"].([]any) {
			if s := s.(map[string]any); s["rfilename"] == name {
				return s
			}
		}
		panic(name)
	}
	for _, c := range []struct {
		name string
		edit func(l map[string]any)
		why  string // "" the pull works
	}{
		{"commit is a path", func(l map[string]any) { l["sha"] = "../../../../evil" }, "commit"},
		{"commit is missing", func(l map[string]any) { delete(l, "sha") }, "commit"},
		{"names are paths", func(l map[string]any) {
			for _, name := range []string{"../../../evil.json", "/evil.json", `..\evil.json`, "a/../../evil.json", "C:evil.json", "NUL.json"} {
				l["siblings"] = append(l["siblings"].([]any), map[string]any{"rfilename": name, "size": 1, "blobId": gitOID([]byte("x"))})
			}
		}, ""},
		{"a name is there twice", func(l map[string]any) { l["siblings"] = append(l["siblings"].([]any), sibling(l, "config.json")) }, ""},
		{"git digest is a path", func(l map[string]any) { sibling(l, "config.json")["blobId"] = "../../../../evil" }, ""}, // asked from the file's header
		{"digest is a path", func(l map[string]any) {
			sibling(l, "tokenizer.json")["lfs"] = map[string]any{"sha256": "../../../../evil", "size": 12}
		}, ""},
		{"wrong git digest", func(l map[string]any) { sibling(l, "config.json")["blobId"] = testCommit }, "config.json"},
		{"wrong digest", func(l map[string]any) {
			sibling(l, "model-00002-of-00002.safetensors")["lfs"] = map[string]any{"sha256": zeros, "size": 50_000}
		}, "expected " + zeros},
		{"wrong size", func(l map[string]any) {
			f := sibling(l, "model-00002-of-00002.safetensors")
			f["lfs"].(map[string]any)["size"] = 49_999
		}, "offers 50000 bytes"},
		{"negative size", func(l map[string]any) { sibling(l, "config.json")["size"] = -5 }, ""},
		{"index is missing a shard", func(l map[string]any) {
			sibling(l, "model-00002-of-00002.safetensors")["rfilename"] = "other.safetensors"
		}, "no file model-00002-of-00002.safetensors"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHub(t, safetensorsRepo())
			h.list = c.edit
			s := hubStore(t, h)
			_, err := s.Pull(context.Background(), "hf:org/repo", nil)
			if c.why != "" {
				wantError(t, err, c.why)
				if _, ok := s.Find("hf:org/repo"); ok {
					t.Error("a model is found")
				}
			} else if err != nil {
				t.Error(err)
			}
			inside := "models--org--repo/"
			for _, file := range tree(t, filepath.Dir(s.HubCache)) {
				if !strings.HasPrefix(file, "hub/"+inside) && !strings.HasPrefix(file, "hub/.locks/"+inside) || strings.Contains(file, "evil") {
					t.Errorf("%s was written", file)
				}
			}
		})
	}
}

func TestHostileIndex(t *testing.T) {
	for _, index := range []string{
		`{"weight_map":{"a":"../../../../etc/passwd"}}`, `{"weight_map":{"a":"/etc/passwd"}}`, `{"weight_map":{}}`, `{}`, `[]`, `{"weight_map":{"a":7}}`,
		`{"weight_map":{"a":"config.json/../x"}}`, strings.Repeat(`{"weight_map":`, 20_000),
	} {
		files := safetensorsRepo()
		files[indexName] = []byte(index)
		s := hubStore(t, newHub(t, files))
		_, err := s.Pull(context.Background(), "hf:org/repo", nil)
		wantError(t, err, indexName)
	}
	// The same in a cache that somebody else filled: files outside are no part of a model.
	s := testStore(t)
	snapshot := s.snapshot("org/repo", testCommit)
	write(t, filepath.Join(snapshot, "config.json"), []byte("{}"))
	write(t, filepath.Join(snapshot, indexName), []byte(`{"weight_map":{"a":"../../../../secret"}}`))
	write(t, filepath.Join(filepath.Dir(s.HubCache), "secret"), []byte("data"))
	if m, ok := s.Find("hf:org/repo@" + testCommit); ok {
		t.Errorf("found %+v", m)
	}
}

// Mirrors that list neither sizes nor digests are asked for the header of each file.
func TestSparseMirror(t *testing.T) {
	h := newHub(t, safetensorsRepo())
	h.list = func(l map[string]any) {
		for _, s := range l["siblings"].([]any) {
			s := s.(map[string]any)
			delete(s, "size")
			delete(s, "blobId")
			delete(s, "lfs")
		}
	}
	m := mustPull(t, hubStore(t, h), "hf:org/repo")
	for _, f := range m.Files {
		wantFile(t, filepath.Join(m.Path, f.Name), h.files[f.Name])
	}
	if len(m.Files) != 10 {
		t.Errorf("%d files, want 10", len(m.Files))
	}
	shard := sha(h.files["model-00001-of-00002.safetensors"])
	h.cdn.file["/cdn/"+shard] = ggufBytes(9, 70_000) // the tag of large-file storage is a digest still
	_, err := hubStore(t, h).Pull(context.Background(), "hf:org/repo", nil)
	wantError(t, err, "model-00001-of-00002.safetensors", "expected "+shard)
}

// Two pulls of one model at once, as from two processes, end with one download and two whole models.
func TestPullHubConcurrently(t *testing.T) {
	h := newHub(t, safetensorsRepo())
	first := hubStore(t, h)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s := newStore(first.Dir, first.HubCache)
			s.Endpoint = h.URL
			m, err := s.Pull(context.Background(), "hf:org/repo", nil)
			if err != nil {
				t.Error(err)
				return
			}
			for _, f := range m.Files {
				wantFile(t, filepath.Join(m.Path, f.Name), h.files[f.Name])
			}
		})
	}
	wg.Wait()
	for name := range h.files {
		if n := len(h.fileGets(name)); n > 1 {
			t.Errorf("%s was fetched %d times", name, n)
		}
	}
}

// What another process brought while this one waited for it is not fetched again.
func TestHubWaits(t *testing.T) {
	h := newHub(t, map[string][]byte{"x.gguf": ggufBytes(1, 1000)})
	s := hubStore(t, h)
	unlock, err := lock(context.Background(), filepath.Join(s.HubCache, ".locks", "models--org--repo", sha(h.files["x.gguf"])+".lock"), nil)
	if err != nil {
		t.Fatal(err)
	}
	waited := false
	_, err = s.Pull(context.Background(), "hf:org/repo/x.gguf", func(e Event) {
		if e.Stage == StageWait {
			waited = true
			write(t, filepath.Join(s.snapshot("org/repo", testCommit), "x.gguf"), h.files["x.gguf"])
			unlock()
		}
	})
	if n := len(h.fileGets("x.gguf")); err != nil || !waited || n != 0 {
		t.Errorf("error %v, waited %v, fetched %d times", err, waited, n)
	}
}

func TestWeightFiles(t *testing.T) {
	for _, c := range []struct{ have, want string }{
		{"model.safetensors model.fp16.safetensors consolidated.safetensors onnx/model.safetensors", "model.safetensors"},
		{"model-1-of-2.safetensors model-2-of-2.safetensors consolidated.safetensors", "model-1-of-2.safetensors model-2-of-2.safetensors"},
		{"consolidated.safetensors params.json", "consolidated.safetensors"},
		{"pytorch_model.bin vae/model.safetensors", ""},
	} {
		var files []hubFile
		for name := range strings.FieldsSeq(c.have) {
			files = append(files, hubFile{Path: name})
		}
		var got []string
		for _, f := range weightFiles(files) {
			got = append(got, f.Path)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("of %q the weights are %q, want %q", c.have, got, c.want)
		}
	}
}

// Without links the files lie in the snapshot itself, where huggingface_hub looks for them.
func TestHubWithoutLinks(t *testing.T) {
	old := symlink
	defer func() { symlink = old }()
	symlink = func(*os.Root, string, string) error { return os.ErrPermission }
	h := newHub(t, safetensorsRepo())
	s := hubStore(t, h)
	m := mustPull(t, s, "hf:org/repo")
	for _, f := range m.Files {
		wantFile(t, filepath.Join(m.Path, f.Name), h.files[f.Name])
	}
	if blobs := tree(t, filepath.Join(s.HubCache, "models--org--repo", "blobs")); len(blobs) != 0 {
		t.Errorf("the content is there twice: %v", blobs)
	}
	mustPull(t, s, "hf:org/repo")
	if n := len(h.fileGets("model-00001-of-00002.safetensors")); n != 1 {
		t.Errorf("a shard was fetched %d times", n)
	}
}

// A pull that was cut keeps the name on the old snapshot, and goes on within the blob.
func TestPullHubResumes(t *testing.T) {
	h := newHub(t, safetensorsRepo())
	s := hubStore(t, h)
	shard := h.files["model-00002-of-00002.safetensors"]
	path := "/cdn/" + sha(shard)
	ctx, cancel := context.WithCancel(context.Background())
	h.cdn.once(path, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "50000")
		w.Write(shard[:20_000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	_, err := s.Pull(ctx, "hf:org/repo", func(e Event) {
		if e.File == "model-00002-of-00002.safetensors" && e.Done == 20_000 {
			cancel()
		}
	})
	if err == nil {
		t.Fatal("no error")
	}
	if _, ok := s.Find("hf:org/repo"); ok {
		t.Error("half a model is found")
	}
	mustPull(t, s, "hf:org/repo")
	if got := h.cdn.gets(path)[1].Header.Get("Range"); got != "bytes=20000-" {
		t.Errorf("second request has Range %q", got)
	}
}
