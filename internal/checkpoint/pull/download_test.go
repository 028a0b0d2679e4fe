package pull

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// partialOf is where the unfinished download of an https model lies.
func partialOf(s *Store, name string) string {
	ref, _ := ParseRef(name)
	return filepath.Join(s.folder(ref), filepath.Base(ref.URL)+".partial")
}

func TestPullURL(t *testing.T) {
	b := ggufBytes(1, 3_000_000)
	web := newSite(t, map[string][]byte{"/a/x.gguf": b})
	s := testStore(t)
	var last Event
	m, err := s.Pull(context.Background(), web.URL+"/a/x.gguf?sig=secret", func(e Event) { last = e })
	if err != nil {
		t.Fatal(err)
	}
	wantFile(t, m.Path, b)
	if m.Name != web.URL+"/a/x.gguf" || m.Source != m.Name || m.Size != int64(len(b)) || m.Files[0].SHA256 != sha(b) {
		t.Errorf("model is %+v", m)
	}
	if last.Stage != StageDownload || last.Done != int64(len(b)) || last.Total != last.Done {
		t.Errorf("last event is %+v", last)
	}
	if n := len(web.gets("/a/x.gguf")); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	mustPull(t, s, web.URL+"/a/x.gguf")
	if n := len(web.gets("/a/x.gguf")); n != 1 {
		t.Errorf("a model that is there was asked for again")
	}
	if found, ok := s.Find(m.Name); !ok || found.Path != m.Path {
		t.Errorf("Find = %+v, %v", found, ok)
	}
	for _, file := range tree(t, s.Dir) {
		if b, _ := os.ReadFile(filepath.Join(s.Dir, file)); strings.Contains(string(b[:min(len(b), 4096)]), "secret") {
			t.Errorf("%s keeps the query of the address", file)
		}
	}
}

func TestPullURLSplits(t *testing.T) {
	web := newSite(t, map[string][]byte{"/x-00001-of-00002.gguf": ggufBytes(1, 1000), "/x-00002-of-00002.gguf": ggufBytes(2, 2000)})
	m := mustPull(t, testStore(t), web.URL+"/x-00002-of-00002.gguf")
	if filepath.Base(m.Path) != "x-00001-of-00002.gguf" || len(m.Files) != 2 || m.Size != 3000 {
		t.Errorf("model is %+v", m)
	}
}

// A cut connection is taken up where it broke, and If-Range makes sure that it is still the same file.
func TestResumeAfterCut(t *testing.T) {
	b := ggufBytes(1, 500_000)
	for _, digest := range []string{"", "#sha256=" + sha(b)} {
		web := newSite(t, map[string][]byte{"/x.gguf": b})
		web.etag["/x.gguf"] = `"v1"`
		web.once("/x.gguf", cutAfter(b, 200_000, `"v1"`))
		m := mustPull(t, testStore(t), web.URL+"/x.gguf"+digest)
		wantFile(t, m.Path, b)
		log := web.gets("/x.gguf")
		if len(log) != 2 {
			t.Fatalf("%d requests, want 2", len(log))
		}
		var from int
		if fmt.Sscanf(log[1].Header.Get("Range"), "bytes=%d-", &from); from < 4 || from > 200_000 {
			t.Errorf("second request has Range %q", log[1].Header.Get("Range"))
		}
		if got, want := log[1].Header.Get("If-Range"), `"v1"`; (digest == "") != (got == want) {
			t.Errorf("digest %q: second request has If-Range %q", digest, got)
		}
	}
}

