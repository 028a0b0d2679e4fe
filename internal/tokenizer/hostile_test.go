package tokenizer

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// hostileFiles are 1 MB each, but for the first, which has 23 MB.
func hostileFiles() map[string]string {
	const model = `"model":{"type":"BPE","vocab":{"a":0},"merges":[]}`
	list := func(n int, item func(i int) string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(item(i))
		}
		return b.String()
	}
	same := func(s string) func(int) string { return func(int) string { return s } }
	numbered := func(format string) func(int) string { return func(i int) string { return fmt.Sprintf(format, i, i) } }
	const mega = 1 << 20
	return map[string]string{
		"a million added tokens":       `{"added_tokens":[` + list(1_000_000, numbered(`{"id":%d,"content":"<%d>"}`)) + `],` + model + `}`,
		"empty added tokens":           `{"added_tokens":[` + list(mega/3, same(`{}`)) + `],` + model + `}`,
		"added tokens of one id":       `{"added_tokens":[` + list(mega/30, func(i int) string { return fmt.Sprintf(`{"id":1,"content":"%d"}`, i) }) + `],` + model + `}`,
		"a long added token":           `{"added_tokens":[{"id":1,"content":"` + strings.Repeat("x", mega) + `"}],` + model + `}`,
		"nested arrays":                `{"x":` + strings.Repeat("[", mega) + strings.Repeat("]", mega) + `,` + model + `}`,
		"open arrays":                  strings.Repeat("[", mega),
		"nested sequences":             `{"normalizer":` + strings.Repeat(`{"type":"Sequence","normalizers":[`, 100) + strings.Repeat(`]}`, 100) + `,` + model + `}`,
		"a long sequence":              `{"normalizer":{"type":"Sequence","normalizers":[` + list(mega/3, same(`{}`)) + `]},` + model + `}`,
		"a long sequence of splits":    `{"pre_tokenizer":{"type":"Sequence","pretokenizers":[` + list(mega/70, same(`{"type":"Split","pattern":{"Regex":"\\p{L}"},"behavior":"Isolated"}`)) + `]},` + model + `}`,
		"a long pattern":               `{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"` + strings.Repeat(`a|`, mega/2) + `"},"behavior":"Isolated"},` + model + `}`,
		"a deep pattern":               `{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"` + strings.Repeat(`(`, 2000) + `"},"behavior":"Isolated"},` + model + `}`,
		"a template of many tokens":    `{"post_processor":{"type":"TemplateProcessing","single":[` + list(mega/30, same(`{"SpecialToken":{"id":"x"}}`)) + `],"special_tokens":{"x":{"ids":[0]}}},` + model + `}`,
		"a special token of many ids":  `{"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}}],"special_tokens":{"x":{"ids":[` + list(mega/2, same(`0`)) + `]}}},` + model + `}`,
		"a token twice, often":         `{"model":{"type":"BPE","vocab":{` + list(mega/6, same(`"a":1`)) + `},"merges":[]}}`,
		"an id twice, often":           `{"model":{"type":"BPE","vocab":{` + list(mega/12, func(i int) string { return fmt.Sprintf(`"%d":1`, i) }) + `},"merges":[]}}`,
		"a gap in the ids":             `{"model":{"type":"BPE","vocab":{"a":0,"b":2147483647},"merges":[]}}`,
		"merges that lead nowhere":     `{"model":{"type":"BPE","vocab":{"a":0},"merges":[` + list(mega/6, same(`"a a"`)) + `]}}`,
		"a merge of many parts":        `{"model":{"type":"BPE","vocab":{"a":0},"merges":[[` + list(mega/4, same(`"a"`)) + `]]}}`,
		"a long token":                 `{"model":{"type":"BPE","vocab":{"` + strings.Repeat("x", mega) + `":0},"merges":[]}}`,
		"a map that is too short":      `{"normalizer":{"type":"Precompiled","precompiled_charsmap":"////fw` + strings.Repeat("A", mega-2) + `"},` + model + `}`,
		"many keys":                    `{` + list(mega/12, numbered(`"%d":%d`)) + `}`,
		"no end of a string":           `{"` + strings.Repeat(`\u0041`, mega/6),
		"tokens that are no list":      `{"added_tokens":{"id":1},` + model + `}`,
		"a vocabulary of many scores":  `{"model":{"type":"Unigram","vocab":[["a",` + list(mega/2, same(`1`)) + `]]}}`,
		"a vocabulary of many entries": `{"model":{"type":"Unigram","vocab":[` + list(mega/3, same(`[]`)) + `]}}`,
	}
}

