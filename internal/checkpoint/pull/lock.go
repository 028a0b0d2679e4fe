package pull

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// lock takes an exclusive lock between processes (and goroutines) by the file at path, calling waiting once if
// somebody else holds it. The system drops it when its holder dies, so a killed download blocks nobody.
//
// Locks save work; they are not what keeps files right, since some network file systems grant them to everyone.
// Two downloads of one file that both believe they hold it write the same bytes at the same offsets, and what is
// renamed into place has been checked against its size and digest.
func lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	for first := true; ; first = false {
		ok, err := tryLock(f)
		if ok {
			return func() { f.Close() }, nil // closing unlocks
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		if first && waiting != nil {
			waiting()
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
