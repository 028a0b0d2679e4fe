package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/foretoken/foretoken/internal/checkpoint/pull"
	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/model/moe"
)

// engineFlags say how a model runs.
type engineFlags struct {
	Threads      int       `short:"t" group:"engine" placeholder:"N" default:"0" help:"Workers. 0: one for each processor that this process may use."`
	MaxModelLen  int       `group:"engine" aliases:"context-length" placeholder:"N" default:"0" help:"Longest sequence in tokens, prompt and answer. 0: the model's own limit."`
	Quantize     string    `group:"engine" placeholder:"TYPE" default:"" enum:",q8_0,q4_0,q4_1" help:"Round matrices of floats to q8_0, q4_0 or q4_1 while loading; those whose rows are not whole blocks of 32 stay as they are."`
	ExpertMemory byteCount `group:"engine" placeholder:"SIZE" help:"Memory for packed experts of a mixture, such as 24GB. With it experts stay in the model's files until a token needs them, and those used longest ago make room: a model larger than memory runs, slower. By default all are packed while loading."`
	MLA          string    `name:"mla" group:"engine" placeholder:"FORM" default:"absorbed" enum:"absorbed,expanded" help:"How latent attention (DeepSeek) attends: absorbed, or expanded, which forms keys and values of all past tokens first: slower, and the same but for rounding."`
	RoundCache   bool      `group:"engine" help:"Round what DeepSeek was trained to have rounded: index queries and keys of V3.2 to fp8, of V4 to fp4, and all else that V4 keeps of tokens to fp8."`
}

// dtypeFlags say in which types a model computes and remembers.
type dtypeFlags struct {
	DType        string `name:"dtype" group:"engine" placeholder:"TYPE" default:"auto" enum:"auto,float32" help:"Activations: auto or float32. auto multiplies quantised weights with 8-bit activations and bfloat16 with bfloat16, where the processor has kernels for it."`
	KVCacheDType string `name:"kv-cache-dtype" group:"engine" placeholder:"TYPE" default:"auto" enum:"auto,f32,f16,bf16,q8_0" help:"Keys and values of past tokens: auto, f32, f16, bf16 or q8_0. auto is bf16 where the processor multiplies it, else f16; f32 with --dtype float32."`
}

// Validate is called by kong.
func (f engineFlags) Validate() error {
	switch {
	case f.Threads < 0 || f.Threads > engine.MaxThreads:
		return fmt.Errorf("--threads %d: expected 1 to %d, or 0 for all processors", f.Threads, engine.MaxThreads)
	case f.MaxModelLen < 0:
		return fmt.Errorf("--max-model-len %d: expected 1 or more, or 0 for the model's own limit", f.MaxModelLen)
	}
	return nil
}

func (f engineFlags) options(d dtypeFlags) engine.Options {
	return engine.Options{
		Threads: f.Threads, MaxModelLen: f.MaxModelLen, DType: d.DType, KVCacheDType: d.KVCacheDType, Quantize: f.Quantize,
		ExpertMemory: f.ExpertMemory.bytes, MLA: f.MLA, RoundCache: f.RoundCache,
	}
}

// open loads a model, as o says beyond f, and shows how far it has come.
func (f engineFlags) open(ctx context.Context, path string, o engine.Options) (*engine.Engine, error) {
	var p progress
	defer p.end()
	o.Progress = func(done, total int64) { p.step("loading", done, total) }
	e, err := engine.Open(ctx, path, o)
	if few := (*moe.MemoryError)(nil); errors.As(err, &few) {
		n := f.ExpertMemory
		return nil, fmt.Errorf("--expert-memory %s: expected at least %s, which holds one expert of each form", n.text, n.atLeast(few.Least))
	}
	return e, err
}

// locate returns the path of a model: a path that exists, or that of a pulled
// model.
func locate(model string) (string, error) {
	path, _, err := find(model)
	return path, err
}

// find is locate for a model that may have to be pulled: missing says that
// this is what keeps it from being there.
func find(model string) (path string, missing bool, err error) {
	if _, err := os.Stat(model); err == nil {
		return model, false, nil
	} else if !errors.Is(err, fs.ErrNotExist) && isPath(model) {
		return "", false, pathError(model, err)
	}
	store, err := pull.Default()
	if err != nil {
		return "", false, err
	}
	if m, ok := store.Find(model); ok {
		return m.Path, false, nil
	}
	if _, err := pull.ParseRef(model); err != nil {
		return "", false, unknown(store, model, err)
	}
	return "", true, fmt.Errorf("%s is not on this machine yet: foretoken pull %s", model, model)
}

// fetch is find that pulls what is missing.
func fetch(ctx context.Context, model string) (string, error) {
	path, missing, err := find(model)
	if !missing {
		return path, err
	}
	m, err := pullModel(ctx, model)
	return m.Path, err
}

func pathError(path string, err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// isPath reports whether a model is written as a path rather than a name.
func isPath(model string) bool {
	if isReference(model) {
		return false
	}
	switch filepath.Ext(model) {
	case ".gguf", ".safetensors", ".json", ".jinja":
		return true
	}
	return strings.ContainsRune(model, filepath.Separator)
}

// isReference reports whether a model is named by its source.
func isReference(model string) bool {
	scheme, _, ok := strings.Cut(model, ":")
	return ok && (scheme == "hf" || scheme == "pip" || scheme == "https" || scheme == "http")
}

// unknown explains a model that is neither here nor can be pulled. invalid is
// what pull says to the name.
func unknown(store *pull.Store, model string, invalid error) error {
	names := knownNames(store)
	near := nearest(model, names)
	_, notRepository := pull.ParseRef("hf:" + model)
	switch {
	case isReference(model) || model == "":
		return invalid
	case near != "":
		return fmt.Errorf("%s: no such file, nor the name of a model; did you mean %s?", model, near)
	case notRepository == nil:
		return fmt.Errorf("%s: no such file or directory; the Hugging Face repository of that name is hf:%s", model, model)
	case isPath(model):
		return fmt.Errorf("%s: no such file or directory", model)
	}
	return fmt.Errorf("%s: no such file, nor the name of a model; known are %s, and hf:org/repo, pip:package or https://… name others",
		model, strings.Join(names, ", "))
}

// knownNames lists built-in names and those of pulled models.
func knownNames(store *pull.Store) (names []string) {
	for _, b := range pull.Builtins() {
		names = append(names, b.Name)
	}
	pulled, _ := store.List() // those that can be read will do for a hint
	for _, m := range pulled {
		if _, err := pull.ParseRef(m.Name); err == nil && !isBuiltin(m.Name) {
			names = append(names, m.Name)
		}
	}
	return names
}

func isBuiltin(name string) bool {
	for _, b := range pull.Builtins() {
		if b.Name == name {
			return true
		}
	}
	return false
}

// nearest returns the name that was most likely meant, "" if none comes close:
// one that word begins (with three letters or more), or one at most a quarter of its letters away.
func nearest(word string, names []string) string {
	best, distance := "", len(word)/4+1
	for _, name := range names {
		if len(word) > 2 && strings.HasPrefix(name, word) {
			return name
		}
		if d := editDistance(word, name); d < distance {
			best, distance = name, d
		}
	}
	return best
}

// editDistance counts the bytes to insert, remove or replace (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
