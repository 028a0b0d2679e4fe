package attention

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/tensor"
)

// A latentLayer is latent attention of random weights, but for the projections
// of queries and outputs, over a cache that holds some positions.
type latentLayer struct {
	*MLA
	hidden int
	pool   *kernel.Pool
	packer *kernel.Packer
	random *rand.Rand
	cache  *kvcache.Pool
	st     *nn.State
	table  kvcache.Table // of a sequence as long as the cache
	step   nn.Step
}

func newLatentLayer(t testing.TB, m MLA, hidden, workers, positions int, d tensor.DType) *latentLayer {
	t.Helper()
	arena := new(kernel.Arena)
	l := &latentLayer{MLA: &m, hidden: hidden, pool: kernel.NewPool(workers), random: rand.New(rand.NewPCG(5, 6))}
	l.packer = &kernel.Packer{Pool: l.pool, Arena: arena}
	t.Cleanup(func() {
		l.pool.Close()
		arena.Free()
	})
	for range m.Heads {
		k := l.matrix(t, m.NopeDim, m.Rank)
		if !m.Expanded {
			k = k.Transpose()
		}
		l.K, l.V = append(l.K, l.pack(t, k)), append(l.V, l.pack(t, l.matrix(t, m.ValueDim, m.Rank)))
	}
	var err error
	if l.Rope, err = nn.NewRope(nn.RopeConfig{Theta: 10000, Dim: m.RopeDim}, nil); err != nil {
		t.Fatal(err)
	}
	if x := m.Indexer; x != nil {
		x.Q = &nn.Linear{Weight: l.pack(t, l.matrix(t, x.Heads*x.Dim, m.QueryRank))}
		x.K = &nn.Linear{Weight: l.pack(t, l.matrix(t, x.Dim, hidden))}
		x.W = &nn.Linear{Weight: l.pack(t, l.matrix(t, x.Heads, hidden))}
		x.KNorm, x.KBias, x.Rope = slices.Repeat([]float32{1}, x.Dim), make([]float32, x.Dim), l.Rope
	}
	if l.cache, err = kvcache.NewPool([]kvcache.LayerSpec{l.Cache()}, d, positions, 0); err != nil {
		t.Fatal(err)
	}
	l.st = &nn.State{Pool: l.pool, Cache: l.cache}
	return l
}

// begin readies a step of the rows from position pos on.
func (l *latentLayer) begin(pos, rows int) {
	if err := l.cache.Grow(&l.table, l.cache.Capacity()); err != nil {
		panic(err)
	}
	l.step.Reset()
	l.step.Add(&l.table, pos, make([]int32, rows))
	l.st.Begin(&l.step, 0)
	l.Rope.Prepare(l.st, l.step.Positions)
}

func (l *latentLayer) values(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(l.random.NormFloat64())
	}
	return v
}

