package kernel

import (
	"fmt"
	"testing"
	"time"

	"github.com/foretoken/foretoken/internal/tensor"
)

// Attention over entries as models have it, in multiply-adds and with the share
// of the time that packing takes: what is saved where entries are not touched.
func BenchmarkEntries(b *testing.B) {
	causal := func(a *EntryAttention, rows, context int) []Source {
		src := Source{Entries: newEntryMemory(a.DType.RowBytes(width(a)), context+rows)}
		for row := range int32(rows) {
			src.To = append(src.To, int32(context)+row)
		}
		return []Source{src}
	}
	listed := func(n int) func(a *EntryAttention, rows, context int) []Source {
		return func(a *EntryAttention, rows, context int) []Source {
			src := Source{Entries: newEntryMemory(a.DType.RowBytes(width(a)), context+rows)}
			for i := range rows * a.KVHeads {
				list := make([]int32, n)
				for k := range list {
					list[k] = int32(context * k / n)
				}
				list[0] = int32(i % context)
				src.Lists = append(src.Lists, list)
			}
			return []Source{src}
		}
	}
	windowed := func(a *EntryAttention, rows, context int) []Source {
		window := causal(a, rows, context)
		for _, to := range window[0].To {
			window[0].From = append(window[0].From, to-128)
		}
		return append(window, listed(512)(a, rows, context)...)
	}
	for _, s := range []struct {
		name                             string
		heads, kvHeads, keyDim, valueDim int
		shared                           bool
		rows, context                    int
		sources                          func(a *EntryAttention, rows, context int) []Source
	}{
		{"V3", 128, 1, 576, 512, true, 1, 8192, causal},
		{"V3", 128, 1, 576, 512, true, 1, 65536, causal},
		{"V3.2", 128, 1, 576, 512, true, 1, 65536, listed(2048)},
		{"V2-Lite", 16, 1, 576, 512, true, 1, 8192, causal},
		{"V2-Lite", 16, 1, 576, 512, true, 4, 8192, causal},
		{"V2-Lite", 16, 1, 576, 512, true, 512, 0, causal},
		{"V4", 64, 1, 512, 512, true, 1, 16384, windowed},
		{"NSA", 64, 4, 192, 128, false, 1, 16384, listed(1024)},
	} {
		for _, d := range cacheTypes {
			a := EntryAttention{
				Heads: s.heads, KVHeads: s.kvHeads, KeyDim: s.keyDim, ValueDim: s.valueDim, Shared: s.shared, Scale: 0.1, DType: d,
				Q: random(1, s.rows*s.heads*s.keyDim), Out: make([]float32, s.rows*s.heads*s.valueDim), Seqs: make([]int32, s.rows),
			}
			for _, workers := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s/%d+%d/%v/t%d", s.name, s.context, s.rows, d, workers), func(b *testing.B) {
					if a.Sources == nil {
						a.Sources = s.sources(&a, s.rows, s.context)
						fillEntries(&a)
					}
					pool := NewPool(workers)
					defer pool.Close()
					products := 0
					for row := range s.rows {
						for head := range s.kvHeads {
							for i := range a.Sources {
								products += len(read(&a, &a.Sources[i], row, head)) * s.heads / s.kvHeads * (s.keyDim + s.valueDim)
							}
						}
					}
					pool.AttendEntries(a)
					b.ResetTimer()
					for range b.N {
						pool.AttendEntries(a)
					}
					b.StopTimer()
					all := b.Elapsed()
					b.ReportMetric(float64(products)*float64(b.N)/all.Seconds()/1e9, "GMAC/s")
					saved := active.entries
					defer func() { active.entries = saved }()
					for kind := range kvKinds {
						nothing := func([]byte, *[KVBlock]*byte, int, int) {}
						active.entries.keys[kind], active.entries.values[kind] = nothing, nothing
					}
					start := time.Now()
					for range b.N {
						pool.AttendEntries(a)
					}
					b.ReportMetric(100*(1-time.Since(start).Seconds()/all.Seconds()), "%packing")
				})
			}
		}
	}
}

// fillEntries stores random values, the same in all entries.
func fillEntries(a *EntryAttention) {
	n := width(a)
	x := make([]byte, a.DType.RowBytes(n))
	if err := tensor.Encode(a.DType, x, random(1, n)); err != nil {
		panic(err)
	}
	for _, src := range a.Sources {
		m := src.Entries.(*entryMemory)
		for i := range len(m.seqs[0]) / m.size {
			copy(m.Entry(0, i), x)
		}
	}
}
