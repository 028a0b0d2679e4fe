package attention

import (
	"math"
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/tensor"
)

// nsaTolerance is that of the shared golden vectors.
const nsaTolerance = 2e-5

// An nsaRun is attention to one sequence or several.
type nsaRun struct {
	*NSA
	st    *nn.State
	cache *kvcache.Pool
}

func (e *nsaExample) open(t testing.TB, workers int, d tensor.DType) *nsaRun {
	t.Helper()
	pool, arena := kernel.NewPool(workers), new(kernel.Arena)
	t.Cleanup(func() {
		pool.Close()
		arena.Free()
	})
	a := &NSA{
		NSAConfig: e.NSAConfig, Heads: e.heads, KVHeads: e.kvHeads, KeyDim: e.keyDim, ValueDim: e.valueDim, Scale: float32(e.scale()),
	}
	if e.keyMLP != nil {
		a.KeyMLP, a.ValueMLP = e.keyMLP.pack(t, pool, arena, e.keyDim), e.valueMLP.pack(t, pool, arena, e.valueDim)
	}
	cache, err := kvcache.NewPool([]kvcache.LayerSpec{a.Cache()}, d, 4*e.tokens, 0)
	if err != nil {
		t.Fatal(err)
	}
	return &nsaRun{a, &nn.State{Pool: pool, Cache: cache}, cache}
}

func (m *mlpExample) pack(t testing.TB, pool *kernel.Pool, arena *kernel.Arena, dim int) *BlockMLP {
	t.Helper()
	linear := func(values, bias []float32, out int) *nn.Linear {
		data := make([]byte, 4*len(values))
		if err := tensor.Encode(tensor.F32, data, values); err != nil {
			t.Fatal(err)
		}
		matrix := &tensor.Matrix{Name: "w", DType: tensor.F32, Rows: out, Cols: len(values) / out, Data: data}
		w, err := (&kernel.Packer{Pool: pool, Arena: arena, Exact: true}).Pack(matrix, 0)
		if err != nil {
			t.Fatal(err)
		}
		return &nn.Linear{Weight: w, Bias: bias}
	}
	return &BlockMLP{Positions: m.positions, First: linear(m.w1, m.b1, m.inner), Second: linear(m.w2, m.b2, dim)}
}

// attendRows gives the rows [from, to) of an example to attention.
func (r *nsaRun) attendRows(t testing.TB, table *kvcache.Table, e *nsaExample, from, to int) []float32 {
	t.Helper()
	var step nn.Step
	r.begin(t, &step, []*kvcache.Table{table}, from, to)
	q, k, v, gates := e.rows(from, to)
	return slices.Clone(r.attend(&step, r.st, q, k, v, gates))
}

// begin makes a step of rows [from, to) of each table.
func (r *nsaRun) begin(t testing.TB, step *nn.Step, tables []*kvcache.Table, from, to int) {
	t.Helper()
	step.Reset()
	for _, table := range tables {
		if err := r.cache.Grow(table, to); err != nil {
			t.Fatal(err)
		}
		step.Add(table, from, make([]int32, to-from))
	}
	r.st.Begin(step, 0)
}

func (e *nsaExample) rows(from, to int) (q, k, v, gates []float32) {
	part := func(x []float32) []float32 {
		n := len(x) / e.tokens
		return x[from*n : to*n]
	}
	return part(e.q), part(e.k), part(e.v), part(e.gates)
}

