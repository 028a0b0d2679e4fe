package testmodel

import (
	"slices"
	"strings"
)

// mixtralNames turns Mixtral's names into those of other mixtures.
var mixtralNames = strings.NewReplacer(".block_sparse_moe.", ".mlp.", ".w1.", ".gate_proj.", ".w2.", ".down_proj.", ".w3.", ".up_proj.")

// Stacked is the name of the tensor in which a GGUF file has one of a layer's
// experts, before it is translated; that of the tensor itself if it is none.
func Stacked(name string) string {
	name = mixtralNames.Replace(name)
	layer, rest, ok := strings.Cut(name, ".mlp.experts.")
	if _, projection, numbered := strings.Cut(rest, "."); ok && numbered {
		return layer + ".mlp.experts." + projection
	}
	return name
}

// stackExperts joins the matrices of a layer's experts into one tensor for each
// projection, where that of the first expert was.
func stackExperts(tensors []Tensor) []Tensor {
	var out []Tensor
	for _, t := range tensors {
		t.Name = mixtralNames.Replace(t.Name)
		name := Stacked(t.Name)
		if name == t.Name {
			out = append(out, t)
			continue
		}
		i := slices.IndexFunc(out, func(o Tensor) bool { return o.Name == name })
		if i < 0 {
			i = len(out)
			out = append(out, Tensor{Name: name, Shape: append([]int{0}, t.Shape...)})
		}
		out[i].Shape[0]++
		out[i].Values = append(out[i].Values, t.Values...)
	}
	return out
}
