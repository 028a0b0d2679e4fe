package pull

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if os.Getenv("FAKE_PIP") != "" {
		os.Exit(fakePip(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// testStore is an empty store that reaches nothing beyond this machine and waits for nothing.
func testStore(t *testing.T) *Store {
	t.Helper()
	s := newStore(filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "hub"))
	s.Endpoint = "http://127.0.0.1:1" // nobody listens there
	s.pips = nil
	s.pause = 0
	s.free = func(string) (int64, bool) { return 1 << 40, true }
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

// ggufBytes is a file that begins like a GGUF file and goes on with noise, the same for the same seed.
func ggufBytes(seed uint64, size int) []byte {
	b := make([]byte, size)
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	copy(b, ggufMagic)
	return b
}

func sha(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }

func gitOID(b []byte) string {
	s := sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(b)), b...))
	return hex.EncodeToString(s[:])
}

// A site serves files and keeps the requests for them. Hooks change how one of them is answered.
type site struct {
	*httptest.Server
	mu   sync.Mutex
	log  []*http.Request
	file map[string][]byte                             // by path
	etag map[string]string                             // default: none
	hook func(http.ResponseWriter, *http.Request) bool // true: answered
}

func newSite(t *testing.T, files map[string][]byte) *site {
	s := &site{file: files, etag: map[string]string{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.log = append(s.log, r)
	hook := s.hook
	s.mu.Unlock()
	if hook != nil && hook(w, r) {
		return
	}
	b, ok := s.file[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if tag := s.etag[r.URL.Path]; tag != "" {
		w.Header().Set("ETag", tag)
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
}

// gets returns the GET requests for a path.
func (s *site) gets(path string) []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.log), func(r *http.Request) bool { return r.Method != http.MethodGet || r.URL.Path != path })
}

// once makes the first GET of a path go through f.
func (s *site) once(path string, f http.HandlerFunc) {
	var done sync.Once
	s.hook = func(w http.ResponseWriter, r *http.Request) (answered bool) {
		if r.Method == http.MethodGet && r.URL.Path == path {
			done.Do(func() { answered = true; f(w, r) })
		}
		return answered
	}
}

// cutAfter answers with the first n bytes of b and then drops the connection.
func cutAfter(b []byte, n int, etag string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if etag != "" {
			w.Header().Set("ETag", etag)
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		w.Write(b[:n])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

const testCommit = "0123456789abcdef0123456789abcdef01234567"

// A fakeHub answers like huggingface.co: it lists repositories, sends small files itself and redirects to a content
// network for those in large-file storage.
type fakeHub struct {
	*site
	cdn   *site
	files map[string][]byte // of org/repo at testCommit
	token string            // without it the repository is gated
	list  func(listing map[string]any)
}

func newHub(t *testing.T, files map[string][]byte) *fakeHub {
	h := &fakeHub{site: newSite(t, nil), cdn: newSite(t, map[string][]byte{}), files: files}
	h.hook = h.answer
	for _, b := range files {
		h.cdn.file["/cdn/"+sha(b)] = b
	}
	return h
}

func isLFS(name string) bool {
	return strings.HasSuffix(name, ".safetensors") || strings.HasSuffix(name, ".gguf") || name == "tokenizer.json"
}

func (h *fakeHub) answer(w http.ResponseWriter, r *http.Request) bool {
	deny := func(status int, code, message string) bool {
		w.Header().Set("X-Error-Code", code)
		w.Header().Set("X-Error-Message", message)
		w.WriteHeader(status)
		return true
	}
	path := strings.TrimPrefix(r.URL.Path, "/")
	lookup, isLookup := strings.CutPrefix(path, "api/models/")
	rest, ok := strings.CutPrefix(lookup, "org/repo/")
	if !ok {
		return deny(http.StatusUnauthorized, "RepoNotFound", "Repository not found")
	}
	if isLookup {
		rev := strings.TrimPrefix(rest, "revision/")
		if rev != "main" && rev != testCommit && rev != "v1" {
			return deny(http.StatusNotFound, "RevisionNotFound", "Invalid rev id: "+rev)
		}
		var siblings []any
		for name, b := range h.files {
			s := map[string]any{"rfilename": name, "size": len(b), "blobId": gitOID(b)}
			if isLFS(name) {
				s["lfs"] = map[string]any{"sha256": sha(b), "size": len(b), "pointerSize": 134}
			}
			siblings = append(siblings, s)
		}
		listing := map[string]any{"id": "org/repo", "sha": testCommit, "siblings": siblings}
		if h.list != nil {
			h.list(listing)
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		json.NewEncoder(w).Encode(listing)
		return true
	}
	if h.token != "" && r.Header.Get("Authorization") != "Bearer "+h.token {
		return deny(http.StatusUnauthorized, "GatedRepo", "Access to model org/repo is restricted.")
	}
	_, name, _ := strings.Cut(strings.TrimPrefix(rest, "resolve/"), "/")
	b, ok := h.files[name]
	if !ok {
		return deny(http.StatusNotFound, "EntryNotFound", "Entry not found")
	}
	w.Header().Set("X-Repo-Commit", testCommit)
	if isLFS(name) {
		w.Header().Set("X-Linked-Etag", `"`+sha(b)+`"`)
		w.Header().Set("X-Linked-Size", fmt.Sprint(len(b)))
		http.Redirect(w, r, h.cdn.URL+"/cdn/"+sha(b)+"?X-Amz-Signature=secret", http.StatusFound)
		return true
	}
	w.Header().Set("ETag", `"`+gitOID(b)+`"`)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	return true
}

// fileGets returns the requests for the content of a file, at the hub or at its content network.
func (h *fakeHub) fileGets(name string) []*http.Request {
	if isLFS(name) {
		return h.cdn.gets("/cdn/" + sha(h.files[name]))
	}
	return h.gets("/org/repo/resolve/" + testCommit + "/" + name)
}

// safetensorsRepo is what the hub has of a small model, with the copies and other formats that stay there.
func safetensorsRepo() map[string][]byte {
	return map[string][]byte{
		"README.md":                        []byte("---\nlanguage: en\nlicense: apache-2.0\n---\n# A model\n"),
		"LICENSE":                          []byte("do as you like"),
		"config.json":                      []byte(`{"model_type":"llama"}`),
		"generation_config.json":           []byte(`{}`),
		"tokenizer.json":                   []byte(`{"model":{}}`),
		"tokenizer_config.json":            []byte(`{"eos_token":"</s>"}`),
		"chat_template.jinja":              []byte(`{{ messages }}`),
		"model.safetensors.index.json":     []byte(`{"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors","c":"model-00001-of-00002.safetensors"}}`),
		"model-00001-of-00002.safetensors": ggufBytes(1, 70_000),
		"model-00002-of-00002.safetensors": ggufBytes(2, 50_000),
		"consolidated.safetensors":         ggufBytes(3, 120_000),
		"pytorch_model.bin":                ggufBytes(4, 120_000),
		"pytorch_model.bin.index.json":     []byte(`{}`),
		"model-q4_0.gguf":                  ggufBytes(5, 40_000),
		"onnx/model.onnx":                  ggufBytes(6, 100),
		"modeling_llama.py":                []byte("import os"),
	}
}

func mustPull(t *testing.T, s *Store, name string) Model {
	t.Helper()
	m, err := s.Pull(context.Background(), name, nil)
	if err != nil {
		t.Fatalf("Pull(%q): %v", name, err)
	}
	return m
}

// wantError fails unless err is there and its text holds every part.
func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that holds %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not hold %q", err, part)
		}
	}
}

func wantFile(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%s has %d bytes (sha256 %s), want %d (%s)", path, len(got), sha(got), len(want), sha(want))
	}
}

// tree lists the files below a folder, links as "name -> target".
func tree(t *testing.T, folder string) (files []string) {
	t.Helper()
	filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(folder, path)
		rel = filepath.ToSlash(rel)
		if d.Type()&fs.ModeSymlink != 0 {
			target, _ := os.Readlink(path)
			files = append(files, rel+" -> "+filepath.ToSlash(target))
		} else if !d.IsDir() {
			files = append(files, rel)
		}
		return nil
	})
	return files
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}
