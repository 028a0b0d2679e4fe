package kvcache

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/foretoken/foretoken/internal/tensor"
	"pgregory.net/rapid"
)

// Sequences grow, rewind and end in any order: free + held pages = pool, no
// page is held twice, and what was written is read back.
func TestPoolAccounting(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pool, err := NewPool([]LayerSpec{{Heads: 1, KeyDim: 1, ValueDim: 1}}, tensor.F32, 40*PageSize)
		if err != nil {
			rt.Fatal(err)
		}
		tables := make([]Table, 4)
		lengths := make([]int, 4)
		block := func(i, b int) []byte { return (&View{Pool: pool, Tables: []*Table{&tables[i]}}).Block(0, b) }
		for step := range 60 {
			i := rapid.IntRange(0, 3).Draw(rt, "sequence")
			n := rapid.IntRange(0, 20*PageSize).Draw(rt, "length")
			if n < lengths[i] {
				pool.Rewind(&tables[i], n)
				lengths[i] = n
			} else {
				held := len(tables[i].pages)
				var full *ErrFull
				switch err := pool.Grow(&tables[i], n); {
				case err == nil:
					for pos := lengths[i]; pos < n; pos++ {
						binary.LittleEndian.PutUint32(block(i, pos/PageSize)[pos%PageSize*4:], uint32(1000*i+pos))
					}
					lengths[i] = n
				case !errors.As(err, &full) || full.Want <= full.Free || len(tables[i].pages) != held:
					rt.Fatalf("step %d: %v", step, err)
				}
			}
			seen := map[int32]bool{}
			held := 0
			for j := range tables {
				for _, p := range tables[j].pages {
					if seen[p] {
						rt.Fatalf("page %d is held twice", p)
					}
					seen[p] = true
					held++
				}
			}
			if pool.Free()+held != 40 {
				rt.Fatalf("%d free + %d held pages, expected 40", pool.Free(), held)
			}
			for j := range tables {
				for pos := 0; pos < lengths[j]; pos += 7 {
					if got := binary.LittleEndian.Uint32(block(j, pos/PageSize)[pos%PageSize*4:]); got != uint32(1000*j+pos) {
						rt.Fatalf("sequence %d position %d holds %v", j, pos, got)
					}
				}
			}
		}
	})
}

// Every block is its own: of the right size, on cache lines, and apart from
// those of other layers, pages and sequences.
func TestBlocksAreApart(t *testing.T) {
	specs := []LayerSpec{{Heads: 2, KeyDim: 32, ValueDim: 64}, {Heads: 1, KeyDim: 64, ValueDim: 32}, {Heads: 3, KeyDim: 32, ValueDim: 32}}
	for d, want := range map[tensor.DType]int{ // 2·96 + 96 + 3·64 values
		tensor.F32: 480 * 4, tensor.F16: 480 * 2, tensor.BF16: 480 * 2, tensor.Q8_0: 480 / 32 * 34,
	} {
		if got := BytesPerToken(specs, d); got != want {
			t.Errorf("%v: %d bytes per token, want %d", d, got, want)
		}
		pool, err := NewPool(specs, d, 10*PageSize)
		if err != nil {
			t.Fatal(err)
		}
		var tables [2]Table
		if err := errors.Join(pool.Grow(&tables[0], 3*PageSize), pool.Grow(&tables[1], 7*PageSize)); err != nil {
			t.Fatal(err)
		}
		each := func(f func(block []byte, name byte)) {
			name := byte(0)
			for layer, spec := range specs {
				view := View{Pool: pool, Layer: layer, Tables: []*Table{&tables[0], &tables[1]}}
				for seq := range tables {
					for b := range tables[seq].pages {
						block := view.Block(seq, b)
						if len(block) != PageSize*spec.BytesPerToken(d) {
							t.Fatalf("%v: a block of layer %d has %d bytes, want %d", d, layer, len(block), PageSize*spec.BytesPerToken(d))
						}
						if uintptr(unsafe.Pointer(&block[0]))%lineBytes != 0 {
							t.Errorf("%v: a block of layer %d begins inside a cache line", d, layer)
						}
						name++
						f(block, name)
					}
				}
			}
		}
		each(func(block []byte, name byte) {
			for i := range block {
				block[i] = name
			}
		})
		each(func(block []byte, name byte) {
			for i, got := range block {
				if got != name {
					t.Fatalf("%v: byte %d of block %d belongs to block %d", d, i, name, got)
				}
			}
		})
	}
}

func TestNewPoolRefuses(t *testing.T) {
	for _, test := range []struct {
		spec LayerSpec
		d    tensor.DType
		want string
	}{
		{LayerSpec{1, 32, 32}, tensor.Q4_0, "cache dtype Q4_0: expected F32, F16, BF16 or Q8_0"},
		{LayerSpec{1, 32, 80}, tensor.Q8_0, "layer 0 has keys of 32 and values of 80, expected multiples of 32"},
		{LayerSpec{1, 12, 32}, tensor.Q8_0, "layer 0 has keys of 12 and values of 32, expected multiples of 32"},
	} {
		if _, err := NewPool([]LayerSpec{test.spec}, test.d, 1); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v of %v: error %v, want %q", test.d, test.spec, err, test.want)
		}
	}
}
