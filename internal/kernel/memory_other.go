//go:build !unix

package kernel

import (
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"
)

// An Arena is memory for packed weights. On this system it comes
// from the collector's heap. Its methods may be called from any goroutine; the
// zero value is ready.
type Arena struct {
	handed atomic.Int64
}

const cacheLine = 64

// Alloc returns n bytes, zeroed and aligned to a cache line, with len = cap.
// They stay valid until Free.
func (a *Arena) Alloc(n int) ([]byte, error) {
	if n < 0 || n > math.MaxInt-2*cacheLine {
		return nil, fmt.Errorf("memory for %d bytes: expected 0 to %d", n, math.MaxInt-2*cacheLine)
	}
	size := (n + cacheLine - 1) &^ (cacheLine - 1)
	mem := make([]byte, size+cacheLine)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(mem))) & (cacheLine - 1))
	a.handed.Add(int64(size))
	return mem[skip:][:n:n], nil
}

// Bytes is the memory handed out, in bytes: what was asked for, rounded up to
// cache lines.
func (a *Arena) Bytes() int64 { return a.handed.Load() }

// Free lets go of all memory: slices of it must not be used any more.
// The arena is empty then and may be used again.
func (a *Arena) Free() error {
	a.handed.Store(0)
	return nil
}
