package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/tokenizer"
)

// A vocabulary makes a tokenizer in which each token stands for itself, bytes
// and all, and the last one ends a text.
func TestVocabulary(t *testing.T) {
	const n = 256 + 26*26 + 1000
	path := filepath.Join(t.TempDir(), "model.gguf")
	err := writeFile(path, func(w io.Writer) error {
		return checkpoint.WriteGGUF(w, vocabulary(n), []checkpoint.TensorWriter{norm("x", 32)})
	})
	if err != nil {
		t.Fatal(err)
	}
	file, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	words, _ := file.Metadata().Strings("tokenizer.ggml.tokens")
	if got := slices.Compact(slices.Sorted(slices.Values(words))); len(words) != n || len(got) != n {
		t.Fatalf("%d tokens, %d of them different; want %d", len(words), len(got), n)
	}
	k, err := tokenizer.FromGGUF(file.Metadata())
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"a": "[97]", "ab": "[257]", "zz": "[931]", "aab": "[933]", "ab ab": "[257 32 257]", "é\x00": "[195 169 0]", "mzb": fmt.Sprint([]int{'m'*26 - 'a'*26 + 256 + 25, 'b'}),
	} {
		ids, err := k.Encode(text, tokenizer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, fmt.Sprint(ids)); diff != "" {
			t.Errorf("%q (-want +got): %s", text, diff)
		}
		if got := k.Decode(ids, false); got != text {
			t.Errorf("%q is decoded to %q", text, got)
		}
	}
}
