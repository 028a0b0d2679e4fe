package kernel

import (
	"math"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
)

// memory is a KV of one sequence.
type memory struct {
	heads, width int
	dtype        tensor.DType
	k, v         [][]byte
}

func (m *memory) Block(_, b int) (k, v []byte) { return m.k[b], m.v[b] }

func newMemory(t *testing.T, d tensor.DType, heads, width, positions int, k, v []float32) *memory {
	m := &memory{heads: heads, width: width, dtype: d}
	pack := func(values []float32, b int) []byte {
		block := make([]float32, heads*KVBlock*width)
		for i := range KVBlock {
			if pos := b*KVBlock + i; pos < positions {
				for h := range heads {
					copy(block[(h*KVBlock+i)*width:][:width], values[(pos*heads+h)*width:])
				}
			}
		}
		data := make([]byte, d.RowBytes(len(block)))
		if err := tensor.Encode(d, data, block); err != nil {
			t.Fatal(err)
		}
		return data
	}
	for b := range (positions + KVBlock - 1) / KVBlock {
		m.k, m.v = append(m.k, pack(k, b)), append(m.v, pack(v, b))
	}
	return m
}

func TestAttentionAgainstFloat64(t *testing.T) {
	pool := NewPool(2)
	defer pool.Close()
	for _, tc := range []struct {
		name                   string
		heads, kvHeads, window int
		dtype                  tensor.DType
		tolerance              float64
	}{
		{"one head to one", 4, 4, 0, tensor.F32, 1e-5},
		{"three heads to one", 9, 3, 0, tensor.F32, 1e-5},
		{"one key-value head", 4, 1, 0, tensor.F32, 1e-5},
		{"window inside a block", 4, 2, 5, tensor.F32, 1e-5},
		{"window of several blocks", 4, 2, 70, tensor.F32, 1e-5},
		{"f16 cache", 4, 2, 0, tensor.F16, 2e-3},
		{"bf16 cache", 4, 2, 40, tensor.BF16, 2e-2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			const width, positions = 12, 150
			k, v := random(1, positions*tc.kvHeads*width), random(2, positions*tc.kvHeads*width)
			rows := []int32{0, 1, 31, 32, 33, 100, 149}
			q := random(3, len(rows)*tc.heads*width)
			out := make([]float32, len(q))
			pool.Attend(Attention{
				Heads: tc.heads, KVHeads: tc.kvHeads, KeyDim: width, ValueDim: width, Scale: 0.3, Window: tc.window, DType: tc.dtype,
				Q: q, Out: out, Positions: rows, Seqs: make([]int32, len(rows)), KV: newMemory(t, tc.dtype, tc.kvHeads, width, positions, k, v),
			})
			for r, pos := range rows {
				for h := range tc.heads {
					at := (r*tc.heads + h) * width
					want := attend(q[at:at+width], k, v, h/(tc.heads/tc.kvHeads), tc.kvHeads, int(pos), tc.window, 0.3)
					for i, w := range want {
						if got := float64(out[at+i]); !(math.Abs(got-w) <= tc.tolerance) {
							t.Fatalf("row at %d, head %d: %v, want %v", pos, h, got, w)
						}
					}
				}
			}
		})
	}
}

// attend is one query's attention, straight from the definition.
func attend(q, k, v []float32, head, heads, pos, window int, scale float64) []float64 {
	width := len(q)
	first := 0
	if window > 0 {
		first = max(0, pos-window+1)
	}
	var scores []float64
	high := math.Inf(-1)
	for p := first; p <= pos; p++ {
		var s float64
		for i := range width {
			s += float64(q[i]) * float64(k[(p*heads+head)*width+i])
		}
		scores = append(scores, s*scale)
		high = max(high, s*scale)
	}
	var sum float64
	out := make([]float64, width)
	for i, s := range scores {
		w := math.Exp(s - high)
		sum += w
		for d := range width {
			out[d] += w * float64(v[((first+i)*heads+head)*width+d])
		}
	}
	for d := range out {
		out[d] /= sum
	}
	return out
}
