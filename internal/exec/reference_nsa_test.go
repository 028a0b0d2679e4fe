package exec

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
	"github.com/foretoken/foretoken/internal/testmodel"
)

func init() {
	variants = append(variants, []variant{
		{name: "three branches", family: "nsa", only: safetensors},
		{name: "no window", family: "nsa", only: safetensors, change: func(s *testmodel.Spec) { s.Window = 0 }},
		{name: "tied, biases, a key-value head for each", family: "nsa", only: safetensors, change: func(s *testmodel.Spec) {
			s.Tied, s.Bias, s.KVHeads, s.Block, s.Blocks = true, true, s.Heads, 3, 4
		}},
		{name: "few blocks, all selected", family: "nsa", only: safetensors, change: func(s *testmodel.Spec) {
			s.Block, s.Blocks, s.DType = 32, 3, tensor.BF16
		}},
	}...)
}

// nsaReference is native sparse attention as flash-linear-attention has it:
// blocks of one size, compressed to the mean of their keys and of their values.
type nsaReference struct {
	Heads   int     `json:"num_heads"`
	KVHeads int     `json:"num_kv_heads"`
	NormEps float64 `json:"norm_eps"`
	Block   int     `json:"block_size"`
	Blocks  int     `json:"block_counts"`
	Window  int     `json:"window_size"`
}

// readNSA reads the fields of the family and gives tensors the names that
// others have.
func (r *reference) readNSA(t *testing.T, config []byte) {
	t.Helper()
	r.nsa = new(nsaReference)
	if err := json.Unmarshal(config, r.nsa); err != nil {
		t.Fatal(err)
	}
	r.Heads, r.KVHeads, r.RMSNormEps = r.nsa.Heads, r.nsa.KVHeads, r.nsa.NormEps
	names := strings.NewReplacer(".attn_norm.", ".input_layernorm.", ".mlp_norm.", ".post_attention_layernorm.", ".attn.", ".self_attn.", ".embeddings.", ".embed_tokens.")
	renamed := map[string]testmodel.Tensor{}
	for name, tensor := range r.tensors {
		renamed[names.Replace(name)] = tensor
	}
	r.tensors = renamed
}

func (r *reference) nativeSparse(prefix string, x [][]float64) [][]float64 {
	d, group := r.HeadDim, r.Heads/r.KVHeads
	var q, k, v [][]float64
	for pos := range x {
		q = append(q, r.linear(prefix+"q_proj", x[pos]))
		k = append(k, r.linear(prefix+"k_proj", x[pos]))
		v = append(v, r.linear(prefix+"v_proj", x[pos]))
		for _, heads := range [][]float64{q[pos], k[pos]} {
			for h := range slices.Chunk(heads, d) {
				r.rotate(0, h, pos)
			}
		}
	}
	var meanKeys, meanValues [][]float64
	for end := r.nsa.Block; end <= len(x); end += r.nsa.Block {
		meanKeys = append(meanKeys, mean(k[end-r.nsa.Block:end]))
		meanValues = append(meanValues, mean(v[end-r.nsa.Block:end]))
	}
	out := make([][]float64, len(x))
	for pos := range x {
		gates, joined := r.linear(prefix+"g_proj", x[pos]), make([]float64, r.Heads*d)
		complete := (pos + 1) / r.nsa.Block
		for g := range r.KVHeads {
			importance := make([]float64, pos/r.nsa.Block+1)
			attend := func(branch int, keys, values [][]float64, list []int) {
				if len(list) == 0 {
					return
				}
				for h := g * group; h < (g+1)*group; h++ {
					var scores []float64
					for _, i := range list {
						scores = append(scores, dot64(q[pos][h*d:(h+1)*d], keys[i][g*d:(g+1)*d])/math.Sqrt(float64(d)))
					}
					for n, logP := range logSoftmax64(scores) {
						p := math.Exp(logP)
						if branch == 0 {
							importance[list[n]] += p
						}
						for j := range d {
							joined[h*d+j] += p * values[list[n]][g*d+j] / (1 + math.Exp(-gates[3*h+branch]))
						}
					}
				}
			}
			attend(0, meanKeys, meanValues, numbers(0, complete))
			attend(1, k, v, r.nsa.selected(importance, pos))
			attend(2, k, v, numbers(max(0, pos+1-r.nsa.Window), pos+1))
		}
		out[pos] = r.linear(prefix+"o_proj", joined)
	}
	return out
}

// selected returns the positions of the blocks that the row at pos reads.
func (n *nsaReference) selected(importance []float64, pos int) (list []int) {
	own := pos / n.Block
	for _, block := range []int{0, own - 1, own} {
		if block >= 0 {
			importance[block] = math.Inf(1)
		}
	}
	blocks := numbers(0, own+1)
	slices.SortStableFunc(blocks, func(a, b int) int { return cmp.Compare(importance[b], importance[a]) })
	blocks = blocks[:min(n.Blocks, len(blocks))]
	for _, block := range blocks {
		list = append(list, numbers(block*n.Block, min((block+1)*n.Block, pos+1))...)
	}
	return list
}

// numbers are those from from up to but not including to.
func numbers(from, to int) (list []int) {
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}

func mean(x [][]float64) []float64 {
	sum := make([]float64, len(x[0]))
	for _, row := range x {
		for i, v := range row {
			sum[i] += v / float64(len(x))
		}
	}
	return sum
}
