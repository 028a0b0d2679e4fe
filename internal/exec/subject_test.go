package exec

import (
	"math"
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/tensor"
)

// subject is a model under test.
type subject struct {
	*Runner
	cache *kvcache.Pool
	vocab int
}

// A mode is how a model computes.
type mode struct {
	exact bool // activations in float32
	cache tensor.DType
}

var exactMode = mode{true, tensor.F32}

func open(t *testing.T, path string, workers int) *subject {
	t.Helper()
	return openMode(t, path, workers, exactMode)
}

func openMode(t *testing.T, path string, workers int, mode mode) *subject {
	t.Helper()
	return openWith(t, path, workers, mode, model.Options{})
}

func openWith(t *testing.T, path string, workers int, mode mode, o model.Options) *subject {
	t.Helper()
	c, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	pool := kernel.NewPool(workers)
	t.Cleanup(pool.Close)
	arena := new(kernel.Arena)
	t.Cleanup(func() { arena.Free() })
	o.Packing = nn.Packing{Packer: &kernel.Packer{Pool: pool, Arena: arena, Exact: mode.exact}}
	m, err := model.Load(c, o)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := kvcache.NewPool(m.Cache(), mode.cache, 1024, 0)
	if err != nil {
		t.Fatal(err)
	}
	return &subject{NewRunner(m, pool, cache, 0), cache, m.Config().Vocab}
}

// logits evaluates tokens from position pos on, chunk rows at a time.
func (s *subject) logits(t *testing.T, table *kvcache.Table, pos int, tokens []int32, chunk int) (all []float32) {
	t.Helper()
	var step nn.Step
	for len(tokens) > 0 {
		n := min(chunk, len(tokens))
		if err := s.cache.Grow(table, pos+n); err != nil {
			t.Fatal(err)
		}
		step.Reset()
		step.Add(table, pos, tokens[:n])
		if err := s.Run(&step, nil); err != nil {
			t.Fatal(err)
		}
		rows := make([]int, n)
		for i := range rows {
			rows[i] = i
		}
		all = append(all, s.Logits(rows)...)
		pos, tokens = pos+n, tokens[n:]
	}
	return all
}

func logSoftmax(logits []float32) []float64 {
	high := slices.Max(logits)
	var sum float64
	for _, v := range logits {
		sum += math.Exp(float64(v) - float64(high))
	}
	out := make([]float64, len(logits))
	for i, v := range logits {
		out[i] = float64(v) - float64(high) - math.Log(sum)
	}
	return out
}

// greedy continues prompt, read chunk rows at a time, by n tokens.
func (s *subject) greedy(t *testing.T, prompt []int32, n, chunk int) (out []int32) {
	t.Helper()
	var table kvcache.Table
	defer s.cache.Release(&table)
	logits := s.logits(t, &table, 0, prompt, chunk)
	for pos := len(prompt); len(out) < n; pos++ {
		row := logits[len(logits)-s.vocab:]
		out = append(out, int32(slices.Index(row, slices.Max(row))))
		logits = s.logits(t, &table, pos, out[len(out)-1:], 1)
	}
	return out
}

// checkBits checks that a row has the same bits in one pass, in chunks and on
// any number of workers.
func checkBits(t *testing.T, path string, mode mode, sequences [][]int32, workers, chunks []int) {
	t.Helper()
	reference := openMode(t, path, 1, mode)
	for _, tokens := range sequences {
		var table kvcache.Table
		want := reference.logits(t, &table, 0, tokens, len(tokens))
		reference.cache.Release(&table)
		for _, workers := range workers {
			s := openMode(t, path, workers, mode)
			for _, chunk := range chunks {
				got := s.logits(t, &table, 0, tokens, chunk)
				s.cache.Release(&table)
				for i := range want {
					if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
						t.Fatalf("%d workers, chunk %d: value %d is %v, in one pass %v", workers, chunk, i, got[i], want[i])
					}
				}
			}
		}
	}
}

// checkRewind checks that rows have the same bits after others were added
// behind the ones before them, as drafts are, and taken back.
func checkRewind(t *testing.T, path string, mode mode, sequences [][]int32) {
	t.Helper()
	s := openMode(t, path, 2, mode)
	for _, tokens := range sequences {
		var table kvcache.Table
		want := s.logits(t, &table, 0, tokens, len(tokens))
		s.cache.Release(&table)
		for pos, step := 0, 1; pos < len(tokens); step++ {
			n := min(1+step*7%23, len(tokens)-pos) // rows that stay
			got := s.logits(t, &table, pos, tokens[pos:pos+n], n)
			for i, v := range got {
				if math.Float32bits(v) != math.Float32bits(want[pos*s.vocab+i]) {
					t.Fatalf("value %d of the rows from %d on is %v after rewinding, %v in one pass", i, pos, v, want[pos*s.vocab+i])
				}
			}
			pos += n
			drafts := make([]int32, 1+step*29%kvcache.Slack)
			for i := range drafts {
				drafts[i] = int32((pos*31 + i*17) % s.vocab)
			}
			s.logits(t, &table, pos, drafts, 1+step%len(drafts))
			if err := s.cache.Rewind(&table, pos); err != nil {
				t.Fatal(err)
			}
		}
		s.cache.Release(&table)
	}
}
