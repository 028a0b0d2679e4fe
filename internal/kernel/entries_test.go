package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
	"pgregory.net/rapid"
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

// drawEntryAttention draws rows of some sequences and what they read.
func drawEntryAttention(t *rapid.T, maxRows, maxLength int) EntryAttention {
	a := EntryAttention{KVHeads: rapid.IntRange(1, 3).Draw(t, "kvHeads"), Scale: 0.4}
	a.Heads = a.KVHeads * rapid.SampledFrom([]int{1, 2, 3, 5, 8, 24, 32}).Draw(t, "group")
	a.DType = rapid.SampledFrom(cacheTypes).Draw(t, "dtype")
	widths := []int{16, 32, 48, 64, 80, 3}
	if a.DType == tensor.Q8_0 {
		widths = []int{32, 64}
	}
	a.KeyDim, a.ValueDim = rapid.SampledFrom(widths).Draw(t, "keyDim"), rapid.SampledFrom(widths).Draw(t, "valueDim")
	if a.Shared = rapid.Bool().Draw(t, "shared"); a.Shared {
		a.ValueDim = min(a.KeyDim, a.ValueDim)
	}
	if rapid.Bool().Draw(t, "sinks") {
		a.Sinks = random(rapid.Uint64().Draw(t, "seed"), a.Heads)
	}
	lengths := rapid.SliceOfN(rapid.IntRange(1, maxLength), 1, 3).Draw(t, "lengths")
	rows := rapid.IntRange(1, maxRows).Draw(t, "rows")
	a.Q = random(rapid.Uint64().Draw(t, "seed"), rows*a.Heads*a.KeyDim)
	for range rows {
		a.Seqs = append(a.Seqs, int32(rapid.IntRange(0, len(lengths)-1).Draw(t, "seq")))
	}
	slices.Sort(a.Seqs)
	for n := range rapid.IntRange(1, 3).Draw(t, "sources") {
		a.Sources = append(a.Sources, drawSource(t, &a, uint64(n), lengths))
	}
	return a
}

func drawSource(t *rapid.T, a *EntryAttention, n uint64, lengths []int) Source {
	src := Source{Entries: randomEntries(a, 77*n, lengths...)}
	kind := rapid.SampledFrom([]string{"to", "from and to", "lists"}).Draw(t, "kind")
	for _, seq := range a.Seqs {
		at := func() int32 { return int32(rapid.IntRange(0, lengths[seq]).Draw(t, "at")) }
		switch kind {
		case "from and to":
			src.From = append(src.From, at())
			fallthrough
		case "to":
			src.To = append(src.To, at())
		case "lists":
			for range a.KVHeads {
				list := make([]int32, rapid.SampledFrom([]int{0, 1, 31, 32, 33, int(at())}).Draw(t, "listed"))
				step := rapid.IntRange(1, 5).Draw(t, "step")
				for i := range list {
					list[i] = int32(i * step % lengths[seq])
				}
				src.Lists = append(src.Lists, list)
			}
		}
	}
	return src
}

// rowsOf is a with some of its rows alone.
func rowsOf(a EntryAttention, rows ...int) EntryAttention {
	b := a
	b.Q, b.Seqs, b.Sources = nil, nil, slices.Clone(a.Sources)
	for _, row := range rows {
		b.Q = append(b.Q, a.Q[row*a.Heads*a.KeyDim:][:a.Heads*a.KeyDim]...)
		b.Seqs = append(b.Seqs, a.Seqs[row])
	}
	for i, src := range a.Sources {
		b.Sources[i] = Source{Entries: src.Entries}
		for _, row := range rows {
			if src.From != nil {
				b.Sources[i].From = append(b.Sources[i].From, src.From[row])
			}
			if src.Lists != nil {
				b.Sources[i].Lists = append(b.Sources[i].Lists, src.Lists[row*a.KVHeads:][:a.KVHeads]...)
			} else {
				b.Sources[i].To = append(b.Sources[i].To, src.To[row])
			}
		}
	}
	return b
}

// The bits of a row are those it has alone on one worker, whatever the rows
// beside it and the number of workers.
func TestEntriesRowIndependence(t *testing.T) {
	eachAttention(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			a := drawEntryAttention(t, 9, 100)
			var want []float32
			for row := range a.Seqs {
				want = append(want, attendEntries(rowsOf(a, row), 1)...)
			}
			for _, workers := range []int{1, 2, 5} {
				if got := attendEntries(a, workers); !sameBits(got, want) {
					t.Fatalf("%d workers: %v, each row alone %v", workers, got, want)
				}
			}
		})
	})
}

// More workers than tiles and heads spread blocks among them.
func TestEntriesSpreadOverWorkers(t *testing.T) {
	eachAttention(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			a := drawEntryAttention(t, 3, 1500)
			pool := NewPool(rapid.IntRange(2, 9).Draw(t, "workers"))
			defer pool.Close()
			for _, rows := range [][]int{upTo(len(a.Seqs)), {0}} { // the second in memory that was used for another shape
				b := rowsOf(a, rows...)
				want := attendEntries(b, 1)
				b.Out = make([]float32, len(want))
				pool.AttendEntries(b)
				if !sameBits(b.Out, want) {
					t.Fatalf("%d workers: %v, one %v", pool.Workers(), b.Out, want)
				}
			}
		})
	})
}

