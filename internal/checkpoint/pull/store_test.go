package pull

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func names(models []Model) (out []string) {
	for _, m := range models {
		out = append(out, m.Name)
	}
	return out
}

func TestListAndRemove(t *testing.T) {
	h := newHub(t, safetensorsRepo())
	web := newSite(t, map[string][]byte{"/x.gguf": ggufBytes(1, 100), "/y.gguf": ggufBytes(2, 100)})
	s := hubStore(t, h)
	if list, err := s.List(); len(list) != 0 || err != nil {
		t.Fatalf("an empty store lists %v, %v", list, err)
	}
	for _, name := range []string{web.URL + "/x.gguf", web.URL + "/y.gguf", "hf:org/repo", "hf:org/repo/model-q4_0.gguf"} {
		mustPull(t, s, name)
	}
	list, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"hf:org/repo", "hf:org/repo/model-q4_0.gguf", web.URL + "/x.gguf", web.URL + "/y.gguf"}
	if diff := cmp.Diff(want, names(list)); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
	for i, left := range []struct {
		remove string
		want   []string
	}{
		{web.URL + "/x.gguf", []string{want[0], want[1], want[3]}},
		{"hf:org/repo/model-q4_0.gguf", []string{want[0], want[3]}}, // the weights beside it stay
		{"hf:org/repo", []string{want[3]}},
		{web.URL + "/y.gguf", nil},
	} {
		if _, err := s.Remove(left.remove); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		if left.remove == "hf:org/repo/model-q4_0.gguf" {
			if _, err := os.Stat(filepath.Join(s.HubCache, "models--org--repo", "blobs", sha(h.files["model-q4_0.gguf"]))); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the file is gone, its content is not: %v", err)
			}
		}
		if _, ok := s.Find(left.remove); ok {
			t.Errorf("%s is still found", left.remove)
		}
		list, err := s.List()
		if diff := cmp.Diff(left.want, names(list)); diff != "" || err != nil {
			t.Errorf("after Remove(%q) (-want +got):\n%s%v", left.remove, diff, err)
		}
		if _, err := s.Remove(left.remove); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("second Remove(%q): %v", left.remove, err)
		}
	}
	if left := tree(t, s.models()); len(left) > 0 {
		t.Errorf("left in the store: %v", left)
	}
	if left := tree(t, s.HubCache); len(left) > 0 {
		t.Errorf("left in the cache: %v", left)
	}
}

