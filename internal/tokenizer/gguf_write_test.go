package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

func TestGGUFRoundTrip(t *testing.T) {
	split := func(patterns ...string) obj {
		steps := []any{}
		for _, p := range patterns {
			steps = append(steps, obj{"type": "Split", "pattern": obj{"Regex": p}, "behavior": "Isolated"})
		}
		return sequence("pretokenizers", append(steps, byteLevel)...)
	}
	special := []obj{added(300, "<s>", "special"), added(301, "</s>", "special"), added(303, "<x>")}
	roles := obj{"bos_token": "<s>", "eos_token": "</s>"}
	merges := []string{"a b", "Ġ ab", "1 2"}
	bytes := []string{"<unk>"}
	for b := range 256 {
		bytes = append(bytes, "<0x"+hexByte(byte(b))+">")
	}
	sentencePiece := obj{
		"type": "BPE", "vocab": vocabulary(append(bytes, "▁", "a", "b", "ab", "▁ab", "▁a", "aba")...),
		"merges": []string{"a b", "▁ ab", "▁a b", "▁ a", "ab a"}, "byte_fallback": true, "fuse_unk": true, "unk_token": "<unk>",
	}
	markSpace := obj{"type": "Replace", "pattern": obj{"String": " "}, "content": "▁"}
	prefixed := sequence("normalizers", obj{"type": "Prepend", "prepend": "▁"}, markSpace)
	for _, c := range []struct {
		pre string
		file
	}{
		{"qwen2", file{Normalizer: obj{"type": "NFC"}, Pre: split(qwen2Pattern)}},
		{"stablelm2", file{Pre: split(qwen2Pattern)}},
		{"llama3", file{Pre: split(llama3Pattern), Model: with(byteModel(merges...), "ignore_merges", true), Post: template([]int{300}, nil)}},
		{"dbrx", file{Pre: split(llama3Pattern), Model: with(byteModel("b a", "ab a", "a b"), "ignore_merges", false)}}, // aba is out of reach
		{"deepseek-v3", file{Normalizer: sequence("normalizers"), Pre: split(`\p{N}{1,3}`, "[一-龥぀-ゟ゠-ヿ]+", deepseekPattern)}},
		{"gpt-4o", file{Pre: split(o200kPattern), Model: with(byteModel(merges...), "ignore_merges", true)}}, // all tokens are within reach
		{"gpt-2", file{Pre: obj{"type": "ByteLevel", "add_prefix_space": false}}},
		{"starcoder", file{Pre: sequence("pretokenizers", obj{"type": "Digits", "individual_digits": true}, obj{"type": "ByteLevel", "add_prefix_space": false})}},
		{"tiny_aya", file{Pre: split(digitsBeforeBoundary, o200kPattern), Post: template(nil, []int{301})}},
		{"default", file{Normalizer: prefixed, Model: sentencePiece, Decoder: llamaDecode, Post: template([]int{300}, nil)}},
		{"default", file{Normalizer: markSpace, Model: sentencePiece, Decoder: sequence("decoders", unmarkStep, obj{"type": "ByteFallback"}, obj{"type": "Fuse"})}},
	} {
		t.Run(c.pre, func(t *testing.T) {
			f := c.file
			if f.Model == nil {
				f.Model = byteModel(merges...)
			}
			if f.Decoder == nil {
				f.Decoder = byteLevelDecoder
			}
			f.Added, f.Config = special, roles
			tok := f.load(t)
			meta, err := tok.GGUF()
			if err != nil {
				t.Fatal(err)
			}
			if meta["tokenizer.ggml.pre"] != c.pre {
				t.Errorf("pre is %v", meta["tokenizer.ggml.pre"])
			}
			again := fromGGUF(t, metadata(meta))
			for _, text := range []string{"", "ab ab", "ab12345 e\u0301中文\n\nIt's", "<s>ab<x> aba</s>", " ▁  a", "\xff😀"} {
				for _, o := range []Options{{}, {Special: true}, {PlainText: true}} {
					want, got := tokens(t, tok, text, o), tokens(t, again, text, o)
					if !slices.Equal(got, want) {
						t.Errorf("%q: %q, want %q", text, got, want)
					}
				}
				ids, _ := tok.Encode(text, Options{})
				if got, want := again.Decode(ids, true), tok.Decode(ids, true); got != want {
					t.Errorf("%q: decoded to %q, want %q", text, got, want)
				}
			}
			for id := range int32(tok.Size()) {
				if string(again.Bytes(id)) != string(tok.Bytes(id)) && tok.Bytes(id) != nil {
					t.Errorf("token %d: bytes %q, want %q", id, again.Bytes(id), tok.Bytes(id))
				}
			}
			if !slices.Equal(again.EOG(), tok.EOG()) || again.AddsBOS() != tok.AddsBOS() {
				t.Error("the special tokens differ")
			}
		})
	}
}

