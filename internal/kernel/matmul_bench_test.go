package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
)

// The experts of Qwen3-30B-A3B, 8 of 128 for each row, in the two products of a
// layer, beside dense products that read as many bytes (decode) or have as many
// rows for each weight (prefill), on one worker.
func BenchmarkExperts(b *testing.B) {
	const hidden, inner, experts, chosen = 2048, 768, 128, 8
	for _, d := range []tensor.DType{tensor.Q8_0, tensor.Q4_0} {
		r := rand.New(rand.NewPCG(1, 1))
		s := newSubject(b, 1, false)
		up, down := weights(d, inner, hidden, r), weights(d, hidden, inner, r)
		var gates, ups, downs [experts]*Weight
		for e := range experts {
			gates[e], ups[e], downs[e] = s.pack(up, 0), s.pack(up, 0), s.pack(down, 1)
		}
		// The dense ones are large enough that they come from memory too.
		wide := make([]*Weight, experts/chosen)
		narrow := make([]*Weight, experts/chosen)
		for i := range wide {
			wide[i], narrow[i] = s.pack(weights(d, 2*chosen*inner, hidden, r), 0), s.pack(weights(d, hidden, chosen*inner, r), 1)
		}
		for _, rows := range []int{1, 4, 512} {
			x, h := random(2, rows*hidden), random(3, rows*chosen*inner)
			y, z := make([]float32, 2*rows*chosen*inner), make([]float32, rows*chosen*hidden)
			// Decode takes other experts each time, of which none is in the cache.
			var layers [][2][]Product
			for range 16 {
				layers = append(layers, route(r, rows, experts, chosen, y, z, gates[:], ups[:], downs[:]))
			}
			report := func(b *testing.B, bytes int) {
				s := b.Elapsed().Seconds() / float64(b.N)
				b.ReportMetric(float64(bytes)/s/1e9, "GB/s")
				b.ReportMetric(2*3*float64(rows*chosen*inner*hidden)/s/1e9, "GOPS")
			}
			b.Run(fmt.Sprintf("%v/rows=%d", d, rows), func(b *testing.B) {
				i, bytes := 0, 0
				for b.Loop() {
					l := layers[i%len(layers)]
					s.Pool.MatMul(x, rows, l[0]...)
					s.Pool.MatMul(h, rows*chosen, l[1]...)
					for _, p := range l {
						for _, q := range p {
							bytes += q.W.Bytes()
						}
					}
					i++
				}
				report(b, bytes/b.N)
			})
			b.Run(fmt.Sprintf("%v/dense=%d", d, rows), func(b *testing.B) {
				i := 0
				n := max(1, rows*chosen/experts) // each weight has as many rows
				for b.Loop() {
					for range rows / n {
						w, v := wide[i%len(wide)], narrow[i%len(wide)]
						s.Pool.MatMul(x[:n*hidden], n, Product{Y: y[:n*w.Rows], W: w})
						s.Pool.MatMul(h[:n*chosen*inner], n, Product{Y: z[:n*hidden], W: v})
						i++
					}
				}
				report(b, rows/n*(wide[0].Bytes()+narrow[0].Bytes()))
			})
		}
	}
}

// route lets each row choose experts at random, and returns the products of a
// layer: gates and ups of x [rows, hidden], and downs of the rows sorted by
// expert.
func route(r *rand.Rand, rows, experts, chosen int, y, z []float32, gates, ups, downs []*Weight) (layer [2][]Product) {
	of := make([][]int32, experts)
	for t := range rows {
		for _, e := range r.Perm(experts)[:chosen] {
			of[e] = append(of[e], int32(t))
		}
	}
	sorted := int32(0)
	for e, rows := range of {
		n := len(rows)
		if n == 0 {
			continue
		}
		inner, hidden := gates[e].Rows, downs[e].Rows
		layer[0] = append(layer[0],
			Product{Y: y[:n*inner], W: gates[e], Rows: rows},
			Product{Y: y[n*inner : 2*n*inner], W: ups[e], Rows: rows})
		consecutive := make([]int32, n)
		for i := range consecutive {
			consecutive[i] = sorted + int32(i)
		}
		sorted += int32(n)
		layer[1] = append(layer[1], Product{Y: z[:n*hidden], W: downs[e], Rows: consecutive})
		y, z = y[2*n*inner:], z[n*hidden:]
	}
	return layer
}
