//go:build unix

package kernel

import (
	"math"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

// What the system cannot give is an error that names the size.
func TestArenaOutOfMemory(t *testing.T) {
	const n = math.MaxInt - 4*hugePage // in range, and all of the address space
	var a Arena
	mem, err := a.Alloc(n)
	if err == nil {
		t.Fatalf("got %d bytes", len(mem))
	}
	if !strings.Contains(err.Error(), strconv.Itoa(n)+" bytes") {
		t.Errorf("error %q does not name the size", err)
	}
	if mem, err = a.Alloc(64); err != nil || len(mem) != 64 {
		t.Errorf("afterwards: %d bytes, %v; want 64", len(mem), err)
	}
	if err := a.Free(); err != nil {
		t.Error(err)
	}
}

func TestArenaIsOffTheHeap(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var a Arena
	defer a.Free()
	for range 64 {
		if _, err := a.Alloc(1 << 20); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("64 MiB took %d bytes of the heap", grown)
	}
}

// Freed memory is the system's again: touching it faults.
func TestArenaFreeUnmaps(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	for _, n := range []int{64, 16 << 20} {
		var a Arena
		mem, err := a.Alloc(n)
		if err != nil {
			t.Fatal(err)
		}
		mem[0] = 1
		if err := a.Free(); err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() { _ = recover() }()
			t.Errorf("%d bytes can be read after Free: %d", n, mem[0])
		}()
	}
}
