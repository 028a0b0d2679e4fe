package pull

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// want is what is known of a file before it is fetched.
type want struct {
	Size   int64  // bytes; -1 unknown
	SHA256 string // hex; "" unknown
	GitOID string // hex SHA-1 of the git blob; "" unknown. Small files of the hub have this in place of SHA256
}

func (w want) digest() bool { return w.SHA256 != "" || w.GitOID != "" }

// A partial is a file on its way: name.partial in root, what has arrived, and the digests of exactly that.
type partial struct {
	root *os.Root
	name string // the final one
	want want

	f   *os.File
	w   io.WriterAt // f, except in tests of full disks
	n   int64       // bytes that arrived, all of them hashed
	sha hash.Hash
	git hash.Hash // nil unless want.GitOID is known
}

// openPartial opens what an earlier attempt left of the file, or an empty one.
func openPartial(ctx context.Context, root *os.Root, name string, w want) (*partial, error) {
	f, err := root.OpenFile(name+".partial", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	p := &partial{root: root, name: name, want: w, f: f, w: f}
	p.rehash()
	st, err := f.Stat()
	if err == nil && w.Size >= 0 && st.Size() > w.Size {
		err = p.restart() // of some other version
	} else if err == nil {
		p.n, err = io.Copy(io.MultiWriter(p.hashes()...), reader{ctx, f})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s.partial: %w", name, err), f.Close())
	}
	return p, nil
}

func (p *partial) rehash() {
	p.sha, p.git = sha256.New(), nil
	if p.want.GitOID != "" {
		p.git = sha1.New()
		fmt.Fprintf(p.git, "blob %d\x00", p.want.Size) // git hashes a header before the content
	}
}

func (p *partial) hashes() []io.Writer {
	if p.git != nil {
		return []io.Writer{p.sha, p.git}
	}
	return []io.Writer{p.sha}
}

// restart forgets what has arrived.
func (p *partial) restart() error {
	p.n = 0
	p.rehash()
	return p.f.Truncate(0)
}

// Write appends to the file. Errors of the disk name what is missing.
func (p *partial) Write(b []byte) (int, error) {
	n, err := p.w.WriteAt(b, p.n)
	for _, h := range p.hashes() {
		_, _ = h.Write(b[:n]) // hashes never fail
	}
	p.n += int64(n)
	if isDiskFull(err) {
		return n, &diskError{p.root.Name(), fmt.Errorf("the disk is full after %s; what has arrived is kept, the next pull goes on from there: %w", ByteSize(p.n), err)}
	}
	return n, err
}

// A diskError says that the folder's disk cannot take the file: no other source would change that.
type diskError struct {
	folder string
	err    error
}

func (e *diskError) Error() string { return e.folder + ": " + e.err.Error() }
func (e *diskError) Unwrap() error { return e.err }

// errDamaged says that a whole file is not the one expected.
var errDamaged = errors.New("the file was changed or damaged on the way")

// verify compares what has arrived with what was wanted.
func (p *partial) verify() error {
	sum := hex.EncodeToString(p.sha.Sum(nil))
	switch {
	case p.want.Size >= 0 && p.n != p.want.Size:
		return fmt.Errorf("%s has %d bytes, expected %d: %w", p.name, p.n, p.want.Size, errDamaged)
	case p.want.SHA256 != "" && sum != p.want.SHA256:
		return fmt.Errorf("%s has sha256 %s, expected %s: %w", p.name, sum, p.want.SHA256, errDamaged)
	case p.git != nil && hex.EncodeToString(p.git.Sum(nil)) != p.want.GitOID:
		return fmt.Errorf("%s has git digest %x, expected %s: %w", p.name, p.git.Sum(nil), p.want.GitOID, errDamaged)
	}
	return nil
}

// commit puts the verified file in its place: after a crash there is either the whole file or none.
func (p *partial) commit() (File, error) {
	err := p.f.Sync()
	if err == nil {
		err = p.f.Close() // Windows renames closed files only
	}
	if err == nil {
		err = p.root.Rename(p.name+".partial", p.name)
	}
	if err == nil {
		err = syncFolder(filepath.Join(p.root.Name(), filepath.Dir(p.name)))
	}
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", p.name, err)
	}
	if err := p.setTag(""); err != nil {
		return File{}, err
	}
	return File{Name: p.name, Size: p.n, SHA256: hex.EncodeToString(p.sha.Sum(nil))}, nil
}

// close keeps what has arrived for the next attempt. After commit it does nothing.
func (p *partial) close() {
	if err := p.f.Close(); err == nil && p.n == 0 {
		_, _ = p.root.Remove(p.name+".partial"), p.setTag("") // an empty one does no harm
	}
}

// tag returns the validator (ETag or date) under which the server handed out the bytes on disk.
func (p *partial) tag() string {
	b, err := p.root.ReadFile(p.name + ".partial.tag")
	if err != nil || len(b) > 512 {
		return ""
	}
	return string(b)
}

func (p *partial) setTag(tag string) error {
	if tag == "" {
		if err := p.root.Remove(p.name + ".partial.tag"); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return p.root.WriteFile(p.name+".partial.tag", []byte(tag), 0o644)
}

// A reader ends with the context: hashing gigabytes must be cancellable.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(b []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}