// Attention over all entries is Attend's over the same keys and values, and a
// list of them says the same as a range.
func TestEntriesAsAttend(t *testing.T) {
	eachAttention(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			a, newToken := drawAttention(t)
			a.Window = 0
			length := rapid.IntRange(1, 100).Draw(t, "length")
			e := EntryAttention{
				Heads: a.Heads, KVHeads: a.KVHeads, KeyDim: a.KeyDim, ValueDim: a.ValueDim, Scale: a.Scale, DType: a.DType,
			}
			entries := newEntryMemory(a.DType.RowBytes(width(&e)), length)
			ranges, lists := Source{Entries: entries}, Source{Entries: entries}
			all := make([]int32, length)
			for i := range all {
				all[i] = int32(i)
			}
			var tokens []token
			pool := NewPool(1)
			defer pool.Close()
			for pos := range int32(length) {
				tok := newToken()
				tokens = append(tokens, tok)
				var x []float32
				for h := range a.KVHeads {
					x = slices.Concat(x, tok.k[h*a.KeyDim:][:a.KeyDim], tok.v[h*a.ValueDim:][:a.ValueDim])
				}
				pool.StoreEntries(entries, a.DType, x, len(x), []int32{0}, []int32{pos})
				e.Q, e.Seqs = append(e.Q, tok.q...), append(e.Seqs, 0)
				ranges.To = append(ranges.To, pos+1)
				for range a.KVHeads {
					lists.Lists = append(lists.Lists, all[:pos+1])
				}
			}
			want := slices.Concat(alone(a, tokens)...)
			for name, src := range map[string]Source{"ranges": ranges, "lists": lists} {
				e.Sources = []Source{src}
				if got := attendEntries(e, 2); !sameBits(got, want) {
					t.Fatalf("%s: %v, Attend has %v", name, got, want)
				}
			}
		})
	})
}

// What a row does not read may hold anything.
func TestEntriesThatAreNotRead(t *testing.T) {
	eachAttention(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			a := drawEntryAttention(t, 1, 100)
			want := attendEntries(a, 1)
			for i := range a.Sources {
				src := &a.Sources[i]
				kept := src.Entries.(*entryMemory)
				m := newEntryMemory(kept.size, make([]int, len(kept.seqs))...)
				seq := int(a.Seqs[0])
				m.seqs[seq] = slices.Repeat([]byte{0xff}, len(kept.seqs[seq]))
				for head := range a.KVHeads {
					size := kept.size / a.KVHeads
					for _, n := range read(&a, src, 0, head) {
						copy(m.Entry(seq, n)[head*size:][:size], kept.Entry(seq, n)[head*size:])
					}
				}
				src.Entries = m
			}
			if got := attendEntries(a, 2); !sameBits(got, want) {
				t.Fatalf("%v, with numbers where nothing is read %v", got, want)
			}
		})
	})
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

// Entries are stored as their type encodes them, by however many workers, and
// nothing beside them is written.
func TestStoreEntries(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		for _, d := range cacheTypes {
			for _, workers := range []int{1, 4} {
				const rows, n = 300, 576
				x := random(1, rows*n)
				m := newEntryMemory(d.RowBytes(n), rows, 2*rows)
				var seqs, slots []int32
				for row := range int32(rows) {
					seqs, slots = append(seqs, row%2), append(slots, (row*7)%rows)
				}
				pool := NewPool(workers)
				pool.StoreEntries(m, d, x, n, seqs, slots)
				pool.Close()
				want := newEntryMemory(d.RowBytes(n), rows, 2*rows)
				for row := range rows {
					if err := tensor.Encode(d, want.Entry(int(seqs[row]), int(slots[row])), x[row*n:][:n]); err != nil {
						t.Fatal(err)
					}
				}
				for seq := range want.seqs {
					if !slices.Equal(m.seqs[seq], want.seqs[seq]) {
						t.Errorf("%v, %d workers: entries of sequence %d differ", d, workers, seq)
					}
				}
			}
		}
	})
}

// Kernels pack entries as the twin does, and write and read nothing else.
func TestEntryKernelsAgainstTwin(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			kind := drawKind(t)
			l, _ := drawShape(t, kind)
			d := kvTypes[kind]
			offset := 2 * rapid.IntRange(0, 40).Draw(t, "offset/2")
			fences, entries := make([]fence[byte], KVBlock), [KVBlock]*byte{}
			size := d.RowBytes(max(l.keyDim, l.valueDim))
			for lane := range entries {
				packed := make([]byte, size)
				if err := tensor.Encode(d, packed, random(rapid.Uint64().Draw(t, "seed"), size/d.BlockBytes()*d.BlockLen())); err != nil {
					t.Fatal(err)
				}
				fences[lane] = fenced(packed)
				entries[lane] = &fences[lane].all[fenceBytes-offset]
			}
			keys, values := fenced(make([]byte, l.keyBytes)), fenced(make([]byte, l.headBytes-l.keyBytes))
			active.entries.keys[kind](keys.slice, &entries, offset, d.RowBytes(l.keyDim))
			active.entries.values[kind](values.slice, &entries, offset, d.RowBytes(l.valueDim))
			wantKeys, wantValues := make([]byte, l.keyBytes), make([]byte, l.headBytes-l.keyBytes)
			entriesGeneric.keys[kind](wantKeys, &entries, offset, d.RowBytes(l.keyDim))
			entriesGeneric.values[kind](wantValues, &entries, offset, d.RowBytes(l.valueDim))
			if !slices.Equal(keys.slice, wantKeys) {
				t.Fatalf("keys of %d: %x, twin %x", l.keyDim, keys.slice, wantKeys)
			}
			if !slices.Equal(values.slice, wantValues) {
				t.Fatalf("values of %d: %x, twin %x", l.valueDim, values.slice, wantValues)
			}
			keys.check(t, "keys")
			values.check(t, "values")
		})
	})
}
