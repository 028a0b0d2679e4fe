package testmodel

import (
	"slices"
	"strings"
)

// splitKVB makes of kv_b_proj [heads·(nope+value), rank] the two tensors of GGUF
// files: K [heads, rank, nope], each transposed, and V [heads, value, rank].
func (s Spec) splitKVB(tensors []Tensor) []Tensor {
	l := s.Latent
	var out []Tensor
	for _, t := range tensors {
		base, ok := strings.CutSuffix(t.Name, "kv_b_proj.weight")
		if !ok {
			out = append(out, t)
			continue
		}
		k := Tensor{Name: base + "k_b_proj.weight", Shape: []int{s.Heads, l.Rank, l.NopeDim}}
		v := Tensor{Name: base + "v_b_proj.weight", Shape: []int{s.Heads, l.ValueDim, l.Rank}}
		for head := range slices.Chunk(t.Values, (l.NopeDim+l.ValueDim)*l.Rank) {
			for r := range l.Rank {
				for n := range l.NopeDim {
					k.Values = append(k.Values, head[n*l.Rank+r])
				}
			}
			v.Values = append(v.Values, head[l.NopeDim*l.Rank:]...)
		}
		out = append(out, k, v)
	}
	return out
}
