package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
)

// entryMemory holds the entries of some sequences. What was never stored is
// NaN.
type entryMemory struct {
	size int
	seqs [][]byte
}

func newEntryMemory(size int, lengths ...int) *entryMemory {
	m := &entryMemory{size: size}
	for _, n := range lengths {
		m.seqs = append(m.seqs, slices.Repeat([]byte{0xff}, n*size))
	}
	return m
}

func (m *entryMemory) Entry(seq, i int) []byte { return m.seqs[seq][i*m.size:][:m.size] }

// width is the number of values of an entry.
func width(a *EntryAttention) int {
	if a.Shared {
		return a.KVHeads * a.KeyDim
	}
	return a.KVHeads * (a.KeyDim + a.ValueDim)
}

// randomEntries are stored as a's type has them.
func randomEntries(a *EntryAttention, seed uint64, lengths ...int) *entryMemory {
	m, n := newEntryMemory(a.DType.RowBytes(width(a)), lengths...), width(a)
	for seq, length := range lengths {
		for i := range length {
			if err := tensor.Encode(a.DType, m.Entry(seq, i), random(seed+uint64(1000*seq+i), n)); err != nil {
				panic(err)
			}
		}
	}
	return m
}

// read is what a row reads of a source.
func read(a *EntryAttention, src *Source, row, head int) (entries []int) {
	if src.Lists != nil {
		for _, i := range src.Lists[row*a.KVHeads+head] {
			entries = append(entries, int(i))
		}
		return entries
	}
	from := 0
	if src.From != nil {
		from = int(src.From[row])
	}
	for i := from; i < int(src.To[row]); i++ {
		entries = append(entries, i)
	}
	return entries
}

// entryDefinition is the attention of one query vector, straight from the
// definition, and the largest magnitude of the values that it reads.
func entryDefinition(a *EntryAttention, row, head int) (out []float64, size float64) {
	q := a.Q[(row*a.Heads+head)*a.KeyDim:][:a.KeyDim]
	kvHead := head / (a.Heads / a.KVHeads)
	var scores []float64
	var vectors [][]float32
	entry := make([]float32, width(a))
	for i := range a.Sources {
		src := &a.Sources[i]
		for _, n := range read(a, src, row, kvHead) {
			tensor.Decode(a.DType, entry, src.Entries.Entry(int(a.Seqs[row]), n))
			key := entry[len(entry)/a.KVHeads*kvHead:]
			value := key[:a.ValueDim]
			if !a.Shared {
				value = key[a.KeyDim:][:a.ValueDim]
			}
			var s float64
			for d, x := range q {
				s += float64(x) * float64(key[d])
			}
			scores = append(scores, s*float64(a.Scale))
			vectors = append(vectors, slices.Clone(value))
		}
	}
	out = make([]float64, a.ValueDim)
	if len(scores) == 0 {
		return out, 0
	}
	top := slices.Max(scores)
	var sum float64
	if a.Sinks != nil {
		top = max(top, float64(a.Sinks[head]))
		sum = math.Exp(float64(a.Sinks[head]) - top)
	}
	for i, s := range scores {
		w := math.Exp(s - top)
		sum += w
		for d, v := range vectors[i] {
			out[d] += w * float64(v)
			size = max(size, math.Abs(float64(v)))
		}
	}
	for d := range out {
		out[d] /= sum
	}
	return out, size
}

// attendEntries runs a on a pool of its own.
func attendEntries(a EntryAttention, workers int) []float32 {
	pool := NewPool(workers)
	defer pool.Close()
	a.Out = slices.Repeat([]float32{float32(math.NaN())}, len(a.Seqs)*a.Heads*a.ValueDim)
	pool.AttendEntries(a)
	return a.Out
}