// run is what the package makes of the example, chunk rows at a time.
func (e *nsaExample) run(t testing.TB, workers, chunk int) *nsaResults {
	t.Helper()
	r := e.open(t, workers, tensor.F32)
	got := &nsaResults{
		scores: make([]float32, e.kvHeads*e.tokens*e.selectBlocks()), selected: slices.Repeat([]int32{-1}, e.kvHeads*e.tokens*e.Select),
		window: make([]float32, e.tokens*e.heads*e.valueDim),
	}
	var table kvcache.Table
	var step nn.Step
	for from := 0; from < e.tokens; from += chunk {
		to := min(from+chunk, e.tokens)
		r.begin(t, &step, []*kvcache.Table{&table}, from, to)
		q, k, v, gates := e.rows(from, to)
		got.out = append(got.out, r.attend(&step, r.st, q, k, v, gates)...)
		got.compressed = append(got.compressed, r.compressed(&step, r.st, q)...)
		got.chosen = append(got.chosen, r.selected(&step, r.st, q)...)
		if e.Window > 0 {
			copy(got.window[from*e.heads*e.valueDim:], r.windowed(&step, r.st, q))
		}
		r.score(r.st, q, step.Seqs, step.Positions)
		for i, scores := range r.scores {
			copy(got.scores[(i%e.kvHeads*e.tokens+from+i/e.kvHeads)*e.selectBlocks():], scores)
		}
		r.choose(r.st, step.Positions)
		for i, blocks := range r.blocks {
			copy(got.selected[(i%e.kvHeads*e.tokens+from+i/e.kvHeads)*e.Select:], blocks)
		}
	}
	entry := make([]float32, e.kvHeads*(e.keyDim+e.valueDim))
	for i := range e.compressedBlocks() {
		r.st.Pool.LoadEntries(entry, r.st.Store(0, nsaCompressed), tensor.F32, len(entry), []int32{0}, []int32{int32(i)})
		for head := range slices.Chunk(entry, e.keyDim+e.valueDim) {
			got.keys, got.values = append(got.keys, head[:e.keyDim]...), append(got.values, head[e.keyDim:]...)
		}
	}
	return got
}

var (
	paper = NSAConfig{CompressBlock: 32, Stride: 16, SelectBlock: 64, Select: 4, Initial: 1, Local: 2, Window: 64}
	small = NSAConfig{CompressBlock: 4, Stride: 2, SelectBlock: 8, Select: 5, Initial: 1, Local: 2, Window: 7}
	plain = NSAConfig{CompressBlock: 8, Stride: 8, SelectBlock: 8, Select: 4, Initial: 1, Local: 2, Window: 12}
)

// nsaExamples have blocks of all forms, and rows whose choice is clear.
func nsaExamples() []*nsaExample {
	odd := NSAConfig{CompressBlock: 9, Stride: 3, SelectBlock: 9, Select: 3, Initial: 0, Local: 1, Window: 0}
	one := NSAConfig{CompressBlock: 1, Stride: 1, SelectBlock: 2, Select: 3, Initial: 1, Local: 1, Window: 1}
	return []*nsaExample{
		newNSAExample(1, paper, 4, 2, 16, 16, 520, 0),
		newNSAExample(2, small, 6, 2, 12, 8, 150, 20),
		newNSAExample(3, plain, 8, 2, 16, 32, 150, 0),
		newNSAExample(4, odd, 3, 3, 10, 6, 100, 0),
		newNSAExample(5, one, 4, 1, 8, 16, 40, 3),
	}
}

// Against float64, in one step, token by token and in chunks.
func TestNSAAgainstReference(t *testing.T) {
	var examples []*nsaExample
	var results []*nsaResults
	for _, e := range nsaExamples() {
		want := e.reference("")
		if m := e.margin(want); m < 1e-5 {
			t.Errorf("%+v: a choice of blocks is decided by %v", e.NSAConfig, m)
		}
		for _, chunk := range []int{e.tokens, 1, 17} {
			if err := e.run(t, 2, chunk).differs(want, nsaTolerance); err != nil {
				t.Errorf("%+v, in chunks of %d: %v", e.NSAConfig, chunk, err)
			}
		}
		examples, results = append(examples, e), append(results, want)
	}
	if list := unnoticed(examples, results, nsaTolerance); len(list) > 0 {
		t.Errorf("these mistakes would not be noticed: %q", list)
	}
}

