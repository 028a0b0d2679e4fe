package kernel

import (
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
	"pgregory.net/rapid"
)

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

// An entry that is no number spoils the heads that read it, in the rows that
// do, and nothing else.
func TestEntriesKeepNaNApart(t *testing.T) {
	eachAttention(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			a := drawEntryAttention(t, 9, 60)
			want := attendEntries(a, 1)
			at := rapid.IntRange(0, len(a.Sources)-1).Draw(t, "source")
			m := a.Sources[at].Entries.(*entryMemory)
			seq := int(rapid.SampledFrom(a.Seqs).Draw(t, "sequence"))
			bad := rapid.IntRange(0, len(m.seqs[seq])/m.size-1).Draw(t, "entry")
			copy(m.Entry(seq, bad), slices.Repeat([]byte{0xff}, m.size))
			got := attendEntries(a, 2)
			for row := range a.Seqs {
				for head := range a.Heads {
					reads := int(a.Seqs[row]) == seq && slices.Contains(read(&a, &a.Sources[at], row, head*a.KVHeads/a.Heads), bad)
					g, w := got[(row*a.Heads+head)*a.ValueDim:][:a.ValueDim], want[(row*a.Heads+head)*a.ValueDim:][:a.ValueDim]
					switch {
					case !reads && !sameBits(g, w):
						t.Fatalf("row %d, head %d: %v, without NaN in entry %d that it does not read %v", row, head, g, bad, w)
					case reads && slices.ContainsFunc(g, func(x float32) bool { return x == x }):
						t.Fatalf("row %d, head %d does not notice that entry %d is NaN: %v", row, head, bad, g)
					}
				}
			}
		})
	})
}