// A file's content stays as long as another revision shows it, and goes with the last.
func TestRemoveRevision(t *testing.T) {
	h := newHub(t, map[string][]byte{"x.gguf": ggufBytes(1, 100)})
	s := hubStore(t, h)
	m := mustPull(t, s, "hf:org/repo/x.gguf")
	folder := filepath.Join(s.HubCache, "models--org--repo")
	other := strings.Repeat("f", 40)
	write(t, filepath.Join(folder, "refs", "old"), []byte(other))
	write(t, filepath.Join(folder, "snapshots", other, "z.gguf"), ggufBytes(2, 50))
	if err := os.Symlink("../../blobs/"+m.Files[0].SHA256, filepath.Join(folder, "snapshots", other, "x.gguf")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Remove("hf:org/repo/x.gguf"); err != nil {
		t.Fatal(err)
	}
	old, ok := s.Find("hf:org/repo@old/x.gguf")
	if !ok {
		t.Fatal("the other revision lost the file")
	}
	wantFile(t, old.Path, h.files["x.gguf"])
	if _, err := s.Remove("hf:org/repo@old"); err != nil {
		t.Fatal(err)
	}
	if left := tree(t, s.HubCache); len(left) > 0 {
		t.Errorf("left in the cache: %v", left)
	}
}

// With the last GGUF file of a repository goes the model card that came along.
func TestRemoveLastFile(t *testing.T) {
	h := newHub(t, map[string][]byte{"x.gguf": ggufBytes(1, 100), "README.md": []byte("# x")})
	s := hubStore(t, h)
	mustPull(t, s, "hf:org/repo/x.gguf")
	if _, err := s.Remove("hf:org/repo/x.gguf"); err != nil {
		t.Fatal(err)
	}
	if left := tree(t, s.HubCache); len(left) > 0 {
		t.Errorf("left in the cache: %v", left)
	}
}

// Removing never follows a link out of the store.
func TestRemoveStaysInside(t *testing.T) {
	web := newSite(t, map[string][]byte{"/x.gguf": ggufBytes(1, 100)})
	h := newHub(t, map[string][]byte{"x.gguf": ggufBytes(1, 100)})
	s := hubStore(t, h)
	outside := t.TempDir()
	precious := filepath.Join(outside, "precious")
	write(t, precious, []byte("data"))

	m := mustPull(t, s, web.URL+"/x.gguf")
	if err := os.Symlink(outside, filepath.Join(filepath.Dir(m.Path), "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Remove(web.URL + "/x.gguf"); err != nil {
		t.Error(err)
	}

	mustPull(t, s, "hf:org/repo/x.gguf")
	snapshots := filepath.Join(s.HubCache, "models--org--repo", "snapshots", testCommit)
	if err := os.Symlink("../../../../../precious", filepath.Join(snapshots, "y.gguf")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Remove("hf:org/repo/y.gguf"); err != nil {
		t.Error(err)
	}
	if _, err := s.Remove("hf:org/repo"); err != nil {
		t.Error(err)
	}

	ref, _ := ParseRef(web.URL + "/x.gguf")
	if err := os.Symlink(outside, s.folder(ref)); err != nil { // the model's folder itself leads out
		t.Fatal(err)
	}
	write(t, filepath.Join(outside, manifestName), []byte("{}"))
	s.Remove(web.URL + "/x.gguf")
	wantFile(t, precious, []byte("data"))
	wantFile(t, filepath.Join(outside, manifestName), []byte("{}"))
}

func TestPullConcurrently(t *testing.T) {
	b := ggufBytes(1, 300_000)
	web := newSite(t, map[string][]byte{"/x.gguf": b})
	first := testStore(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s := newStore(first.Dir, first.HubCache)
			m, err := s.Pull(context.Background(), web.URL+"/x.gguf", nil)
			if err != nil {
				t.Error(err)
				return
			}
			wantFile(t, m.Path, b)
		})
	}
	wg.Wait()
	if n := len(web.gets("/x.gguf")); n != 1 {
		t.Errorf("%d downloads, want 1", n)
	}
}

// A model that somebody is pulling is waited for, as long as the caller wants to, and not removed.
func TestLocked(t *testing.T) {
	b := ggufBytes(1, 100)
	web := newSite(t, map[string][]byte{"/x.gguf": b})
	s := testStore(t)
	ref, _ := ParseRef(web.URL + "/x.gguf")
	unlock, err := s.lock(context.Background(), ref, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var stages []Stage
	_, err = s.Pull(ctx, ref.String(), func(e Event) { stages = append(stages, e.Stage); cancel() })
	if !errors.Is(err, context.Canceled) || len(stages) != 1 || stages[0] != StageWait {
		t.Errorf("Pull: %v after %v", err, stages)
	}
	write(t, filepath.Join(s.folder(ref), "x.gguf.partial"), b[:50])
	if _, err := s.Remove(ref.String()); !errors.Is(err, errBusy) {
		t.Errorf("Remove: %v", err)
	}
	unlock()
	mustPull(t, s, ref.String())
}

func TestHostileManifest(t *testing.T) {
	web := newSite(t, map[string][]byte{"/x.gguf": ggufBytes(1, 100)})
	name := web.URL + "/x.gguf"
	file := func(name string, size int64) []File { return []File{{Name: name, Size: size}} }
	for _, c := range []struct {
		what string
		text any
	}{
		{"leads out", manifest{Name: name, Files: file("../../secret", 4)}},
		{"leads out by a full path", manifest{Name: name, Files: file("/etc/passwd", 4)}},
		{"another model's", manifest{Name: "smollm2:135m", Files: file("x.gguf", 100)}},
		{"no model's", manifest{Name: "\x1b[2J", Files: file("x.gguf", 100)}},
		{"wrong size", manifest{Name: name, Files: file("x.gguf", 99)}},
		{"a folder", manifest{Name: name, Files: file("sub", 4096)}},
		{"no files", manifest{Name: name}},
		{"not JSON", "hello"},
		{"too large", strings.Repeat("x", maxManifest)},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := testStore(t)
			m := mustPull(t, s, name)
			write(t, filepath.Join(s.Dir, "secret"), []byte("1234"))
			if err := os.Mkdir(filepath.Join(filepath.Dir(m.Path), "sub"), 0o755); err != nil {
				t.Fatal(err)
			}
			b, _ := json.Marshal(c.text)
			write(t, filepath.Join(filepath.Dir(m.Path), manifestName), b)
			if m, ok := s.Find(name); ok {
				t.Errorf("found %+v", m)
			}
			list, err := s.List()
			if len(list) != 0 {
				t.Errorf("listed %+v", list)
			}
			wantError(t, err, filepath.Dir(m.Path))
			wantFile(t, mustPull(t, s, name).Path, ggufBytes(1, 100)) // a pull repairs it
		})
	}
}

func TestLockCancelled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "lock")
	unlock, err := lock(context.Background(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := lock(ctx, path, cancel); !errors.Is(err, context.Canceled) {
		t.Fatalf("a lock that is held was given again: %v", err)
	}
	unlock()
	ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	unlock, err = lock(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}
