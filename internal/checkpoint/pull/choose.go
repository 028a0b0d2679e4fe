package pull

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	indexName    = "model.safetensors.index.json"
	maxSmallFile = 64 << 20 // configuration and tokenizers; the largest tokenizer.json known have about 35 MB
	maxCard      = 1 << 20
)

// weightForm are the names transformers gives weights. Where they exist, other .safetensors files beside them are
// copies in another layout (consolidated.safetensors) or precision (model.fp16.safetensors).
var weightForm = regexp.MustCompile(`^model(-[0-9]+-of-[0-9]+)?\.safetensors$`)

// isSmall reports the files at the top of a repository that say how to use the weights: configuration, tokenizers,
// chat templates, the model card and the licence.
func isSmall(f hubFile) bool {
	name := f.Path
	switch {
	case f.Size > maxSmallFile:
		return false
	case strings.HasPrefix(name, "additional_chat_templates/") && strings.Count(name, "/") == 1:
		return strings.HasSuffix(name, ".jinja")
	case name == "1_Pooling/config.json": // of models for embeddings
		return true
	case strings.Contains(name, "/"), strings.HasSuffix(name, ".index.json") && name != indexName:
		return false
	}
	switch path.Ext(name) {
	case ".json", ".jinja", ".model", ".tiktoken":
		return true
	}
	return name == "merges.txt" || name == "vocab.txt" || isCard(f) || strings.HasPrefix(strings.ToUpper(name), "LICEN")
}

func isCard(f hubFile) bool { return f.Path == "README.md" && f.Size <= maxCard }

func smallFiles(files []hubFile) []hubFile {
	return slices.DeleteFunc(slices.Clone(files), func(f hubFile) bool { return !isSmall(f) })
}

// weightFiles returns the safetensors weights of a repository without an index.
func weightFiles(files []hubFile) []hubFile {
	weights := slices.DeleteFunc(slices.Clone(files), func(f hubFile) bool {
		return strings.Contains(f.Path, "/") || path.Ext(f.Path) != ".safetensors"
	})
	if slices.ContainsFunc(weights, func(f hubFile) bool { return weightForm.MatchString(f.Path) }) {
		return slices.DeleteFunc(weights, func(f hubFile) bool { return !weightForm.MatchString(f.Path) })
	}
	return weights
}

// named returns the files of these paths, in their order.
func named(files []hubFile, paths []string) ([]hubFile, error) {
	at := make(map[string]int, len(files))
	for i, f := range files {
		at[f.Path] = i
	}
	out := make([]hubFile, 0, len(paths))
	for _, p := range paths {
		i, ok := at[p]
		if !ok {
			return nil, fmt.Errorf("the repository has no file %s", printable(p))
		}
		out = append(out, files[i])
	}
	return out, nil
}

// ggufFile returns the GGUF file (with its splits, and the model card) that ref asks for, or, where ref leaves the
// choice open, the only one there is. Several are the user's choice: the error lists them.
func ggufFile(ref Ref, files []hubFile) ([]hubFile, error) {
	choices := ggufChoices(files)
	want := ref.File
	switch {
	case want != "":
	case len(choices) == 1:
		want = choices[0].Path
	case len(choices) == 0:
		return nil, errors.New("the repository has neither .safetensors nor .gguf weights at its top; other formats are not read")
	default:
		return nil, fmt.Errorf("the repository has %d GGUF files; name one of them: %s", len(choices), listChoices(ref, choices))
	}
	set, err := splits(want)
	if err != nil {
		return nil, err
	}
	out, err := named(files, set)
	if err != nil && len(choices) > 0 {
		return nil, fmt.Errorf("%w; it has %s", err, listChoices(ref, choices))
	}
	if i := slices.IndexFunc(files, isCard); i >= 0 && err == nil {
		out = append(out, files[i])
	}
	return out, err
}

// ggufChoices returns the first files of the GGUF models in the list, each with the size of all its splits.
// Vision projectors are not models.
func ggufChoices(files []hubFile) []hubFile {
	var choices []hubFile
	at := map[string]int{}
	for _, f := range files {
		first, err := checkModelFile(f.Path)
		if err != nil || strings.HasPrefix(path.Base(f.Path), "mmproj") {
			continue
		}
		i, seen := at[first]
		if !seen {
			i, at[first] = len(choices), len(choices)
			choices = append(choices, hubFile{Path: first})
		}
		choices[i].Size += max(0, f.Size)
	}
	slices.SortStableFunc(choices, func(a, b hubFile) int { return cmp.Compare(a.Size, b.Size) })
	return choices
}

func listChoices(ref Ref, choices []hubFile) string {
	const most = 40
	var b strings.Builder
	for i, c := range choices[:min(len(choices), most)] {
		if i > 0 {
			b.WriteString(", ")
		}
		ref.File = c.Path
		b.WriteString(ref.String())
		if c.Size > 0 {
			fmt.Fprintf(&b, " (%s)", ByteSize(c.Size))
		}
	}
	if len(choices) > most {
		fmt.Fprintf(&b, " and %d more", len(choices)-most)
	}
	return b.String()
}