func (f file) decoded(decoder any) file {
	f.Decoder = decoder
	return f
}

func TestTokenizersThatGGUFCannotExpress(t *testing.T) {
	bytes := []string{}
	for b := range 256 {
		bytes = append(bytes, "<0x"+hexByte(byte(b))+">")
	}
	sentencePiece := func(merges ...string) file {
		model := obj{"type": "BPE", "vocab": vocabulary(append(bytes, "a", "b", "ab", "ba", "aba")...), "merges": merges, "byte_fallback": true}
		return file{
			Model: model, Normalizer: obj{"type": "Replace", "pattern": obj{"String": " "}, "content": "▁"},
			Decoder: sequence("decoders", unmarkStep, obj{"type": "ByteFallback"}, obj{"type": "Fuse"}),
		}
	}
	bytePre := obj{"type": "ByteLevel", "add_prefix_space": false}
	for _, c := range []struct {
		want string
		file
	}{
		{"no tokenizer.ggml.pre name stands for", file{Pre: sequence("pretokenizers",
			obj{"type": "Split", "pattern": obj{"Regex": "x"}, "behavior": "Isolated"}, byteLevel)}},
		{"no tokenizer.ggml.pre name stands for", file{Pre: bytePre, Model: with(obj{"type": "BPE", "vocab": vocabulary("a", "b", "ab"), "merges": []string{}},
			"ignore_merges", true)}},
		{"pre-tokenizer ByteLevel with these settings", file{Pre: obj{"type": "ByteLevel"}}},
		{"pre-tokenizer Split with these settings", file{Pre: sequence("pretokenizers",
			obj{"type": "Split", "pattern": obj{"Regex": "x"}, "behavior": "Removed"}, byteLevel)}},
		{"normalizer Lowercase", file{Pre: bytePre, Normalizer: obj{"type": "Lowercase"}}},
		{"lstrip, rstrip or single_word", file{Pre: bytePre, Added: []obj{added(300, "<x>", "rstrip")}}},
		{"unk_token or byte_fallback", file{Pre: bytePre, Model: with(byteModel(), "unk_token", "a")}},
		{"end_of_word_suffix", file{Pre: bytePre, Model: with(byteModel(), "end_of_word_suffix", "$")}},
		{"only a byte-pair encoding", file{Model: unigramModel(false, "a", -1)}},
		{"not those of a SentencePiece model", file{Model: bpeModel("a")}},
		{"the tokens put before a text are not BOS alone", file{Pre: bytePre, Post: template([]int{0, 1}, nil)}},
		{"the tokens put after a text are not EOS alone", file{Pre: bytePre, Post: template(nil, []int{0})}},
		{"the merges that make token 260 are not next to each other", sentencePiece("a b", "ab a", "b a", "a ba")},
		{"3 merges, but the tokens can be made in 4 ways", sentencePiece("a b", "b a", "ab a")},
		{"the decoder is not that of a SentencePiece model", sentencePiece("a b").decoded(llamaDecode)},
		{"neither byte-level nor has all byte tokens", file{Normalizer: sentencePiece().Normalizer, Model: bpeModel("a")}},
		{"the decoder is not ByteLevel alone", file{Pre: bytePre, Decoder: llamaDecode}},
	} {
		if c.Model == nil {
			c.Model = byteModel()
		}
		if c.Decoder == nil {
			c.Decoder = byteLevelDecoder
		}
		_, err := c.load(t).GGUF()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}