// A row's bits are the same in one step and in chunks, on any number of
// workers, beside other sequences, and after rows were taken back, in every type
// of cache.
func TestNSABits(t *testing.T) {
	for _, e := range []*nsaExample{
		newNSAExample(6, small, 8, 2, 32, 32, 90, 12),
		newNSAExample(7, plain, 8, 2, 32, 64, 90, 0),
	} {
		other := newNSAExample(8, e.NSAConfig, e.heads, e.kvHeads, e.keyDim, e.valueDim, e.tokens, 0)
		for _, d := range []tensor.DType{tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0} {
			var table kvcache.Table
			want := e.open(t, 1, d).attendRows(t, &table, e, 0, e.tokens)
			check := func(name string, got []float32) {
				t.Helper()
				for i, w := range want {
					if math.Float32bits(got[i]) != math.Float32bits(w) {
						t.Fatalf("%v, %s: value %d is %v, want %v", d, name, i, got[i], w)
					}
				}
			}
			for _, chunk := range []int{1, 3, 50} {
				r, table := e.open(t, 3, d), kvcache.Table{}
				var got []float32
				for from := 0; from < e.tokens; from += chunk {
					to := min(from+chunk, e.tokens)
					// What is taken back leaves no trace.
					r.attendRows(t, &table, other, from, min(to+13, e.tokens))
					if err := r.cache.Rewind(&table, from); err != nil {
						t.Fatal(err)
					}
					got = append(got, r.attendRows(t, &table, e, from, to)...)
				}
				check("in chunks, taken back", got)
			}

			r := e.open(t, 3, d)
			var step nn.Step
			r.begin(t, &step, []*kvcache.Table{{}, {}, {}}, 0, e.tokens)
			join := func(a, b []float32) []float32 { return slices.Concat(b, a, b) }
			got := r.attend(&step, r.st, join(e.q, other.q), join(e.k, other.k), join(e.v, other.v), join(e.gates, other.gates))
			check("between other sequences", got[len(want):])
		}
	}
}

// A row that is not finite spoils itself and rows that attend to it: none before
// it, and no sequence that gets its pages later.
func TestNSANonFinite(t *testing.T) {
	const bad = 29 // completes no block: its own position is what rows read
	for _, value := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
		for _, c := range []NSAConfig{small, plain} {
			e := newNSAExample(10, c, 4, 2, 16, 16, 60, 0)
			broken := newNSAExample(10, c, 4, 2, 16, 16, 60, 0)
			for _, x := range [][]float32{broken.q, broken.k, broken.v} {
				n := len(x) / e.tokens
				copy(x[bad*n:], slices.Repeat([]float32{value}, n))
			}
			r := e.open(t, 2, tensor.F32)
			var table kvcache.Table
			want := r.attendRows(t, &table, e, 0, e.tokens)
			r.cache.Release(&table)
			n := bad * e.heads * e.valueDim
			got := r.attendRows(t, &table, broken, 0, e.tokens)
			if !slices.Equal(got[:n], want[:n]) {
				t.Errorf("%+v, %v: rows before it changed", c, value)
			}
			if own := got[n]; own == own {
				t.Errorf("%+v, %v: its own row is %v, expected NaN", c, value, own)
			}
			r.cache.Release(&table)
			if got := r.attendRows(t, &table, e, 0, e.tokens); !slices.Equal(got, want) {
				t.Errorf("%+v, %v: the next sequence in its pages changed", c, value)
			}
		}
	}
}

// Once memory has grown, decoding allocates nothing, whether it completes a
// block or not.
func TestNSAAllocatesNothing(t *testing.T) {
	for _, e := range []*nsaExample{newNSAExample(9, plain, 8, 2, 16, 16, 256, 0), newNSAExample(9, small, 8, 2, 16, 16, 256, 20)} {
		for _, rows := range []int{1, 8} {
			r := e.open(t, 2, tensor.F32)
			var table kvcache.Table
			r.attendRows(t, &table, e, 0, 100)
			if err := r.cache.Grow(&table, 256); err != nil {
				t.Fatal(err)
			}
			var step nn.Step
			q, k, v, gates := e.rows(0, rows)
			pos, tokens := 0, make([]int32, rows)
			decode := func() {
				for range 8 { // completes a block
					step.Reset()
					step.Add(&table, 100+pos%96, tokens)
					r.st.Begin(&step, 0)
					r.attend(&step, r.st, q, k, v, gates)
					pos += rows
				}
			}
			n := 1.0
			for i := 0; i < 50 && n != 0; i++ { // a worker's memory grows when it first comes in time for a task
				n = testing.AllocsPerRun(5, decode)
			}
			if n != 0 {
				t.Errorf("%d rows: %v allocations, want none", rows, n)
			}
		}
	}
}
