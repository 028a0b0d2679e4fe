package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
)

// A mapping is the content of one weight file, mapped read-only where the
// platform can do that.
type mapping struct {
	path string
	data []byte
}

// lfsPointer starts the few lines that Git leaves in place of a large file
// that was not fetched.
var lfsPointer = []byte("version https://git-lfs.github.com/spec/")

// openMapping maps the regular file at path.
func openMapping(path string) (*mapping, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // a mapping outlives its descriptor
	if size == 0 {
		return nil, fmt.Errorf("%s: the file is empty", path)
	}
	if int64(int(size)) != size {
		return nil, fmt.Errorf("%s: %d bytes do not fit the address space", path, size)
	}
	data, err := mapFile(f, int(size))
	if err != nil {
		return nil, fmt.Errorf("%s: mapping %d bytes: %w", path, size, err)
	}
	m := &mapping{path: path, data: data}
	err = guard([]*mapping{m}, func() error {
		if bytes.HasPrefix(data, lfsPointer) {
			return fmt.Errorf("%s: a Git LFS pointer, not the weights: fetch them with \"git lfs pull\"", path)
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

func (m *mapping) close() error {
	data := m.data
	m.data = nil
	if data == nil {
		return nil
	}
	if err := unmapFile(data); err != nil {
		return fmt.Errorf("%s: unmapping: %w", m.path, err)
	}
	return nil
}

func closeAll(maps []*mapping) error {
	var errs []error
	for _, m := range maps {
		errs = append(errs, m.close())
	}
	return errors.Join(errs...)
}

// openRegular opens path and returns its size. It looks before it opens:
// opening a pipe would wait for a writer.
func openRegular(path string) (*os.File, int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, pathError(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, pathError(path, err)
	}
	// The size that counts is that of the file we hold.
	if info, err = f.Stat(); err != nil {
		f.Close()
		return nil, 0, pathError(path, err)
	}
	return f, info.Size(), nil
}

// readBounded reads a whole file of at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > limit {
		return nil, fmt.Errorf("%s: %d bytes: expected at most %d", path, size, limit)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return nil, pathError(path, err)
	}
	return data, nil
}

// pathError drops the name of the system call: users asked for a path. That
// it is absent is said alike on every platform.
func pathError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// quoted quotes a name found in a file, cut so that a hostile one cannot
// flood the error line.
func quoted(name string) string {
	const limit = 96
	if len(name) > limit {
		return strconv.Quote(name[:limit]) + "…"
	}
	return strconv.Quote(name)
}
