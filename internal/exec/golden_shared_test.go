//go:build shared

package exec

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/fixtures"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/tensor"
)

// golden is one model of the fixtures.
type golden struct {
	dir       string
	sequences [][]int32
	meta      struct {
		Checks []struct {
			File      string
			Tolerance float64
		}
		Greedy []struct {
			Sequence int
			Tokens   []int32
		}
	}
}

func openGolden(t *testing.T, name string) *golden {
	g := &golden{dir: fixtures.Golden(t, "models", name)}
	var tokens struct{ Sequences [][]int32 }
	fixtures.ReadJSON(t, filepath.Join(g.dir, "tokens.json"), &tokens)
	fixtures.ReadJSON(t, filepath.Join(g.dir, "meta.json"), &g.meta)
	g.sequences = tokens.Sequences
	return g
}

func readFloats(t *testing.T, path string) []float32 {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	v := make([]float32, len(data)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return v
}

func forEachGolden(t *testing.T, f func(t *testing.T, g *golden, path string)) {
	for _, name := range fixtures.Models {
		for _, file := range []string{"model.gguf", "model.safetensors"} {
			t.Run(name+"/"+file, func(t *testing.T) {
				g := openGolden(t, name)
				f(t, g, filepath.Join(g.dir, file))
			})
		}
	}
}

func TestGoldenLogProbs(t *testing.T) {
	forEachGolden(t, func(t *testing.T, g *golden, path string) {
		s := open(t, path, 2)
		for _, check := range g.meta.Checks {
			want := readFloats(t, filepath.Join(g.dir, check.File))
			worst := 0.0
			for _, tokens := range g.sequences {
				var table kvcache.Table
				logits := s.logits(t, &table, 0, tokens, len(tokens))
				s.cache.Release(&table)
				for range tokens {
					for i, p := range logSoftmax(logits[:s.vocab]) {
						diff := math.Abs(p - float64(want[i]))
						if !(diff <= check.Tolerance) {
							t.Fatalf("%s: log-probability %v, want %v", check.File, p, want[i])
						}
						worst = max(worst, diff)
					}
					logits, want = logits[s.vocab:], want[s.vocab:]
				}
			}
			if len(want) != 0 {
				t.Errorf("%s: %d values too many", check.File, len(want))
			}
			t.Logf("%s: largest difference %.2g of %.2g", check.File, worst, check.Tolerance)
		}
	})
}

func TestGoldenGreedy(t *testing.T) {
	forEachGolden(t, func(t *testing.T, g *golden, path string) {
		s := open(t, path, 2)
		for _, want := range g.meta.Greedy {
			got := s.greedy(t, g.sequences[want.Sequence], len(want.Tokens), len(g.sequences[want.Sequence]))
			if !slices.Equal(got, want.Tokens) {
				t.Errorf("sequence %d: got %v, want %v", want.Sequence, got, want.Tokens)
			}
		}
	})
}

func TestGoldenBits(t *testing.T) {
	forEachGolden(t, func(t *testing.T, g *golden, path string) {
		checkBits(t, path, exactMode, g.sequences, []int{1, 2, 3, 7}, []int{1, 3, 16, 64})
		checkBits(t, path, mode{false, tensor.F16}, g.sequences, []int{2}, []int{1, 5, 64})
	})
}

func TestGoldenRewind(t *testing.T) {
	forEachGolden(t, func(t *testing.T, g *golden, path string) {
		checkRewind(t, path, exactMode, g.sequences)
		checkRewind(t, path, mode{false, tensor.BF16}, g.sequences)
	})
}
