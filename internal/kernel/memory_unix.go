//go:build unix

package kernel

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An Arena is memory outside the collector's heap, for packed weights:
// gigabytes that live as long as the model. The collector neither
// paces itself by them nor zeroes them twice, and failing to get
// them is an error instead of the end of the process. Its methods may be
// called from any goroutine; the zero value is ready.
type Arena struct {
	mu     sync.Mutex
	maps   [][]byte // all mappings, as unix.Mmap gave them
	free   []byte   // what is left of the newest chunk
	handed int64
}

const (
	cacheLine = 64
	hugePage  = 2 << 20 // amd64's, and arm64's with pages of 4 KiB
	chunkSize = 32 << 20
	// From here on a request has a mapping of its own: smaller ones share
	// chunks, so that no page that they touch is wasted, and leave at most
	// this much of a chunk unused, and untouched.
	ownMapping = chunkSize / 4
)

// Alloc returns n bytes, zeroed and aligned to a cache line, with len = cap.
// They stay valid until Free.
func (a *Arena) Alloc(n int) ([]byte, error) {
	if n < 0 || n > math.MaxInt-2*hugePage {
		return nil, fmt.Errorf("memory for %d bytes: expected 0 to %d", n, math.MaxInt-2*hugePage)
	}
	size := (n + cacheLine - 1) &^ (cacheLine - 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	mem, err := a.take(size)
	if err != nil {
		return nil, fmt.Errorf("memory for %d bytes: %w", n, err)
	}
	a.handed += int64(size)
	return mem[:n:n], nil
}

// take returns size bytes of the newest chunk, of a new one if that has too
// few, or of a mapping of their own.
func (a *Arena) take(size int) (mem []byte, err error) {
	if size >= ownMapping {
		return a.mapped(size)
	}
	if size > len(a.free) {
		if a.free, err = a.mapped(chunkSize); err != nil {
			return nil, err
		}
	}
	mem, a.free = a.free[:size], a.free[size:]
	return mem, nil
}

// mapped maps size bytes that begin at a huge page.
func (a *Arena) mapped(size int) ([]byte, error) {
	// The address space before the first huge page is never touched and costs
	// nothing.
	m, err := unix.Mmap(-1, 0, size+hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	a.maps = append(a.maps, m)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(m))) & (hugePage - 1))
	m = m[skip:][:size]
	if runtime.GOOS == "linux" {
		// Fewer TLB misses: 3–4 % of a decode. Only whole huge pages are
		// advised, so that a tail costs no more memory than it holds. Systems
		// without huge pages refuse, which does no harm.
		const hugePages = 14 // MADV_HUGEPAGE, which x/sys has for Linux alone
		_ = unix.Madvise(m[:size&^(hugePage-1)], hugePages)
	}
	return m, nil
}

// Bytes is the memory handed out, in bytes: what was asked for, rounded up to
// cache lines.
func (a *Arena) Bytes() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.handed
}

// Free gives all memory back to the system: slices of it must not be used any
// more. The arena is empty then and may be used again.
func (a *Arena) Free() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var errs []error
	for _, m := range a.maps {
		if err := unix.Munmap(m); err != nil {
			errs = append(errs, fmt.Errorf("unmap %d bytes: %w", len(m), err))
		}
	}
	a.maps, a.free, a.handed = nil, nil, 0
	return errors.Join(errs...)
}
