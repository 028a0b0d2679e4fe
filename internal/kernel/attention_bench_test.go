package kernel

import (
	"fmt"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
)

// layeredKV is the pages of one sequence: as in kvcache, a page holds a block
// of every layer.
type layeredKV struct {
	pages      []byte
	layers     int
	layer      int
	blockBytes int
}

func (m *layeredKV) Block(_, b int) []byte {
	return m.pages[(b*m.layers+m.layer)*m.blockBytes:][:m.blockBytes]
}

// fillCache makes a cache of context positions whose layers together take at least
// size bytes.
func fillCache(a *Attention, context, size int) *layeredKV {
	m := &layeredKV{blockBytes: newKV(a).blockBytes}
	blocks := (context + KVBlock - 1) / KVBlock
	m.layers = (size + blocks*m.blockBytes - 1) / (blocks * m.blockBytes)
	m.pages = make([]byte, blocks*m.layers*m.blockBytes)
	b := *a
	b.KV, b.K, b.V, b.Window = m, random(1, a.KVHeads*a.KeyDim), random(2, a.KVHeads*a.ValueDim), 1
	b.Q, b.Out, b.Seqs = make([]float32, a.Heads*a.KeyDim), make([]float32, a.Heads*a.ValueDim), []int32{0}
	pool := NewPool(1)
	defer pool.Close()
	for m.layer = range m.layers {
		for pos := range int32(blocks * KVBlock) {
			b.Positions = []int32{pos}
			pool.Attend(b)
		}
	}
	return m
}

// cacheBytes is more than any cache of the processor holds.
const cacheBytes = 160 << 20

// One row attends to a long context that no cache of the processor holds.
func BenchmarkAttentionDecode(b *testing.B) {
	for _, shape := range []struct{ heads, kvHeads, dim int }{{16, 8, 128}, {32, 8, 64}, {16, 2, 256}} {
		for _, context := range []int{512, 8192} {
			for _, d := range cacheTypes {
				a := Attention{Heads: shape.heads, KVHeads: shape.kvHeads, KeyDim: shape.dim, ValueDim: shape.dim, Scale: 0.1, DType: d}
				var kv *layeredKV
				for _, workers := range []int{1, 2} {
					b.Run(fmt.Sprintf("%dto%dx%d/%v/%d/t%d", shape.heads, shape.kvHeads, shape.dim, d, context, workers), func(b *testing.B) {
						if kv == nil {
							kv = fillCache(&a, context, cacheBytes)
						}
						pool := NewPool(workers)
						defer pool.Close()
						a := a
						a.KV, a.Positions, a.Seqs = kv, []int32{int32(context - 1)}, []int32{0}
						a.Q, a.K, a.V = random(1, a.Heads*a.KeyDim), random(2, a.KVHeads*a.KeyDim), random(3, a.KVHeads*a.ValueDim)
						a.Out = make([]float32, a.Heads*a.ValueDim)
						b.ResetTimer()
						b.SetBytes(int64(context / KVBlock * kv.blockBytes))
						for i := range b.N {
							kv.layer = i % kv.layers
							pool.Attend(a)
						}
					})
				}
			}
		}
	}
}

// Rows that follow each other attend to themselves and to what was before.
func BenchmarkAttentionPrefill(b *testing.B) {
	const rows = 512
	for _, context := range []int{0, 4096} {
		for _, d := range cacheTypes {
			for _, workers := range []int{1, 2} {
				b.Run(fmt.Sprintf("16to8x128/%v/%d+%d/t%d", d, context, rows, workers), func(b *testing.B) {
					a := Attention{Heads: 16, KVHeads: 8, KeyDim: 128, ValueDim: 128, Scale: 0.1, DType: d}
					a.KV = fillCache(&a, context+rows, 1)
					for i := range int32(rows) {
						a.Positions, a.Seqs = append(a.Positions, int32(context)+i), append(a.Seqs, 0)
					}
					a.Q, a.K, a.V = random(1, rows*a.Heads*a.KeyDim), random(2, rows*a.KVHeads*a.KeyDim), random(3, rows*a.KVHeads*a.ValueDim)
					a.Out = make([]float32, rows*a.Heads*a.ValueDim)
					pool := NewPool(workers)
					defer pool.Close()
					pool.Attend(a)
					b.ResetTimer()
					for range b.N {
						pool.Attend(a)
					}
					products := float64(rows) * (float64(context) + rows/2) * float64(a.Heads) * float64(a.KeyDim+a.ValueDim)
					b.ReportMetric(products*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
				})
			}
		}
	}
}

// Drafts of one sequence are verified together.
func BenchmarkAttentionVerify(b *testing.B) {
	const context = 2048
	for _, n := range []int{1, 2, 4, 8, 16, -2, -4, -8, -16} {
		for _, d := range []tensor.DType{tensor.F16, tensor.BF16} {
			rows, tree := max(n, -n), n < 0
			b.Run(fmt.Sprintf("16to8x128/%v/%d/%d/tree=%v", d, context, rows, tree), func(b *testing.B) {
				a := Attention{Heads: 16, KVHeads: 8, KeyDim: 128, ValueDim: 128, Scale: 0.1, DType: d}
				kv := fillCache(&a, context+64, cacheBytes)
				a.KV = kv
				for i := range int32(rows) {
					pos := context + i
					if tree { // two branches
						pos = context + i/2
						path := []int32{}
						for d := range i/2 + 1 {
							path = append(path, context+2*d+i%2)
						}
						a.Paths = append(a.Paths, path)
					}
					a.Slots = append(a.Slots, context+i)
					a.Positions, a.Seqs = append(a.Positions, pos), append(a.Seqs, 0)
				}
				a.Q, a.K, a.V = random(1, rows*a.Heads*a.KeyDim), random(2, rows*a.KVHeads*a.KeyDim), random(3, rows*a.KVHeads*a.ValueDim)
				a.Out = make([]float32, rows*a.Heads*a.ValueDim)
				pool := NewPool(1)
				defer pool.Close()
				b.ResetTimer()
				for i := range b.N {
					kv.layer = i % kv.layers
					pool.Attend(a)
				}
			})
		}
	}
}
