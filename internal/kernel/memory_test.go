package kernel

import (
	"bytes"
	"sync"
	"testing"
	"unsafe"
)

// Sizes around every border of an arena: cache lines, chunks, own mappings.
var arenaSizes = []int{0, 1, 63, 64, 65, 4096, 1 << 20, 8<<20 - 64, 8<<20 - 63, 8 << 20, 9<<20 + 1, 33 << 20}

func TestArenaGivesZeroedAlignedMemoryOfItsOwn(t *testing.T) {
	var a Arena
	var taken [][]byte
	var want int64
	for round := range 2 {
		for _, n := range arenaSizes {
			mem, err := a.Alloc(n)
			if err != nil {
				t.Fatal(err)
			}
			if len(mem) != n || cap(mem) != n {
				t.Fatalf("%d bytes: got %d with room for %d", n, len(mem), cap(mem))
			}
			if at := uintptr(unsafe.Pointer(unsafe.SliceData(mem))); at%64 != 0 {
				t.Errorf("%d bytes at %#x, which is no cache line", n, at)
			}
			if bytes.Count(mem, []byte{0}) != n {
				t.Errorf("%d bytes in round %d are not zero", n, round)
			}
			want += int64(n+63) / 64 * 64
			taken = append(taken, mem)
			for i := range mem {
				mem[i] = byte(len(taken))
			}
		}
	}
	for i, mem := range taken {
		if bytes.Count(mem, []byte{byte(i + 1)}) != len(mem) {
			t.Errorf("piece %d of %d bytes was overwritten", i, len(mem))
		}
	}
	if got := a.Bytes(); got != want {
		t.Errorf("%d bytes handed out, want %d", got, want)
	}
	for range 2 {
		if err := a.Free(); err != nil {
			t.Error(err)
		}
	}
	if got := a.Bytes(); got != 0 {
		t.Errorf("%d bytes after Free, want 0", got)
	}
	mem, err := a.Alloc(100)
	if err != nil || len(mem) != 100 {
		t.Fatalf("after Free: %d bytes, %v; want 100", len(mem), err)
	}
	mem[99]++ // faults if it is part of what was freed
	if err := a.Free(); err != nil {
		t.Error(err)
	}
}

func TestArenaFromManyGoroutines(t *testing.T) {
	var a Arena
	defer a.Free()
	var all sync.WaitGroup
	for id := range 8 {
		all.Go(func() {
			var mine [][]byte
			for i := range 50 {
				mem, err := a.Alloc(i * 5000)
				if err != nil {
					t.Error(err)
					return
				}
				for k := range mem {
					mem[k] += byte(id + 1)
				}
				mine = append(mine, mem)
			}
			for _, mem := range mine {
				if bytes.Count(mem, []byte{byte(id + 1)}) != len(mem) {
					t.Errorf("goroutine %d shares %d bytes with another", id, len(mem))
				}
			}
		})
	}
	all.Wait()
}

func TestArenaRefusesImpossibleSizes(t *testing.T) {
	var a Arena
	for _, n := range []int{-1, int(^uint(0) >> 1)} {
		if mem, err := a.Alloc(n); err == nil {
			t.Errorf("%d bytes: got %d, want an error", n, len(mem))
		}
	}
	if a.Bytes() != 0 {
		t.Errorf("%d bytes handed out, want none", a.Bytes())
	}
}
