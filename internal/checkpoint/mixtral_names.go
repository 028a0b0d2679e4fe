package checkpoint

import "strings"

// mixtralPart is Mixtral's own name of the mixture, canonicalPart that of all
// other models.
const mixtralPart, canonicalPart = ".block_sparse_moe.", ".mlp."

// Mixtral and DeepSeek V4 number the projections of an expert.
var (
	numberedToNamed = strings.NewReplacer(".w1.", ".gate_proj.", ".w2.", ".down_proj.", ".w3.", ".up_proj.")
	namedToNumbered = strings.NewReplacer(".gate_proj.", ".w1.", ".down_proj.", ".w2.", ".up_proj.", ".w3.")
)

// mixtralName turns a name of Mixtral's files into the canonical one; other names
// stay.
func mixtralName(stored string) string {
	layer, name, ok := strings.Cut(stored, mixtralPart)
	if !ok {
		return stored
	}
	return layer + canonicalPart + numberedToNamed.Replace(name)
}

// mixtralStored is what mixtralName turns into the canonical name; "" if that is
// none of its.
func mixtralStored(canonical string) string {
	layer, name, ok := strings.Cut(canonical, canonicalPart)
	if !ok {
		return ""
	}
	return layer + mixtralPart + namedToNumbered.Replace(name)
}
