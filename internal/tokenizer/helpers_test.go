package tokenizer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// file is a tokenizer.json under construction. Absent parts are null.
type file struct {
	Added      []map[string]any
	Normalizer any
	Pre        any
	Post       any
	Decoder    any
	Model      map[string]any
	Config     map[string]any
}

type obj = map[string]any

func (f file) json(t testing.TB) (data, config []byte) {
	t.Helper()
	encode := func(v any) []byte {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	data = encode(obj{
		"version": "1.0", "added_tokens": f.Added, "normalizer": f.Normalizer, "pre_tokenizer": f.Pre, "post_processor": f.Post,
		"decoder": f.Decoder, "model": f.Model,
	})
	if f.Config != nil {
		config = encode(f.Config)
	}
	return data, config
}

func (f file) load(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := FromJSON(f.json(t))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// added is an added token: flags are names of fields that are true.
func added(id int, content string, flags ...string) obj {
	tok := obj{"id": id, "content": content}
	for _, name := range []string{"single_word", "lstrip", "rstrip", "normalized", "special"} {
		tok[name] = slices.Contains(flags, name)
	}
	return tok
}

// vocabulary numbers tokens from 0.
func vocabulary(tokens ...string) obj {
	v := obj{}
	for id, text := range tokens {
		v[text] = id
	}
	return v
}

// bpeModel is a model whose vocabulary is made of chars, each a token, and then the results of the
// merges "a b".
func bpeModel(chars string, merges ...string) obj {
	tokens := strings.Split(chars, "")
	list := []string{}
	for _, m := range merges {
		list = append(list, m)
		if made := strings.ReplaceAll(m, " ", ""); !slices.Contains(tokens, made) {
			tokens = append(tokens, made)
		}
	}
	return obj{"type": "BPE", "vocab": vocabulary(tokens...), "merges": list}
}

func with(m obj, key string, value any) obj {
	c := maps.Clone(m)
	c[key] = value
	return c
}

// byteModel has all single bytes, in the byte alphabet, with ids equal to their values, and the
// results of merges.
func byteModel(merges ...string) obj {
	var chars strings.Builder
	for _, c := range alphabet {
		chars.WriteRune(c)
	}
	return bpeModel(chars.String(), merges...)
}

var byteLevelDecoder = obj{"type": "ByteLevel"}

// byteLevel is the pre-tokenizer that only maps bytes.
var byteLevel = obj{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}

func sequence(kind string, parts ...any) obj { return obj{"type": "Sequence", kind: parts} }

// tokens encodes text and names the tokens.
func tokens(t testing.TB, tok *Tokenizer, text string, o Options) []string {
	t.Helper()
	ids, err := tok.Encode(text, o)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return names(tok, ids)
}

func names(tok *Tokenizer, ids []int32) []string {
	out := []string{}
	for _, id := range ids {
		text, ok := tok.Token(id)
		if !ok {
			text = fmt.Sprintf("no token %d", id)
		}
		out = append(out, text)
	}
	return out
}

func checkTokens(t *testing.T, tok *Tokenizer, text string, o Options, want ...string) {
	t.Helper()
	if got := tokens(t, tok, text, o); !slices.Equal(got, want) {
		t.Errorf("%q:\n got %q\nwant %q", text, got, want)
	}
}

// metadata is a Metadata in memory.
type metadata map[string]any

func (m metadata) String(key string) (string, bool)    { v, ok := m[key].(string); return v, ok }
func (m metadata) Has(key string) bool                 { return m[key] != nil }
func (m metadata) Bool(key string) (bool, bool)        { v, ok := m[key].(bool); return v, ok }
func (m metadata) Strings(key string) ([]string, bool) { v, ok := m[key].([]string); return v, ok }
func (m metadata) Floats(key string) ([]float32, bool) { v, ok := m[key].([]float32); return v, ok }
func (m metadata) Ints(key string) ([]int32, bool)     { v, ok := m[key].([]int32); return v, ok }

func (m metadata) Int(key string) (int64, bool) {
	switch v := m[key].(type) {
	case int:
		return int64(v), true
	case int64:
		return v, true
	case uint32:
		return int64(v), true
	}
	return 0, false
}

// pieces runs a split.
func pieces(t testing.TB, text string, steps ...splitter) []string {
	t.Helper()
	out := []string{}
	run := func(p piece) error { out = append(out, p.text); return nil }
	for _, step := range slices.Backward(steps) {
		next := run
		run = func(p piece) error { return step(p, next) }
	}
	if err := run(piece{text, true}); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return out
}
