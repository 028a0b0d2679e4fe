//go:build shared

package attention

import (
	"encoding/binary"
	"math"
	"os"
	"testing"

	"github.com/foretoken/foretoken/internal/fixtures"
)

// nsaGolden reads an example and its results.
func nsaGolden(t *testing.T, name string) (*nsaExample, *nsaResults, float64) {
	t.Helper()
	var meta struct {
		Heads         int     `json:"query_heads"`
		KVHeads       int     `json:"kv_heads"`
		KeyDim        int     `json:"key_dim"`
		ValueDim      int     `json:"value_dim"`
		Tokens        int     `json:"tokens"`
		CompressBlock int     `json:"compress_block"`
		Stride        int     `json:"compress_stride"`
		SelectBlock   int     `json:"select_block"`
		Select        int     `json:"select_count"`
		Initial       int     `json:"initial_blocks"`
		Local         int     `json:"local_blocks"`
		Window        int     `json:"window"`
		Tolerance     float64 `json:"tolerance"`
		Compression   string  `json:"compression"`
	}
	fixtures.ReadJSON(t, fixtures.Golden(t, "nsa", name, "meta.json"), &meta)
	read := func(file string) []byte {
		data, err := os.ReadFile(fixtures.Golden(t, "nsa", name, file))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	floats := func(array string) []float32 {
		data := read(array + ".f32")
		v := make([]float32, len(data)/4)
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
		return v
	}
	e := &nsaExample{
		NSAConfig: NSAConfig{
			CompressBlock: meta.CompressBlock, Stride: meta.Stride,
			SelectBlock: meta.SelectBlock, Select: meta.Select, Initial: meta.Initial, Local: meta.Local, Window: meta.Window,
		},
		heads: meta.Heads, kvHeads: meta.KVHeads, keyDim: meta.KeyDim, valueDim: meta.ValueDim, tokens: meta.Tokens,
		q: floats("q"), k: floats("k"), v: floats("v"), gates: floats("gates"),
	}
	mlp := func(of string) *mlpExample {
		b1 := floats(of + "_b1")
		return &mlpExample{inner: len(b1), positions: floats(of + "_pe"), w1: floats(of + "_w1"), b1: b1, w2: floats(of + "_w2"), b2: floats(of + "_b2")}
	}
	if meta.Compression == "mlp" {
		e.keyMLP, e.valueMLP = mlp("k"), mlp("v")
	}
	w := &nsaResults{
		keys: floats("compressed_k"), values: floats("compressed_v"), scores: floats("block_score"),
		compressed: floats("out_compressed"), chosen: floats("out_selected"), window: floats("out_window"), out: floats("out"),
	}
	selected := read("selected.i32")
	for ; len(selected) > 0; selected = selected[4:] {
		w.selected = append(w.selected, int32(binary.LittleEndian.Uint32(selected)))
	}
	return e, w, meta.Tolerance
}

func TestNSAGolden(t *testing.T) {
	var examples []*nsaExample
	var results []*nsaResults
	for _, name := range []string{"mean-pool", "mlp"} {
		e, want, tolerance := nsaGolden(t, name)
		if tolerance != nsaTolerance {
			t.Errorf("%s: a tolerance of %v, the tests have %v", name, tolerance, nsaTolerance)
		}
		for _, chunk := range []int{e.tokens, 1, 23} {
			if err := e.run(t, 2, chunk).differs(want, tolerance); err != nil {
				t.Errorf("%s, in chunks of %d: %v", name, chunk, err)
			}
		}
		if err := e.reference("").differs(want, tolerance); err != nil {
			t.Errorf("%s: the tests' reference: %v", name, err)
		}
		examples, results = append(examples, e), append(results, want)
	}
	if list := unnoticed(examples, results, nsaTolerance); len(list) > 0 {
		t.Errorf("these mistakes would not be noticed: %q", list)
	}
}