// A cancelled pull leaves no model, but what has arrived; the next pull goes on from there.
func TestResumeAfterCancel(t *testing.T) {
	b := ggufBytes(1, 500_000)
	web := newSite(t, map[string][]byte{"/x.gguf": b})
	web.etag["/x.gguf"] = `"v1"`
	web.once("/x.gguf", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		w.Write(b[:100_000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	s := testStore(t)
	ctx, cancel := context.WithCancel(context.Background())
	_, err := s.Pull(ctx, web.URL+"/x.gguf", func(e Event) {
		if e.Done >= 100_000 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error is %v", err)
	}
	if _, ok := s.Find(web.URL + "/x.gguf"); ok {
		t.Fatal("half a model is found")
	}
	if list, err := s.List(); len(list) != 0 || err != nil {
		t.Errorf("List = %v, %v", list, err)
	}
	wantFile(t, partialOf(s, web.URL+"/x.gguf"), b[:100_000])
	m := mustPull(t, s, web.URL+"/x.gguf")
	wantFile(t, m.Path, b)
	if got := web.gets("/x.gguf")[1].Header.Get("Range"); got != "bytes=100000-" {
		t.Errorf("second request has Range %q", got)
	}
	if files := tree(t, filepath.Dir(m.Path)); strings.Join(files, " ") != "manifest.json x.gguf" {
		t.Errorf("the folder holds %v", files)
	}
}

// What an earlier attempt left is used only where it belongs to what the server has now.
func TestResumeStartsOver(t *testing.T) {
	b := ggufBytes(1, 100_000)
	for _, c := range []struct {
		name      string
		old       []byte // the partial file
		tag       string // it was received under
		digest    bool
		hook      func(w http.ResponseWriter, r *http.Request) bool
		wantRange string // of the first request
	}{
		{name: "the file has changed", old: ggufBytes(2, 40_000), tag: `"v0"`, wantRange: "bytes=40000-"},
		{name: "no validator was kept", old: ggufBytes(2, 40_000), wantRange: ""},
		{name: "the digest shows other bytes", old: ggufBytes(2, 40_000), digest: true, wantRange: "bytes=40000-"},
		{name: "the partial file is longer", old: ggufBytes(2, 200_000), tag: `"v1"`, wantRange: "bytes=200000-"},
		{name: "the server knows no ranges", old: b[:40_000], tag: `"v1"`, wantRange: "bytes=40000-", hook: func(w http.ResponseWriter, r *http.Request) bool {
			w.Write(b)
			return true
		}},
		{name: "the server sends another range", old: b[:40_000], tag: `"v1"`, wantRange: "bytes=40000-", hook: func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Range") == "" {
				return false
			}
			w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", len(b)-1, len(b)))
			w.WriteHeader(http.StatusPartialContent)
			w.Write(b)
			return true
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			web := newSite(t, map[string][]byte{"/x.gguf": b})
			web.etag["/x.gguf"] = `"v1"`
			web.hook = c.hook
			name := web.URL + "/x.gguf"
			if c.digest {
				name += "#sha256=" + sha(b)
			}
			s := testStore(t)
			write(t, partialOf(s, name), c.old)
			if c.tag != "" {
				write(t, partialOf(s, name)+".tag", []byte(c.tag))
			}
			wantFile(t, mustPull(t, s, name).Path, b)
			if got := web.gets("/x.gguf")[0].Header.Get("Range"); got != c.wantRange {
				t.Errorf("first request has Range %q, want %q", got, c.wantRange)
			}
		})
	}
}

func TestPullURLRefuses(t *testing.T) {
	b := ggufBytes(1, 10_000)
	page := func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, "<html>Please log in</html>")
		return true
	}
	status := func(code int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool { w.WriteHeader(code); return true }
	}
	for _, c := range []struct {
		name, fragment string
		hook           func(http.ResponseWriter, *http.Request) bool
		body           []byte
		why            []string
		tries          int
	}{
		{"wrong digest", "#sha256=" + zeros, nil, b, []string{"sha256 " + sha(b), "expected " + zeros, "nothing was kept"}, 1},
		{"log-in page", "", page, b, []string{"web page", "proxy"}, 1},
		{"no model", "", nil, []byte("PK\x03\x04 something else"), []string{"no GGUF file", `PK\x03\x04`}, 1},
		{"empty", "", nil, []byte{}, []string{"no GGUF file"}, 1},
		{"missing", "", status(404), b, []string{"404"}, 1},
		{"forbidden", "", status(403), b, []string{"403"}, 1},
		{"proxy wants a password", "", status(407), b, []string{"HTTPS_PROXY"}, 1},
		{"overloaded", "", status(503), b, []string{"503"}, maxTries},
		{"always cut", "", func(w http.ResponseWriter, r *http.Request) bool { cutAfter(b, 1000, "")(w, r); return true }, b, []string{"was cut after 1.0 kB"}, maxTries},
	} {
		t.Run(c.name, func(t *testing.T) {
			web := newSite(t, map[string][]byte{"/x.gguf": c.body})
			web.hook = c.hook
			s := testStore(t)
			_, err := s.Pull(context.Background(), web.URL+"/x.gguf"+c.fragment, nil)
			wantError(t, err, append(c.why, web.URL+"/x.gguf")...)
			if n := len(web.gets("/x.gguf")); n != c.tries {
				t.Errorf("%d requests, want %d", n, c.tries)
			}
			if _, ok := s.Find(web.URL + "/x.gguf" + c.fragment); ok {
				t.Error("a model is found")
			}
			left, list := tree(t, s.models()), s.Unfinished()
			for _, file := range left {
				if !isPartial(file) && filepath.Base(file) != unfinishedName {
					t.Errorf("%s was left", file)
				}
			}
			if partial := c.name == "always cut"; partial != (len(left) > 0) || partial != (len(list) == 1) {
				t.Errorf("left are %q, listed as unfinished %v", left, list)
			}
			if entries, _ := os.ReadDir(s.models()); len(left) == 0 && len(entries) > 0 {
				t.Errorf("an empty folder was left: %v", entries)
			}
		})
	}
}

