//go:build !unix && !windows

package checkpoint

import (
	"io"
	"os"
)

// Without a mapping the file is read; the memory is then the collector's.
func mapFile(f *os.File, size int) ([]byte, error) {
	data := make([]byte, size)
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, err
	}
	return data, nil
}

func unmapFile([]byte) error { return nil }
