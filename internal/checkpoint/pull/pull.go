package pull

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// A Stage is what a pull is doing.
type Stage string

const (
	StageWait     Stage = "waiting"     // another process is pulling the same model
	StageResolve  Stage = "resolving"   // asking the source what there is
	StageDownload Stage = "downloading" // Done of Total bytes of File have arrived
	StageUnpack   Stage = "unpacking"   // Done of Total bytes of File have been taken out of their packages
	StageKeep     Stage = "keeping"     // Source could not be asked for the reason Err; the copy on this machine will do
	StageSkip     Stage = "skipping"    // Source did not work for the reason Err; the next one is tried
)

// An Event reports progress. Its counts belong to one file: Index of Count, from 1, where a model has several.
type Event struct {
	Stage  Stage
	Source string
	File   string
	Index  int
	Count  int
	Done   int64 // bytes
	Total  int64 // bytes; 0 unknown
	Err    error
}

// Progress is called with what happens, from one goroutine at a time. Nil is allowed.
type Progress func(Event)

func (p Progress) event(e Event) {
	if p != nil {
		p(e)
	}
}

// download reports one file of several.
func (p Progress) download(ref Ref, file string, index, count int) report {
	return func(done, total int64) {
		p.event(Event{Stage: StageDownload, Source: ref.String(), File: file, Index: index + 1, Count: count, Done: done, Total: total})
	}
}

// Pull brings the model of that name onto this machine, or what is missing of it, and returns it. What is already
// there is not fetched again, except that a branch of Hugging Face is looked up and followed, if there is a way to it.
// A pull that was cut, cancelled or ran out of disk goes on where it stopped when it is called again.
//
// A built-in name has several sources, tried in order; when none works the error is a [*SourcesError]. Otherwise the
// error names the source, the obstacle and, where there is one, the way round it.
func (s *Store) Pull(ctx context.Context, name string, p Progress) (Model, error) {
	ref, err := ParseRef(name)
	if err != nil {
		return Model{}, err
	}
	var m Model
	if ref.Kind == KindHub {
		m, err = s.pullHub(ctx, ref, p)
	} else {
		m, err = s.pullStored(ctx, ref, p)
	}
	var sources *SourcesError
	if err != nil && !errors.As(err, &sources) {
		err = fmt.Errorf("%s: %w", ref, err)
	}
	return m, err
}

// pullStored brings a model into a folder of the store.
func (s *Store) pullStored(ctx context.Context, ref Ref, p Progress) (Model, error) {
	if m, err := s.find(ref); err == nil {
		return m, nil
	}
	unlock, err := s.lock(ctx, ref, func() { p.event(Event{Stage: StageWait, Source: ref.String()}) })
	if err != nil {
		return Model{}, err
	}
	defer unlock()
	if m, err := s.find(ref); err == nil { // somebody else has just pulled it
		return m, nil
	}
	folder := s.folder(ref)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return Model{}, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return Model{}, err
	}
	if err := s.fill(ctx, root, ref, p); err != nil {
		return Model{}, errors.Join(err, root.Close(), tidy(folder))
	}
	if err := root.Close(); err != nil {
		return Model{}, err
	}
	return s.find(ref)
}

// fill fetches a model into its folder and writes the manifest.
func (s *Store) fill(ctx context.Context, root *os.Root, ref Ref, p Progress) error {
	if err := root.WriteFile(unfinishedName, []byte(ref.String()), 0o644); err != nil {
		return err
	}
	m, err := s.fetch(ctx, root, ref, p)
	if err != nil {
		return err
	}
	m.Name, m.Pulled = ref.String(), time.Now().UTC().Truncate(time.Second)
	if err := m.write(root); err != nil {
		return err
	}
	if err := root.Remove(unfinishedName); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