// A block page in front of the server does not cost what has arrived before.
func TestWebPageKeepsPartial(t *testing.T) {
	b := ggufBytes(1, 10_000)
	web := newSite(t, map[string][]byte{"/x.gguf": b})
	web.hook = func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<html>")
		return true
	}
	s := testStore(t)
	name := web.URL + "/x.gguf#sha256=" + sha(b)
	write(t, partialOf(s, name), b[:6000])
	if _, err := s.Pull(context.Background(), name, nil); err == nil {
		t.Fatal("no error")
	}
	wantFile(t, partialOf(s, name), b[:6000])
}

// A server that goes silent is left, and asked again for the rest.
func TestStall(t *testing.T) {
	b := ggufBytes(1, 10_000)
	web := newSite(t, map[string][]byte{"/x.gguf": b})
	web.etag["/x.gguf"] = `"v1"`
	web.once("/x.gguf", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		w.Write(b[:5000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	s := testStore(t)
	s.stall = 200 * time.Millisecond
	wantFile(t, mustPull(t, s, web.URL+"/x.gguf").Path, b)
	if n := len(web.gets("/x.gguf")); n < 2 {
		t.Errorf("%d requests, want another one after the silence", n)
	}
}

func TestUnreachable(t *testing.T) {
	s := testStore(t)
	_, err := s.Pull(context.Background(), "http://127.0.0.1:1/x.gguf", nil)
	wantError(t, err, "no way to 127.0.0.1:1", "refused")
	_, err = s.Pull(context.Background(), "https://host.invalid/x.gguf", nil)
	wantError(t, err, "host.invalid", "HTTPS_PROXY")
}

func TestDiskTooSmall(t *testing.T) {
	b := ggufBytes(1, 10_000)
	web := newSite(t, map[string][]byte{"/x.gguf": b})
	s := testStore(t)
	s.free = func(string) (int64, bool) { return 9_999, true }
	_, err := s.Pull(context.Background(), web.URL+"/x.gguf", nil)
	wantError(t, err, "10.0 kB more are needed", s.Dir)
	// For a model in several files all that is missing counts, before the first of them.
	h := newHub(t, safetensorsRepo())
	s.Endpoint = h.URL
	s.free = func(string) (int64, bool) { return 100_000, true }
	_, err = s.Pull(context.Background(), "hf:org/repo", nil)
	wantError(t, err, "120.1 kB more are needed", s.HubCache)
	if n := len(h.cdn.log); n > 0 {
		t.Errorf("%d large files were asked for", n)
	}
}

// fullDisk takes a number of bytes and no more.
type fullDisk struct {
	*os.File
	room int64
}

func (d fullDisk) WriteAt(b []byte, at int64) (int, error) {
	n := max(0, min(int64(len(b)), d.room-at))
	d.File.WriteAt(b[:n], at)
	if n < int64(len(b)) {
		return int(n), &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	}
	return int(n), nil
}

// A disk that fills up ends the pull at once, and what was written counts when there is room again.
func TestDiskFull(t *testing.T) {
	b := ggufBytes(1, 3_000_000)
	web := newSite(t, map[string][]byte{"/x.gguf": b})
	s := testStore(t)
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	w := want{Size: int64(len(b)), SHA256: sha(b)}
	p, err := openPartial(context.Background(), root, "x.gguf", w)
	if err != nil {
		t.Fatal(err)
	}
	p.w = fullDisk{p.f, 2_000_000}
	d := download{url: web.URL + "/x.gguf", name: "x.gguf", want: w, gguf: true, deny: statusError}
	err = s.receive(context.Background(), p, d, func(int64, int64) {})
	var disk *diskError
	if !errors.As(err, &disk) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("error is %v", err)
	}
	wantError(t, err, "disk is full after 2.0 MB", root.Name())
	p.close()
	if n := len(web.gets("/x.gguf")); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	f, err := s.download(context.Background(), root, d, func(int64, int64) {})
	if err != nil || f.SHA256 != sha(b) {
		t.Fatalf("download = %+v, %v", f, err)
	}
	if got := web.gets("/x.gguf")[1].Header.Get("Range"); got != "bytes=2000000-" {
		t.Errorf("second request has Range %q", got)
	}
}
