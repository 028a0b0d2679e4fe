package tokenizer

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

const fuzzText = "Hello <s> it's  1234\n\té\u0301中😀▁ab"

// exercise checks what holds of every tokenizer.
func exercise(t *testing.T, tok *Tokenizer) {
	for _, o := range []Options{{}, {Special: true}, {PlainText: true}} {
		ids, err := tok.Encode(fuzzText, o)
		if err != nil {
			continue
		}
		for _, id := range ids {
			if _, ok := tok.Token(id); !ok {
				t.Fatalf("id %d is no token", id)
			}
			if o.PlainText && tok.IsSpecial(id) && !isSymbol(tok, id) {
				t.Fatalf("plain text gives the special token %d", id)
			}
		}
		if text := tok.Decode(ids, o.Special); !utf8.ValidString(text) {
			t.Fatalf("decoded to %q", text)
		}
		s := tok.Stream(ids, false)
		for _, id := range ids {
			s.Push(id)
		}
		s.Flush()
	}
	_, _ = tok.GGUF() // must not panic
}

// isSymbol reports whether text may be encoded as the token without any merge: a special token "!"
// does not make exclamation marks vanish.
func isSymbol(tok *Tokenizer, id int32) bool {
	text, _ := tok.Token(id)
	_, isByte := byteTokenValue(text)
	switch m := tok.model.(type) {
	case *bpe:
		text = strings.TrimSuffix(strings.TrimPrefix(text, m.prefix), m.suffix)
		return isByte || id == m.unk || utf8.RuneCountInString(text) == 1
	case *unigram:
		return isByte || id == m.unk
	}
	return false
}

func FuzzTokenizerJSON(f *testing.F) {
	seed := func(x file) {
		data, config := x.json(f)
		f.Add(string(data), string(config))
	}
	seed(file{
		Model: bpeModel("abé▁", "a b", "▁ ab"), Normalizer: sequence("normalizers", obj{"type": "NFC"}, obj{"type": "Prepend", "prepend": "▁"}),
		Decoder: llamaDecode, Added: []obj{added(0, "a", "special"), added(9, "<s>", "special", "lstrip", "rstrip", "normalized", "single_word")},
	})
	seed(file{
		Model: bpeModel("Ġab", "Ġ a"), Pre: sequence("pretokenizers",
			obj{"type": "Split", "pattern": obj{"Regex": qwen2Pattern}, "behavior": "Isolated"}, byteLevel), Decoder: byteLevelDecoder,
		Post: template([]int{0}, []int{1}), Config: obj{
			"bos_token": "a", "add_bos_token": true, "tokenizer_class": "LlamaTokenizer",
			"added_tokens_decoder": obj{"7": added(0, "<x>")},
		},
	})
	seed(file{
		Model: unigramModel(true, "a", -1.5, "<0xC3>", -3), Pre: obj{"type": "Metaspace"}, Decoder: obj{"type": "Metaspace"},
		Normalizer: obj{"type": "Precompiled", "precompiled_charsmap": "BAAAAAAAAABh"},
	})
	seed(file{
		Model: with(with(bpeModel("ab##"), "continuing_subword_prefix", "##"), "unk_token", "a"),
		Pre: sequence("pretokenizers", obj{"type": "Digits"}, obj{"type": "Punctuation", "behavior": "Contiguous"}, obj{"type": "Whitespace"},
			obj{"type": "FixedLength", "length": 3}),
	})
	for _, data := range hostileFiles() {
		if len(data) < 4096 {
			f.Add(data, "")
		}
	}
	f.Fuzz(func(t *testing.T, data, config string) {
		tok, err := FromJSON([]byte(data), []byte(config))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("an error of several lines: %v", err)
			}
			return
		}
		exercise(t, tok)
	})
}

// FuzzGGUFVocabulary takes metadata as JSON; numbers, lists of numbers and lists of strings become
// what a GGUF file would have.
func FuzzGGUFVocabulary(f *testing.F) {
	seed := func(m metadata) {
		data, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	small := metadata{
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "llama-bpe", "tokenizer.ggml.tokens": []string{"a", "b", "ab", "Ġ", "<s>"},
		"tokenizer.ggml.merges": []string{"a b"}, "tokenizer.ggml.token_type": []int32{1, 1, 1, 4, 3}, "tokenizer.ggml.bos_token_id": 4,
	}
	seed(small)
	seed(small.with("tokenizer.ggml.pre", "gemma4"))
	seed(small.with("tokenizer.ggml.pre", "whitespace").with("tokenizer.ggml.add_bos_token", true))
	seed(metadata{
		"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": []string{"<unk>", "<s>", "</s>", "▁", "a", "▁a", "éx", "<0x41>"},
		"tokenizer.ggml.scores": []float32{0, 0, 0, -1, -2, -1, -3, 0}, "tokenizer.ggml.token_type": []int32{2, 3, 3, 1, 1, 1, 1, 6},
		"general.name": "phi3",
	})
	seed(metadata{"tokenizer.huggingface.json": `{"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`, "tokenizer.ggml.eos_token_id": 0})
	f.Fuzz(func(t *testing.T, data string) {
		var raw map[string]json.RawMessage
		if json.Unmarshal([]byte(data), &raw) != nil {
			return
		}
		m := metadata{}
		for key, value := range raw {
			m[key] = ggufValue(key, value)
		}
		tok, err := FromGGUF(m)
		if err == nil {
			exercise(t, tok)
		}
	})
}

func ggufValue(key string, raw json.RawMessage) any {
	var (
		text    string
		flag    bool
		number  int64
		texts   []string
		numbers []int32
		scores  []float32
	)
	switch {
	case json.Unmarshal(raw, &text) == nil:
		return text
	case json.Unmarshal(raw, &flag) == nil:
		return flag
	case json.Unmarshal(raw, &number) == nil:
		return number
	case json.Unmarshal(raw, &texts) == nil:
		return texts
	case strings.HasSuffix(key, "scores") && json.Unmarshal(raw, &scores) == nil:
		return scores
	case json.Unmarshal(raw, &numbers) == nil:
		return numbers
	}
	return nil
}

// FuzzPattern: what translates also compiles or is refused, in a moment.
func FuzzPattern(f *testing.F) {
	for _, e := range preTokenizers {
		for _, p := range e.patterns {
			f.Add(p, fuzzText)
		}
	}
	f.Add(`(?<=a)(?>b+)(?i:c){2,}+[^\w\x{1F600}&&[^\p{Han}]]\b`, "ab")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		re, err := compileRegex(pattern)
		if err != nil {
			return
		}
		done := 0
		_ = re.matches(validUTF8(text), func(start, end int) error {
			if start < done || end < start {
				t.Fatalf("match [%d, %d) after %d", start, end, done)
			}
			done = end
			return nil
		})
	})
}
