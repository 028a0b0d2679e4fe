package engine

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/testmodel"
)

// expertBytes is what a packed expert of the test model takes: two projections to
// its width, and one from eight segments of it, each filled to 32 values.
func expertBytes() int64 {
	s := testmodel.Family("qwen3_moe")
	return int64(4 * s.Hidden * (2*s.Experts.Inner + 8*32))
}

// With memory for few experts a request has the tokens that it has with all of
// them packed, alone and beside others.
func TestExpertMemory(t *testing.T) {
	all := open(t, "qwen3_moe", Options{Threads: 2})
	few := open(t, "qwen3_moe", Options{Threads: 2, ExpertMemory: 4 * expertBytes()})
	for seed := range 3 {
		r := Request{Prompt: prompt(seed, 30), Params: greedy(30)}
		if got, want := ids(generate(t, few, r)), ids(generate(t, all, r)); !slices.Equal(got, want) {
			t.Errorf("request %d: %v, want %v", seed, got, want)
		}
	}
}

func TestExpertMemoryErrors(t *testing.T) {
	for _, tc := range []struct {
		family string
		bytes  int64
		want   string
	}{
		{"qwen3", 1 << 30, "expert-memory: qwen3 has no experts"},
		{"qwen3_moe", -1, "expert-memory -1: expected a positive number"},
		{"qwen3_moe", expertBytes() - 1, "expected at least 81920, which hold one of each form"},
	} {
		e, err := Open(context.Background(), testmodel.GGUF(t, testmodel.Family(tc.family)), Options{Threads: 1, ExpertMemory: tc.bytes})
		if err == nil {
			e.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s with %d bytes: %v, want an error with %q", tc.family, tc.bytes, err, tc.want)
		}
	}
}

// An expert whose values cannot be rounded ends the requests that need it, with
// an error that names its tensor, and no others.
func TestExpertThatCannotBePacked(t *testing.T) {
	m := testmodel.New(testmodel.Family("qwen3_moe"))
	dir, broken := t.TempDir(), t.TempDir()
	if err := m.WriteSafetensors(dir); err != nil {
		t.Fatal(err)
	}
	const name = "model.layers.1.mlp.experts.4.up_proj.weight"
	m.Tensor(name).Values[7] = float32(math.NaN())
	if err := m.WriteSafetensors(broken); err != nil {
		t.Fatal(err)
	}
	o := Options{Threads: 2, Quantize: "q8_0", ExpertMemory: 1 << 20}
	if e, err := Open(context.Background(), broken, Options{Threads: 2, Quantize: "q8_0"}); err == nil {
		e.Close()
		t.Fatal("with all experts packed the model opens: the test needs another value")
	}
	clean, e := openDir(t, dir, o), openDir(t, broken, o)
	failed, after := 0, 0 // requests that failed, and those that did not after one had
	for token := range int32(40) {
		r := Request{Prompt: []int32{token}, Params: greedy(1)}
		got, err := collect(e, context.Background(), r)
		switch want := generate(t, clean, r); {
		case err != nil && strings.Contains(err.Error(), name):
			failed++
		case err != nil || got[0].ID != want[0].ID:
			t.Errorf("token %d: %v, %v; want %v", token, got, err, want)
		case failed > 0:
			after++
		}
	}
	if failed == 0 || after == 0 {
		t.Errorf("%d requests failed, and %d did not after the first of them", failed, after)
	}
}

func openDir(t *testing.T, path string, o Options) *Engine {
	t.Helper()
	e, err := Open(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// A step reads the experts that its rows choose, be they packed or not.
func TestWeightBytesOfExperts(t *testing.T) {
	s := testmodel.Family("qwen3_moe")
	n, k := float64(s.Experts.Count), float64(s.Experts.Active)
	all := open(t, "qwen3_moe", Options{Threads: 1})
	few := open(t, "qwen3_moe", Options{Threads: 1, ExpertMemory: 5 * expertBytes()})
	for rows, share := range map[int]float64{1: k / n, 2: 1 - (1-k/n)*(1-k/n), 10000: 1} {
		want := all.WeightBytes(10000) - int64((1-share)*n*float64(s.Layers)*float64(expertBytes()))
		for _, e := range []*Engine{all, few} {
			if got := e.WeightBytes(rows); math.Abs(float64(got-want)) > 2 {
				t.Errorf("%d rows read %d bytes, want %d", rows, got, want)
			}
		}
	}
}