// In pairs, queries are rounded to bfloat16, and so are weights, which changes
// each by no more than 2⁻⁹ of it and their sum by as much.
func TestEntriesAgainstFloat64(t *testing.T) {
	for _, s := range []struct {
		name                             string
		heads, kvHeads, keyDim, valueDim int
		shared, sinks                    bool
		sources                          func(rows int, a *EntryAttention) []Source
	}{
		{"latent, causal", 16, 1, 96, 64, true, false, causal},
		{"latent of many heads, causal", 128, 1, 48, 32, true, false, causal},
		{"latent, lists", 16, 1, 96, 64, true, false, lists},
		{"window and lists, sinks", 8, 1, 64, 64, true, true, windowAndLists},
		{"lists of each head", 12, 3, 96, 64, false, false, lists},
		{"several heads, causal, sinks", 6, 2, 64, 32, false, true, causal},
		{"odd widths", 6, 2, 33, 7, false, false, causal},
		{"odd widths, shared", 3, 1, 9, 7, true, true, windowAndLists},
		{"half a narrow panel", 2, 1, 72, 72, false, false, causal},
		{"three sources", 4, 2, 64, 32, false, true, func(rows int, a *EntryAttention) []Source {
			return slices.Concat(lists(rows, a), causal(rows, a), lists(rows, a))
		}},
	} {
		t.Run(s.name, func(t *testing.T) {
			eachAttention(t, func(t *testing.T) {
				for _, d := range cacheTypes {
					if d == tensor.Q8_0 && (s.keyDim%32 != 0 || s.valueDim%32 != 0) {
						continue
					}
					const rows = 70
					a := EntryAttention{
						Heads: s.heads, KVHeads: s.kvHeads, KeyDim: s.keyDim, ValueDim: s.valueDim, Shared: s.shared, Scale: 0.3, DType: d,
						Q: random(3, rows*s.heads*s.keyDim), Seqs: make([]int32, rows),
					}
					if s.sinks {
						a.Sinks = random(4, s.heads)
					}
					a.Sources = s.sources(rows, &a)
					out := attendEntries(a, 2)
					bound, relative := 2e-5, 0.0
					if layoutOf(d, s.keyDim, s.valueDim).kind == kvPairs {
						roundTrip(d, a.Q)
						relative = 0x1p-8
					}
					for row := range rows {
						for h := range s.heads {
							want, size := entryDefinition(&a, row, h)
							for i, w := range want {
								if got := float64(out[(row*s.heads+h)*s.valueDim+i]); !(math.Abs(got-w) <= bound+relative*size) {
									t.Fatalf("%v, row %d, head %d, dimension %d: %v, want %v", d, row, h, i, got, w)
								}
							}
						}
					}
				}
			})
		})
	}
}

// causal lets row i read entries up to 30+i.
func causal(rows int, a *EntryAttention) []Source {
	src := Source{Entries: randomEntries(a, 1, 30+rows)}
	for row := range int32(rows) {
		src.To = append(src.To, 30+row)
	}
	return []Source{src}
}

// lists lets row i read i entries in some order, one list for each head.
func lists(rows int, a *EntryAttention) []Source {
	src := Source{Entries: randomEntries(a, 2, 200)}
	for i := range int32(rows * a.KVHeads) {
		list := []int32{}
		for n := range i / int32(a.KVHeads) {
			list = append(list, (7*i+13*n)%200)
		}
		src.Lists = append(src.Lists, list)
	}
	return []Source{src}
}

// windowAndLists has a window of 40 and what lists say.
func windowAndLists(rows int, a *EntryAttention) []Source {
	window := causal(rows, a)
	for _, to := range window[0].To {
		window[0].From = append(window[0].From, max(0, to-40))
	}
	return append(window, lists(rows, a)...)
}

