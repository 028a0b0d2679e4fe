package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
)

// The indexer of DeepSeek-V3.2: one row that is decoded, and a chunk of a
// prompt.
func BenchmarkIndexScores(b *testing.B) {
	const heads, dim = 64, 128
	for _, rows := range []int{1, 64} {
		for _, context := range []int{4096, 65536} {
			for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.Q8_0} {
				for _, workers := range []int{1, 2} {
					b.Run(fmt.Sprintf("%dx%d/%v/%d/%d/t%d", heads, dim, d, context, rows, workers), func(b *testing.B) {
						x := newIndex(d, heads, dim, context, make([]int32, rows))
						pool := NewPool(workers)
						defer pool.Close()
						pool.IndexScores(x)
						b.ResetTimer()
						for range b.N {
							pool.IndexScores(x)
						}
						products := float64(rows) * float64(context) * heads * dim
						b.ReportMetric(products*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
					})
				}
			}
		}
	}
}

func BenchmarkTopK(b *testing.B) {
	for _, n := range []int{4096, 65536} {
		for _, test := range []struct {
			name  string
			value func(r *rand.Rand) float32
		}{
			{"normal", func(r *rand.Rand) float32 { return float32(r.NormFloat64()) }},
			{"sparse", func(r *rand.Rand) float32 { return max(0, float32(r.NormFloat64()-3)) }},
			{"equal", func(*rand.Rand) float32 { return 1 }},
		} {
			b.Run(fmt.Sprintf("2048of%d/%s", n, test.name), func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 2))
				x := make([]float32, n)
				for i := range x {
					x[i] = test.value(r)
				}
				pool := NewPool(1)
				out := pool.TopK([][]float32{x}, 2048, nil)
				for b.Loop() {
					out = pool.TopK([][]float32{x}, 2048, out)
				}
			})
		}
	}
}

// Nanoseconds for the index queries of a row, 64 of 128 values.
func BenchmarkIndexQueries(b *testing.B) {
	pool := NewPool(1)
	x := random(1, 64*128)
	for _, c := range machine() {
		saved := active
		active = kernelsFor(c)
		b.Run(fmt.Sprintf("hadamard/%v", c.Tier), func(b *testing.B) {
			for b.Loop() {
				pool.Hadamard(x, 128)
			}
		})
		b.Run(fmt.Sprintf("e4m3/%v", c.Tier), func(b *testing.B) {
			for b.Loop() {
				pool.RoundE4M3(x, 128)
			}
		})
		b.Run(fmt.Sprintf("e2m1/%v", c.Tier), func(b *testing.B) {
			for b.Loop() {
				pool.RoundE2M1(x, 32)
			}
		})
		active = saved
	}
}