// TestHostileFilesAreRefusedCheaply: an error, and at most 64 MiB of memory allocated in all,
// garbage included, for a file of 1 MB.
func TestHostileFilesAreRefusedCheaply(t *testing.T) {
	for name, data := range hostileFiles() {
		t.Run(name, func(t *testing.T) {
			_, allocated, err := allocating(func() (*Tokenizer, error) { return FromJSON([]byte(data), nil) })
			if err == nil {
				t.Error("no error")
			} else if len(err.Error()) > 500 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			if allocated > max(64<<20, 4*uint64(len(data))) {
				t.Errorf("%d MiB allocated", allocated>>20)
			}
		})
	}
}

func allocating(load func() (*Tokenizer, error)) (tok *Tokenizer, bytes uint64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tok, err = load()
	runtime.ReadMemStats(&after)
	return tok, after.TotalAlloc - before.TotalAlloc, err
}

// Files that are odd but sound are loaded as cheaply.
func TestOddFilesAreLoadedCheaply(t *testing.T) {
	var vocab, merges, addedTokens, nested strings.Builder
	for i := range 80_000 {
		fmt.Fprintf(&vocab, `,"%x":%d`, i, i+1)
		fmt.Fprintf(&addedTokens, `,{"id":%d,"content":"%x"}`, i+1, i)
	}
	for range 100_000 {
		merges.WriteString(`,"a a"`)
	}
	for range 32 {
		nested.WriteString(`,{"type":"Split","behavior":"Isolated","pattern":{"Regex":"(?:` + strings.Repeat(`\\p{L}|[\\w]|`, 70) + `a{1,4096}){1,4096}"}}`)
	}
	const small = `"model":{"type":"BPE","vocab":{"a":0,"aa":1},"merges":[]}`
	for name, data := range map[string]string{
		"many tokens":       `{"model":{"type":"BPE","vocab":{"~":0` + vocab.String() + `},"merges":[]}}`,
		"many added tokens": `{"added_tokens":[{"id":0,"content":"~"}` + addedTokens.String()[:strings.LastIndex(addedTokens.String()[:1<<20], ",")] + `],"model":{"type":"BPE","vocab":{"~":0},"merges":[]}}`,
		"many merges":       `{"model":{"type":"BPE","vocab":{"a":0,"aa":1},"merges":["a a"` + merges.String() + `]}}`,
		"large patterns":    `{"pre_tokenizer":{"type":"Sequence","pretokenizers":[` + nested.String()[1:] + `]},` + small + `}`,
		"a gap in the ids":  `{"model":{"type":"BPE","vocab":{"a":0,"b":1000000},"merges":[]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			tok, allocated, err := allocating(func() (*Tokenizer, error) { return FromJSON([]byte(data), nil) })
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tok.Encode("a", Options{}); err != nil {
				t.Error(err)
			}
			if allocated > 64<<20 {
				t.Errorf("%d MiB allocated", allocated>>20)
			}
			t.Log(allocated >> 20)
		})
	}
}

func TestCatastrophicFilesGiveErrors(t *testing.T) {
	split := obj{"type": "Split", "pattern": obj{"Regex": `(x|xx)+y`}, "behavior": "Isolated"}
	tok := file{Pre: split, Model: bpeModel("xy ")}.load(t)
	_, err := tok.Encode(strings.Repeat("x", 100)+" y", Options{})
	if err == nil || err.Error() != `pattern "(x|xx)+y" backtracks too much on this text` {
		t.Errorf("error %v", err)
	}
	checkTokens(t, tok, "x y", Options{}, "x", " ", "y") // the tokenizer lives on
}

func TestHostileGGUFVocabularies(t *testing.T) {
	tokens := make([]string, 1000) // each cut in 1000 ways
	scores := make([]float32, len(tokens))
	for i := range tokens {
		tokens[i] = strings.Repeat("a", i+1)
	}
	_, allocated, err := allocating(func() (*Tokenizer, error) {
		return FromGGUF(metadata{"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.scores": scores})
	})
	if err != nil || allocated > 64<<20 {
		t.Errorf("%d MiB allocated, error %v", allocated>>20, err)
	}
}
