package pull

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A Store is where models are kept. Its methods may be called from several goroutines and processes at once.
type Store struct {
	Dir      string // holds models/ and locks/
	HubCache string // the Hugging Face cache
	Endpoint string // the Hugging Face site or a mirror of it (HF_ENDPOINT), without a trailing slash
	Token    string // sent to Endpoint and nowhere else; "" none
	Offline  bool   // Endpoint is not asked

	client *http.Client
	pips   [][]string                        // commands that may be pip, in the order they are tried
	free   func(folder string) (int64, bool) // see freeSpace
	stall  time.Duration                     // silence after which a download is cut
	pause  time.Duration                     // before the first retry; doubled for each further one
}

// Default returns the store that the environment names:
//
//   - FORETOKEN_HOME, or the place for data of the system: $XDG_DATA_HOME/foretoken or ~/.local/share/foretoken,
//     ~/Library/Application Support/foretoken, %LocalAppData%\foretoken;
//   - HF_HUB_CACHE, HF_HOME, HF_ENDPOINT, HF_TOKEN (or the token file of `hf auth login`) and HF_HUB_OFFLINE, with
//     the meaning they have for huggingface_hub.
func Default() (*Store, error) {
	home, err := os.UserHomeDir()
	env := func(names ...string) string {
		for _, name := range names {
			if v := strings.TrimSpace(os.Getenv(name)); v != "" {
				return v
			}
		}
		return ""
	}
	folder := func(v string, fallback ...string) (string, error) {
		if rest, ok := strings.CutPrefix(v, "~"); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
			v, fallback = "", []string{home, rest}
		}
		if v == "" {
			v = filepath.Join(fallback...)
			if !filepath.IsAbs(v) {
				return "", fmt.Errorf("no home folder to keep models in (set FORETOKEN_HOME and HF_HOME): %w", err)
			}
		}
		return filepath.Abs(v)
	}
	data := []string{home, ".local", "share"}
	switch runtime.GOOS {
	case "darwin", "ios":
		data = []string{home, "Library", "Application Support"}
	case "windows":
		data = []string{env("LocalAppData")}
	default:
		if xdg := env("XDG_DATA_HOME"); filepath.IsAbs(xdg) {
			data = []string{xdg}
		}
	}
	dir, err1 := folder(env("FORETOKEN_HOME"), append(data, "foretoken")...)
	cache := []string{home, ".cache"}
	if xdg := env("XDG_CACHE_HOME"); xdg != "" {
		cache = []string{xdg}
	}
	hfHome, err2 := folder(env("HF_HOME"), append(cache, "huggingface")...)
	hub, err3 := folder(env("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"), hfHome, "hub")
	if err := cmp.Or(err1, err2, err3); err != nil { // one of them says it all
		return nil, err
	}
	s := newStore(dir, hub)
	if v := env("HF_ENDPOINT"); v != "" {
		s.Endpoint = strings.TrimRight(v, "/")
	}
	s.Token = env("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
	if s.Token == "" {
		tokenFile, err := folder(env("HF_TOKEN_PATH"), hfHome, "token")
		if err != nil {
			return nil, err
		}
		if b, err := os.ReadFile(tokenFile); err == nil {
			s.Token = strings.TrimSpace(string(b))
		}
	}
	switch strings.ToUpper(env("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")) {
	case "1", "ON", "YES", "TRUE":
		s.Offline = true
	}
	return s, nil
}

func newStore(dir, hubCache string) *Store {
	return &Store{
		Dir:      dir,
		HubCache: hubCache,
		Endpoint: hubSite,
		client:   newClient(),
		pips:     pipCommands(),
		free:     freeSpace,
		stall:    time.Minute,
		pause:    500 * time.Millisecond,
	}
}

// Find returns the model of that name if it is on this machine, whole. It asks no network.
func (s *Store) Find(name string) (Model, bool) {
	ref, err := ParseRef(name)
	if err != nil {
		return Model{}, false
	}
	m, err := s.find(ref)
	return m, err == nil
}

func (s *Store) find(ref Ref) (Model, error) {
	if ref.Kind == KindHub {
		return s.findHub(ref)
	}
	m, err := readManifest(s.folder(ref))
	if err == nil && m.Name != ref.String() {
		err = fmt.Errorf("%s belongs to %q", s.folder(ref), printable(m.Name))
	}
	return m, err
}

func (s *Store) models() string { return filepath.Join(s.Dir, "models") }

func (s *Store) folder(ref Ref) string { return filepath.Join(s.models(), folderName(ref.String())) }

func (s *Store) lock(ctx context.Context, ref Ref, waiting func()) (unlock func(), err error) {
	return lock(ctx, filepath.Join(s.Dir, "locks", folderName(ref.String())+".lock"), waiting)
}

// List returns the models on this machine by name: those of the store and those in the Hugging Face cache that hold
// safetensors or GGUF weights. The error names what could not be read; the models beside it are listed all the same.
func (s *Store) List() ([]Model, error) {
	models, err := s.listHub()
	errs := []error{err}
	entries, err := os.ReadDir(s.models())
	if !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	for _, e := range entries {
		m, err := readManifest(filepath.Join(s.models(), e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // not whole yet
		}
		if ref, bad := ParseRef(m.Name); err == nil && (bad != nil || folderName(ref.String()) != e.Name()) {
			err = fmt.Errorf("%s: its manifest names %q, which does not belong there", filepath.Join(s.models(), e.Name()), printable(m.Name))
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		models = append(models, m)
	}
	slices.SortFunc(models, func(a, b Model) int { return strings.Compare(a.Name, b.Name) })
	return models, errors.Join(errs...)
}

// Remove deletes the model of that name and what an unfinished pull of it left, and returns how many bytes that were.
// Of the Hugging Face cache it deletes the repository's folder, or for a name with a file only that file; other models
// and everything outside stay. A model of which nothing is there is an error wrapping [fs.ErrNotExist].
func (s *Store) Remove(name string) (bytes int64, err error) {
	ref, err := ParseRef(name)
	if err != nil {
		return 0, err
	}
	if bytes, err = s.remove(ref); err != nil {
		return 0, fmt.Errorf("remove %s: %w", ref, err)
	}
	return bytes, nil
}

func (s *Store) remove(ref Ref) (bytes int64, err error) {
	if ref.Kind == KindHub {
		return s.removeHub(ref)
	}
	root, err := os.OpenRoot(s.models())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("not in the store: %w", fs.ErrNotExist)
	}
	if err != nil {
		return 0, err
	}
	defer root.Close()
	folder := folderName(ref.String())
	if _, err := root.Lstat(folder); err != nil {
		return 0, fmt.Errorf("not in the store: %w", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	unlock, err := s.lock(ctx, ref, func() { cancel(errBusy) })
	if err != nil {
		return 0, err
	}
	defer unlock()
	files, bytes, _ := usage(s.folder(ref), ofModel)
	// The manifest goes first: a removal that is interrupted leaves no model.
	if err := root.Remove(filepath.Join(folder, manifestName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	if err := root.RemoveAll(folder); err != nil || files > 0 {
		return bytes, err
	}
	return 0, fmt.Errorf("not in the store: %w", fs.ErrNotExist) // empty folders were all there was
}

var errBusy = errors.New("it is being pulled right now")
