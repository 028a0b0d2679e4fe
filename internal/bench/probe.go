package bench

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/foretoken/foretoken/internal/kernel"
)

// A prober measures the speed at which memory is read now, in GB/s.
type prober func() float64

// probeBytes is the size of what the probe reads: several times any cache.
const probeBytes = 1 << 30

// newMemory returns a probe of size bytes of arena, each thread reading its
// part: what a decode step would do if reading weights and cache were all
// there is to it.
func newMemory(arena *kernel.Arena, size, threads int) (prober, error) {
	data, err := arena.Alloc(size)
	if err != nil {
		return nil, err
	}
	for i := 0; i < size; i += 4096 {
		data[i] = 1 // pages never written are all the same one, and in the cache
	}
	lines := size / 64
	return func() float64 {
		start := time.Now()
		var all sync.WaitGroup
		for i := range threads {
			from, to := i*lines/threads*64, (i+1)*lines/threads*64
			all.Go(func() { read(data[from:to]) })
		}
		all.Wait()
		return float64(size) / max(time.Since(start).Seconds(), 1e-9) / 1e9
	}, nil
}

// sink keeps reads from being optimised away.
var sink atomic.Uint64

// read reads all of data, whole cache lines. Four
// sums are independent, so loads overlap: two of 8 bytes in a cycle ask for
// more than memory gives to one core, and vector loads are no faster.
func read(data []byte) {
	words := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/8)
	var a, b, c, d uint64
	for len(words) >= 8 {
		line := (*[8]uint64)(words)
		a += line[0] + line[4]
		b += line[1] + line[5]
		c += line[2] + line[6]
		d += line[3] + line[7]
		words = words[8:]
	}
	sink.Add(a + b + c + d)
}
