//go:build shared

package tokenizer_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/fixtures"
	"github.com/foretoken/foretoken/internal/tokenizer"
)

func openMetadata(t testing.TB, path string) *checkpoint.Metadata {
	t.Helper()
	c, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.Metadata()
}

// TestGGUFVocabularies encodes the texts that come with llama.cpp's vocabulary files, whose ids
// were made with Hugging Face tokenizers.
func TestGGUFVocabularies(t *testing.T) {
	for _, name := range []string{"deepseek-llm", "gpt-2", "llama-bpe", "llama-spm", "qwen2"} {
		t.Run(name, func(t *testing.T) {
			file := "ggml-vocab-" + name + ".gguf"
			tok, err := tokenizer.FromGGUF(openMetadata(t, fixtures.Data(t, "tokenizer", file)))
			if err != nil {
				t.Fatal(err)
			}
			texts := strings.Split(string(sharedData(t, "tokenizer", file+".inp")), "\n__ggml_vocab_test__\n")
			lines := strings.Split(string(sharedData(t, "tokenizer", file+".out")), "\n")
			if len(texts) != 47 || len(lines) < len(texts) {
				t.Fatalf("%d texts, %d lines of ids", len(texts), len(lines))
			}
			for i, text := range texts {
				var want []int32
				for f := range strings.FieldsSeq(lines[i]) {
					id, err := strconv.Atoi(f)
					if err != nil {
						t.Fatal(err)
					}
					want = append(want, int32(id))
				}
				got, err := tok.Encode(text, tokenizer.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, want) {
					t.Errorf("text %d, %q:\n got %v\nwant %v", i, text, got, want)
				}
				if dec := tok.Decode(got, false); dec != text && dec != norm.NFC.String(text) {
					t.Errorf("text %d, %q: decoded to %q", i, text, dec)
				}
			}
		})
	}
}

// TestStories reads the tokenizer of a trained model: 512 SentencePiece tokens, which spell any
// text.
func TestStories(t *testing.T) {
	tok, err := tokenizer.FromGGUF(openMetadata(t, fixtures.Data(t, "models", "stories260K.gguf")))
	if err != nil {
		t.Fatal(err)
	}
	if bos, ok := tok.BOS(); tok.Size() != 512 || bos != 1 || !ok || !tok.AddsBOS() {
		t.Errorf("size %d, BOS %d, added %v", tok.Size(), bos, tok.AddsBOS())
	}
	for _, text := range []string{"Once upon a time, there was a little girl.", "  two  spaces\n", "é😀"} {
		ids, err := tok.Encode(text, tokenizer.Options{Special: true})
		if err != nil || ids[0] != 1 {
			t.Fatal(ids, err)
		}
		if got := tok.Decode(ids, true); got != text {
			t.Errorf("%q: decoded to %q", text, got)
		}
	}
}

// BenchmarkFromGGUF must stay below 300 ms on one core.
func BenchmarkFromGGUF(b *testing.B) {
	for _, name := range []string{"llama-bpe", "llama-spm", "qwen2"} {
		m := openMetadata(b, fixtures.Data(b, "tokenizer", "ggml-vocab-"+name+".gguf"))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tokenizer.FromGGUF(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
