package kvcache

import (
	"errors"
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
	"pgregory.net/rapid"
)

// Sequences grow, rewind and end in any order: free + held pages = pool, no
// page is held twice, and what was put is read back.
func TestPoolAccounting(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pool, err := NewPool([]LayerSpec{{Heads: 1, KeyDim: 1, ValueDim: 1}}, tensor.F32, 40*PageSize)
		if err != nil {
			rt.Fatal(err)
		}
		tables := make([]Table, 4)
		lengths := make([]int, 4)
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
						pool.Put(0, &tables[i], pos, []float32{float32(1000*i + pos)}, []float32{float32(-pos)})
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
				view := View{Pool: pool, Tables: []*Table{&tables[j]}}
				for pos := 0; pos < lengths[j]; pos += 7 {
					k, _ := view.Block(0, pos/PageSize)
					var got [1]float32
					tensor.Decode(tensor.F32, got[:], k[pos%PageSize*4:][:4])
					if got[0] != float32(1000*j+pos) {
						rt.Fatalf("sequence %d position %d holds %v", j, pos, got[0])
					}
				}
			}
		}
	})
}

func TestPutSeparatesLayersAndHeads(t *testing.T) {
	specs := []LayerSpec{{Heads: 2, KeyDim: 3, ValueDim: 1}, {Heads: 1, KeyDim: 1, ValueDim: 2}}
	pool, err := NewPool(specs, tensor.F16, 100)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := BytesPerToken(specs, tensor.F16), 2*(2*4+3); got != want {
		t.Errorf("%d bytes per token, want %d", got, want)
	}
	var table Table
	if err := pool.Grow(&table, 40); err != nil {
		t.Fatal(err)
	}
	pool.Put(0, &table, 33, []float32{1, 2, 3, 4, 5, 6}, []float32{7, 8})
	pool.Put(1, &table, 33, []float32{9}, []float32{10, 11})
	at := func(layer, width, head int, key bool) []float32 {
		k, v := (&View{Pool: pool, Layer: layer, Tables: []*Table{&table}}).Block(0, 1)
		if !key {
			k = v
		}
		out := make([]float32, width)
		tensor.Decode(tensor.F16, out, k[(head*PageSize+1)*2*width:][:2*width])
		return out
	}
	for _, c := range []struct{ got, want []float32 }{
		{at(0, 3, 0, true), []float32{1, 2, 3}},
		{at(0, 3, 1, true), []float32{4, 5, 6}},
		{at(0, 1, 0, false), []float32{7}},
		{at(0, 1, 1, false), []float32{8}},
		{at(1, 1, 0, true), []float32{9}},
		{at(1, 2, 0, false), []float32{10, 11}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
}

func TestNewPoolRefusesOtherTypes(t *testing.T) {
	if _, err := NewPool(nil, tensor.Q4_0, 1); err == nil {
		t.Error("Q4_0 was accepted")
	}
}
