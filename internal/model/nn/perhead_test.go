package nn

import (
	"testing"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/tensor"
)

// Each head multiplies its own rows, or the rows that all share, by its matrix.
func TestPerHead(t *testing.T) {
	pool := kernel.NewPool(2)
	defer pool.Close()
	arena := new(kernel.Arena)
	defer arena.Free()
	const heads, rows, in, out = 3, 5, 2, 4
	var p PerHead
	weight := func(head, o, i int) float32 { return float32(100*head + 10*o + i) }
	for h := range heads {
		values := make([]float32, 0, out*in)
		for o := range out {
			for i := range in {
				values = append(values, weight(h, o, i))
			}
		}
		data := make([]byte, 4*len(values))
		if err := tensor.Encode(tensor.F32, data, values); err != nil {
			t.Fatal(err)
		}
		w, err := (&kernel.Packer{Pool: pool, Arena: arena, Exact: true}).Pack(&tensor.Matrix{Name: "w", DType: tensor.F32, Rows: out, Cols: in, Data: data}, 0)
		if err != nil {
			t.Fatal(err)
		}
		p = append(p, w)
	}
	x := make([]float32, heads*rows*in)
	for i := range x {
		x[i] = float32(i + 1)
	}
	st := &State{Pool: pool}
	check := func(name string, y []float32, apart int) {
		if len(y) != heads*rows*out {
			t.Fatalf("%s: %d values, want %d", name, len(y), heads*rows*out)
		}
		for h := range heads {
			for r := range rows {
				for o := range out {
					var want float32
					for i := range in {
						want += weight(h, o, i) * x[(h*apart+r)*in+i]
					}
					if got := y[(h*rows+r)*out+o]; got != want {
						t.Errorf("%s: head %d, row %d, output %d is %v, want %v", name, h, r, o, got, want)
					}
				}
			}
		}
	}
	check("of each head", p.Forward(st, x), rows)
	check("shared", p.Broadcast(st, x[:rows*in]), 0)
}
