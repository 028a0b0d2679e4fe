package checkpoint

import (
	"slices"
	"strings"
)

// Mixtral's own name of the mixture, and what its experts' projections are called,
// on the left; on the right the names that all other models have.
var mixtralNames = [][2]string{
	{".block_sparse_moe.", ".mlp."},
	{".w1.", ".gate_proj."},
	{".w2.", ".down_proj."},
	{".w3.", ".up_proj."},
}

// mixtralName turns a name of Mixtral's files into the canonical one; other names
// stay.
func mixtralName(stored string) string {
	if !isMixtral(stored) {
		return stored
	}
	for _, n := range mixtralNames {
		stored = strings.Replace(stored, n[0], n[1], 1)
	}
	return stored
}

func isMixtral(stored string) bool { return strings.Contains(stored, mixtralNames[0][0]) }

// storedName is the name that a tensor with the given canonical name would have
// in c, "" if it is the same.
func (c *Checkpoint) storedName(canonical string) string {
	if c.format == GGUF {
		if name, ok := GGUFName(c.meta.Arch(), canonical); ok {
			return name
		}
		return ""
	}
	if slices.ContainsFunc(c.names, func(name string) bool { return strings.HasPrefix(c.byName[name].Stored, "layers.") }) {
		return deepseek4Stored(canonical)
	}
	mixtral := func(name string) bool { return isMixtral(c.byName[name].Stored) }
	layer, name, ok := strings.Cut(canonical, mixtralNames[0][1])
	if !ok || !slices.ContainsFunc(c.names, mixtral) {
		return ""
	}
	stored := layer + mixtralNames[0][0] + name
	for _, n := range mixtralNames[1:] {
		stored = strings.Replace(stored, n[1], n[0], 1)
	}
	return stored
}