// matrix is bfloat16, of a norm that keeps that of vectors.
func (l *latentLayer) matrix(t testing.TB, rows, cols int) *tensor.Matrix {
	data, gain := make([]byte, 2*rows*cols), float32(1/math.Sqrt(float64(cols)))
	for i := range rows * cols {
		binary.LittleEndian.PutUint16(data[2*i:], tensor.F32ToBF16(gain*float32(l.random.NormFloat64())))
	}
	m, err := tensor.NewMatrix("random", tensor.BF16, rows, cols, data)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (l *latentLayer) pack(t testing.TB, m *tensor.Matrix) *kernel.Weight {
	w, err := l.packer.Pack(m, 0)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// fill stores latent vectors, and index keys, at positions [0, n) of a sequence
// of the step.
func (l *latentLayer) fill(seq int32, n int) {
	const chunk = 4096
	for from := 0; from < n; from += chunk {
		var slots, seqs []int32
		for i := from; i < min(from+chunk, n); i++ {
			slots, seqs = append(slots, int32(i)), append(seqs, seq)
		}
		view := l.st.Store(0, latentStore)
		l.pool.StoreEntries(view, view.DType(), l.values(len(slots)*l.Width()), l.Width(), seqs, slots)
		if x := l.Indexer; x != nil {
			view := l.st.Store(0, indexStore)
			l.pool.StoreKeys(view, view.DType(), l.values(len(slots)*x.Dim), x.Dim, seqs, slots)
		}
	}
}

// attend is Forward without the projections of queries and outputs.
func (l *latentLayer) attend(q, latent, hidden, low, out []float32) {
	mark := l.st.Mark()
	view := l.st.Store(0, latentStore)
	l.pool.StoreEntries(view, view.DType(), latent, l.Width(), l.step.Seqs, l.step.Positions)
	if l.Indexer != nil {
		l.Indexer.prepare(&l.step, l.st, l.st.Store(0, indexStore), hidden, low)
	}
	if l.Expanded {
		l.attendExpanded(&l.step, l.st, view, q, out)
	} else {
		l.attendAbsorbed(&l.step, l.st, view, q, out)
	}
	l.st.Release(mark)
}

// More rows than are absorbed at a time, and more positions and heads than are
// expanded at a time: each row has the bits that it has alone, and both forms
// agree.
func TestPieces(t *testing.T) {
	config := MLAConfig{QueryRank: 8, Rank: 512, NopeDim: 16, RopeDim: 64, ValueDim: 16}
	const heads, positions, rows = 128, 1400, 60
	if most := pieceValues / (heads * config.Width()); rows <= most {
		t.Fatalf("%d rows, of which %d are absorbed at a time", rows, most)
	}
	if n := positions * heads * (config.HeadDim() + config.ValueDim); n <= expandedValues || positions <= expandedPositions {
		t.Fatalf("%d values, of which %d are expanded at a time", n, expandedValues)
	}
	var forms [2][]float32
	for form := range forms {
		l := newLatentLayer(t, MLA{MLAConfig: config, Heads: heads, Scale: 0.1, Expanded: form == 1}, 8, 2, positions, tensor.F32)
		l.begin(0, 1)
		l.fill(0, positions)
		n, v, w := heads*config.HeadDim(), heads*config.ValueDim, config.Width()
		q, latent, together := l.values(rows*n), l.values(rows*w), make([]float32, rows*v)
		l.begin(positions-rows, rows)
		l.attend(q, latent, nil, nil, together)
		for _, row := range []int{0, 31, 57, rows - 1} {
			alone := make([]float32, v)
			l.begin(positions-rows+row, 1)
			l.attend(q[row*n:(row+1)*n], latent[row*w:(row+1)*w], nil, nil, alone)
			if !slices.Equal(alone, together[row*v:(row+1)*v]) {
				t.Errorf("expanded %v: row %d differs from what it is alone", l.Expanded, row)
			}
		}
		forms[form] = together
	}
	for i, v := range forms[0] {
		if diff := math.Abs(float64(v - forms[1][i])); diff > 0.01 { // weights and activations are bfloat16
			t.Fatalf("value %d is %v absorbed and %v expanded", i, v, forms[1][i])
		}
	}
}

// So it is with more scores than exist at a time, of two sequences.
func TestSelectionInPieces(t *testing.T) {
	config := MLAConfig{QueryRank: 8, Rank: 240, NopeDim: 4, RopeDim: 16, ValueDim: 4}
	const heads, hidden, positions, rows = 32, 8, 14496, 270 // of each sequence
	if pieceValues/(heads*config.Width()) >= 2*rows || scoreValues >= pieceValues/(heads*config.Width())*(positions-rows) {
		t.Fatal("all rows are one piece")
	}
	x := &Indexer{IndexerConfig: IndexerConfig{Heads: 2, Dim: 16, TopK: 5}}
	l := newLatentLayer(t, MLA{MLAConfig: config, Heads: heads, Scale: 0.3, Indexer: x}, hidden, 2, 2*positions, tensor.F32)
	var tables [2]kvcache.Table
	for i := range tables {
		if err := l.cache.Grow(&tables[i], positions); err != nil {
			t.Fatal(err)
		}
	}
	// step has rows [from, to) of all.
	step := func(from, to int) {
		l.step.Reset()
		for i := range tables {
			if first, last := max(from-i*rows, 0), min(to-i*rows, rows); first < last {
				l.step.Add(&tables[i], positions-rows+first, make([]int32, last-first))
			}
		}
		l.st.Begin(&l.step, 0)
		l.Rope.Prepare(l.st, l.step.Positions)
	}
	step(0, 2*rows)
	l.fill(0, positions)
	l.fill(1, positions)
	q, latent := l.values(2*rows*heads*config.HeadDim()), l.values(2*rows*config.Width())
	in, low := l.values(2*rows*hidden), l.values(2*rows*config.QueryRank)
	attend := func(from, to int) []float32 {
		part := func(v []float32) []float32 { n := len(v) / (2 * rows); return v[from*n : to*n] }
		out := make([]float32, (to-from)*heads*config.ValueDim)
		step(from, to)
		l.attend(part(q), part(latent), part(in), part(low), out)
		return out
	}
	together := attend(0, 2*rows)
	for _, row := range []int{0, 250, rows - 1, rows, 400, 511, 512, 2*rows - 1} {
		n := heads * config.ValueDim
		if !slices.Equal(attend(row, row+1), together[row*n:(row+1)*n]) {
			t.Errorf("row %d differs from what it is alone", row)
		}
	}
}

// fp8 values are those of e4m3 times a power of two that fits the vector, close
// to what a Hadamard matrix makes of the values.
func TestIndexerFP8(t *testing.T) {
	const hidden, rows, positions = 16, 3, 40
	config := MLAConfig{QueryRank: 24, Rank: 32, NopeDim: 8, RopeDim: 8, ValueDim: 8}
	open := func(fp8 bool) *latentLayer {
		x := &Indexer{IndexerConfig: IndexerConfig{Heads: 4, Dim: 32, TopK: 8}, RoundFP8: fp8}
		return newLatentLayer(t, MLA{MLAConfig: config, Heads: 2, Scale: 0.3, Indexer: x}, hidden, 1, positions, tensor.F32)
	}
	plain, rounded := open(false), open(true)
	in, low := plain.values(rows*hidden), plain.values(rows*config.QueryRank)
	for _, l := range []*latentLayer{plain, rounded} {
		l.begin(positions-rows, rows)
		l.Indexer.prepare(&l.step, l.st, l.st.Store(0, indexStore), in, low)
	}
	codes, table := make([]byte, 256), make([]float32, 256)
	for i := range codes {
		codes[i] = byte(i)
	}
	tensor.Decode(tensor.F8E4M3, table, codes)

	const dim = 32
	for at := 0; at < len(plain.Indexer.q); at += dim {
		q, got := plain.Indexer.q[at:at+dim], rounded.Indexer.q[at:at+dim]
		turned, peak := make([]float64, dim), 0.0
		for i := range turned {
			for j, v := range q {
				turned[i] += hadamard(i, j) * float64(v) / math.Sqrt(dim)
			}
			peak = max(peak, math.Abs(turned[i]))
		}
		scale := math.Exp2(math.Ceil(math.Log2(peak / 448)))
		for i, v := range got {
			if !slices.Contains(table, float32(float64(v)/scale)) {
				t.Fatalf("query value %v is no e4m3 times %v", v, scale)
			}
			if diff := math.Abs(float64(v) - turned[i]); diff > math.Abs(turned[i])/16+scale*0x1p-10 {
				t.Fatalf("query value %v, before rounding %v", v, turned[i])
			}
		}
	}
}

// hadamard is an entry of Sylvester's matrix: the sign of the number of ones
// that two numbers share.
func hadamard(i, j int) float64 {
	sign := 1.0
	for both := i & j; both > 0; both &= both - 1 {
		sign = -sign
	}
	return sign
}

// What is kept of a position, of all layers, as published for the models.
func TestLatentCacheBytes(t *testing.T) {
	v3 := MLAConfig{QueryRank: 1536, Rank: 512, NopeDim: 128, RopeDim: 64, ValueDim: 128}
	v32 := &Indexer{IndexerConfig: IndexerConfig{Heads: 64, Dim: 128, TopK: 2048}}
	for _, tc := range []struct {
		name   string
		layer  MLA
		layers int
		want   int
	}{
		{"V2-Lite", MLA{MLAConfig: v3}, 27, 31104},
		{"V2", MLA{MLAConfig: v3}, 60, 69120},
		{"V3", MLA{MLAConfig: v3}, 61, 70272},
		{"V3.2", MLA{MLAConfig: v3, Indexer: v32}, 61, 61 * 1408},
	} {
		if got := kvcache.BytesPerToken(slices.Repeat([]kvcache.LayerSpec{tc.layer.Cache()}, tc.layers), tensor.BF16); got != tc.want {
			t.Errorf("%s: %d bytes for each token, want %d", tc.name, got, tc.want)
		}
	}
}