// A sink takes its share of the sum.
func TestEntriesSinks(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, test := range []struct {
		sink, score float32
		want        float32 // the value is 1
	}{
		{0, 0, 0.5},
		{-inf, 0, 1},
		{-3e38, 0, 1},
		{3e38, 0, 0},
		{3e38, -3e38, 0},
		{-3e38, 3e38, 1},
		{1, 0, 1 / (1 + math.E)},
		{float32(math.Log(3)), 0, 0.25},
		{0, -inf, 0},
		{0, float32(math.NaN()), float32(math.NaN())},
	} {
		t.Run(fmt.Sprintf("sink %v, score %v", test.sink, test.score), func(t *testing.T) {
			eachAttention(t, func(t *testing.T) {
				for _, d := range []tensor.DType{tensor.F32, tensor.BF16} {
					a := EntryAttention{
						Heads: 2, KVHeads: 1, KeyDim: 2, ValueDim: 16, Scale: 1, DType: d,
						Q: []float32{1, 0, 1, 0}, Seqs: []int32{0}, Sinks: []float32{test.sink, -inf},
					}
					m := newEntryMemory(d.RowBytes(18), 1)
					NewPool(1).StoreEntries(m, d, append([]float32{test.score, 0}, slices.Repeat([]float32{1}, 16)...), 18, []int32{0}, []int32{0})
					a.Sources = []Source{{Entries: m, To: []int32{1}}}
					for i, got := range attendEntries(a, 1)[:16] {
						if !(math.Abs(float64(got-test.want)) <= 1e-3*float64(test.want)) && (got == got || test.want == test.want) {
							t.Fatalf("%v, dimension %d: %v, want %v", d, i, got, test.want)
						}
					}
				}
			})
		})
	}
}

// A row that reads nothing gets zeros, beside one that reads something, and
// whatever its sink.
func TestEntriesOfNothing(t *testing.T) {
	eachAttention(t, func(t *testing.T) {
		for _, sinks := range [][]float32{nil, {0, 5}, {float32(math.Inf(-1)), float32(math.Inf(1))}} {
			a := EntryAttention{
				Heads: 2, KVHeads: 1, KeyDim: 32, ValueDim: 32, Shared: true, Scale: 1, DType: tensor.F32,
				Q: random(1, 3*64), Seqs: []int32{0, 0, 0}, Sinks: sinks,
			}
			m := randomEntries(&a, 1, 40)
			for name, sources := range map[string][]Source{
				"ranges":     {{Entries: m, From: []int32{7, 0, 3}, To: []int32{7, 40, 0}}},
				"lists":      {{Entries: m, Lists: [][]int32{nil, {3}, {}}}},
				"both":       {{Entries: m, Lists: [][]int32{nil, {3}, {}}}, {Entries: m, To: []int32{0, 40, 0}}},
				"no sources": nil,
			} {
				a.Sources = sources
				out := attendEntries(a, 2)
				for _, row := range []int{0, 2} {
					if zeros := out[row*64:][:64]; !slices.Equal(zeros, make([]float32, 64)) {
						t.Errorf("%s, sinks %v: row %d is %v", name, sinks, row, zeros)
					}
				}
				if sinks == nil && sources != nil && slices.Contains(out[64:128], 0) {
					t.Errorf("%s: the row that reads something is %v", name, out[64:128])
				}
			}
		}
	})
}

// Decoding allocates nothing once memory has grown, spread over workers or not.
func TestAttendEntriesDoesNotAllocate(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		for _, workers := range []int{1, 3} {
			for _, d := range cacheTypes {
				pool := NewPool(workers)
				defer pool.Close()
				a := EntryAttention{
					Heads: 16, KVHeads: 1, KeyDim: 96, ValueDim: 64, Shared: true, Scale: 0.1, DType: d,
					Q: random(1, 16*96), Out: make([]float32, 16*64), Seqs: []int32{0}, Sinks: make([]float32, 16),
				}
				m := randomEntries(&a, 1, 1200)
				a.Sources = []Source{{Entries: m, To: []int32{1100}}, {Entries: m, Lists: [][]int32{{1, 5, 3}}}}
				x, seqs, slots := random(2, 96), []int32{0}, []int32{1100}
				n := 1.0
				for i := 0; i < 200 && n != 0; i++ { // a worker's memory grows when it first comes in time for a task
					n = testing.AllocsPerRun(20, func() {
						pool.StoreEntries(m, d, x, 96, seqs, slots)
						pool.AttendEntries(a)
					})
				}
				if n != 0 {
					t.Errorf("%v, %d workers: %v allocations", d, workers, n)
				}
			}
		}
	})
}
