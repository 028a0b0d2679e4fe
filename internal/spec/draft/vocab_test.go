package draft

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/testmodel"
	"github.com/foretoken/foretoken/internal/tokenizer"
)

// read makes a tokenizer of testmodel's tokenizer.json, after a change.
func read(t *testing.T, change func(file map[string]any)) *tokenizer.Tokenizer {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testmodel.Safetensors(t, testmodel.Family("llama")), "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	change(file)
	if data, err = json.Marshal(file); err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.FromJSON(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// Added tokens of testmodel.
const (
	think = int32(testmodel.Think)
	call  = int32(testmodel.Call)
)

// added returns the added tokens of a file.
func added(file map[string]any) []any { return file["added_tokens"].([]any) }

// rename gives an added token another text.
func rename(file map[string]any, id int32, text string) {
	for _, token := range added(file) {
		if token := token.(map[string]any); token["id"] == float64(id) {
			token["content"] = text
		}
	}
}

// extend adds a token behind all others.
func extend(file map[string]any, id int, text string) {
	file["added_tokens"] = append(added(file), map[string]any{
		"id": id, "content": text, "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
	})
}

func unchanged(map[string]any) {}

func TestMapVocab(t *testing.T) {
	const vocab, tokens = testmodel.Vocab, int32(testmodel.Tokens)
	for name, test := range map[string]struct {
		target, draft func(file map[string]any)
		sizes         [2]int
		differ        map[int32]int32 // the draft's ids that are not the target's
	}{
		"one vocabulary":           {unchanged, unchanged, [2]int{vocab, vocab}, nil},
		"a padded target":          {unchanged, unchanged, [2]int{vocab + 20, vocab}, nil},
		"a padded draft":           {unchanged, unchanged, [2]int{vocab, vocab + 20}, nil},
		"a draft of fewer rows":    {unchanged, unchanged, [2]int{vocab, testmodel.Tokens - 2}, map[int32]int32{tokens - 2: -1, tokens - 1: -1}},
		"more added to the target": {func(f map[string]any) { extend(f, testmodel.Tokens, "<more>") }, unchanged, [2]int{vocab, vocab}, nil},
		"more added to the draft":  {unchanged, func(f map[string]any) { extend(f, testmodel.Tokens, "<more>") }, [2]int{vocab, vocab}, nil},
		"added tokens of other texts": {unchanged, func(f map[string]any) {
			rename(f, think, "<thought>")
		}, [2]int{vocab, vocab}, map[int32]int32{think: -1}},
		"added tokens in another order": {unchanged, func(f map[string]any) {
			rename(f, think, "<tool_call>")
			rename(f, call, "<think>")
		}, [2]int{vocab, vocab + 1}, map[int32]int32{think: call, call: think}},
	} {
		target, draft := read(t, test.target), read(t, test.draft)
		v, err := MapVocab(target, draft, test.sizes[0], test.sizes[1])
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := func(id int32) int32 {
			if to, ok := test.differ[id]; ok {
				return to
			}
			if id < tokens {
				return id
			}
			return -1
		}
		for id := range int32(test.sizes[0]) {
			if got := v.token(id); got != want(id) {
				t.Errorf("%s: token %d is the draft's %d, expected %d", name, id, got, want(id))
			}
		}
		for _, id := range []int32{-1, int32(test.sizes[0])} {
			if got := v.token(id); got != -1 {
				t.Errorf("%s: token %d, which the target does not have, is the draft's %d", name, id, got)
			}
		}
		logits := make([]float32, test.sizes[1])
		for i := range logits {
			logits[i] = float32(i + 1)
		}
		got := v.logits(make([]float32, 3), logits)
		if len(got) != test.sizes[0] {
			t.Errorf("%s: %d logits, expected one for each of the target's %d", name, len(got), test.sizes[0])
		}
		for id, x := range got {
			expected := float32(math.Inf(-1))
			if to := want(int32(id)); to >= 0 {
				expected = float32(to + 1)
			}
			if x != expected {
				t.Errorf("%s: the logit of token %d is %v, expected %v", name, id, x, expected)
			}
		}
	}
}

// A text is read as far as the draft model knows its tokens.
func TestVocabTokens(t *testing.T) {
	v, err := MapVocab(read(t, unchanged), read(t, func(f map[string]any) { rename(f, think, "<thought>") }), testmodel.Vocab, testmodel.Vocab)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := v.tokens([]int32{9}, []int32{1, 2, think, 3}), []int32{9, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
	var same *Vocab
	if got, want := same.tokens(nil, []int32{1, think}), []int32{1, think}; !slices.Equal(got, want) {
		t.Errorf("one vocabulary: %v, expected %v", got, want)
	}
}

func TestMapVocabRefuses(t *testing.T) {
	other := func(f map[string]any) {
		vocab := f["model"].(map[string]any)["vocab"].(map[string]any)
		vocab["a"], vocab["b"] = vocab["b"], vocab["a"]
	}
	_, err := MapVocab(read(t, unchanged), read(t, other), testmodel.Vocab, testmodel.Vocab)
	if want := `the draft model has another vocabulary: token 97 is "b", in the target "a"`; err == nil || err.Error() != want {
		t.Errorf("error %v, expected %s", err, want)
	}
}
