package tokenizer

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func template(before, after []int) obj {
	single, special := []any{}, obj{}
	item := func(id int) {
		name := string(rune('A' + id))
		single = append(single, obj{"SpecialToken": obj{"id": name, "type_id": 0}})
		special[name] = obj{"id": name, "ids": []int{id}, "tokens": []string{name}}
	}
	for _, id := range before {
		item(id)
	}
	single = append(single, obj{"Sequence": obj{"id": "A", "type_id": 0}})
	for _, id := range after {
		item(id)
	}
	return obj{"type": "TemplateProcessing", "single": single, "pair": []any{}, "special_tokens": special}
}

func TestSpecialTokensAroundTheText(t *testing.T) {
	byteLevelPost := obj{"type": "ByteLevel"}
	llama := func(bos, eos bool) obj {
		return obj{
			"tokenizer_class": "LlamaTokenizerFast", "add_bos_token": bos, "add_eos_token": eos, "bos_token": "<s>",
			"eos_token": obj{"content": "</s>", "lstrip": false},
		}
	}
	for _, c := range []struct {
		name    string
		post    any
		config  obj
		want    string // of "a"
		addsBOS bool
	}{
		{"nothing", nil, nil, "a", false},
		{"a template", template([]int{0}, nil), nil, "<s>|a", true},
		{"a template with both", template([]int{0}, []int{1}), nil, "<s>|a|</s>", true},
		{"in a sequence", sequence("processors", byteLevelPost, template([]int{0}, nil)), nil, "<s>|a", true},
		{"Roberta", obj{"type": "RobertaProcessing", "cls": []any{"<s>", 0}, "sep": []any{"</s>", 1}}, nil, "<s>|a|</s>", true},
		{"a Llama class without a template", byteLevelPost, llama(true, false), "<s>|a", true},
		{"with EOS", nil, llama(true, true), "<s>|a|</s>", true},
		{"that does not ask for it", byteLevelPost, llama(false, false), "a", false},
		{"the template decides", template(nil, []int{1}), llama(true, false), "a|</s>", false},
		{"another class", byteLevelPost, with(llama(true, true), "tokenizer_class", "PreTrainedTokenizerFast"), "a", false},
		{"BOS is not the first token added", template([]int{1}, nil), llama(false, false), "</s>|a", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := file{Post: c.post, Config: c.config, Model: obj{"type": "BPE", "vocab": vocabulary("<s>", "</s>", "a"), "merges": []string{}}}
			f.Added = []obj{added(0, "<s>", "special"), added(1, "</s>", "special")}
			tok := f.load(t)
			checkTokens(t, tok, "a", Options{Special: true}, strings.Split(c.want, "|")...)
			checkTokens(t, tok, "a", Options{}, "a")
			if tok.AddsBOS() != c.addsBOS {
				t.Errorf("AddsBOS is %v", tok.AddsBOS())
			}
			if c.addsBOS {
				want := strings.Split(strings.TrimPrefix(c.want, "<s>|"), "|")
				checkTokens(t, tok, "<s>a", Options{Special: true}, append([]string{"<s>"}, want...)...) // not two of them
			}
		})
	}
}

func TestRoles(t *testing.T) {
	f := wordFile(nil, "a", "b")
	f.Added = []obj{added(2, "<bos>", "special"), added(3, "<pad>", "special")}
	f.Config = obj{"bos_token": "<bos>", "pad_token": obj{"content": "<pad>"}, "unk_token": nil, "add_bos_token": true, "image_token": "<img>"}
	tok := f.load(t)
	if bos, ok := tok.BOS(); !ok || bos != 2 {
		t.Errorf("BOS is %d, %v", bos, ok)
	}
	if got, want := tok.SpecialTokens(), (map[string]string{"bos_token": "<bos>", "pad_token": "<pad>", "image_token": "<img>"}); !maps.Equal(got, want) {
		t.Errorf("special tokens %v, want %v", got, want)
	}
	if tok.Size() != 4 || !tok.IsSpecial(2) || tok.IsSpecial(0) || tok.IsSpecial(99) {
		t.Errorf("size %d", tok.Size())
	}
	if text, ok := tok.Token(3); text != "<pad>" || !ok {
		t.Errorf("token 3 is %q, %v", text, ok)
	}
	if id, ok := tok.ID("<pad>"); id != 3 || !ok {
		t.Errorf("the id of <pad> is %d, %v", id, ok)
	}
	if _, ok := tok.ID("<img>"); ok {
		t.Error("<img> is a token")
	}
}

func TestEndOfGeneration(t *testing.T) {
	for _, c := range []struct {
		name   string
		tokens string // all special, but for those after |
		eos    string
		want   string
	}{
		{"eos alone", "<x> <y>", "<y>", "<y>"},
		{"known texts", "<|eot_id|> <|eom_id|> <|im_end|> <x>", "", "<|eot_id|> <|eom_id|> <|im_end|>"},
		{"harmony: a message's end is none", "<|end|> <|return|> <|call|>", "<|return|>", "<|return|> <|call|>"},
		{"else it is", "<|end|> <|endoftext|>", "", "<|end|> <|endoftext|>"},
		{"text that looks like one", "<x> | </s> [EOS] <|im_end|>", "", "<|im_end|>"},
		{"Gemma 4", "</s> <turn|> <|tool_response>", "<turn|>", "<turn|> <|tool_response>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := wordFile(nil, "a")
			flags := []string{"special"}
			for i, text := range strings.Fields(c.tokens) {
				if text == "|" {
					flags = nil
				}
				f.Added = append(f.Added, added(i+1, text, flags...))
			}
			if c.eos != "" {
				f.Config = obj{"eos_token": c.eos}
			}
			tok := f.load(t)
			if got := strings.Join(names(tok, tok.EOG()), " "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestConfigFlagsWin(t *testing.T) {
	f := wordFile(nil, "a", " ")
	f.Added = []obj{added(2, "<x>", "special")}
	f.Config = obj{"added_tokens_decoder": obj{"2": added(0, "<x>", "lstrip"), "3": added(0, "<y>", "special")}}
	tok := f.load(t)
	checkTokens(t, tok, "a <x><y>", Options{PlainText: true}, "a", "<x>")
	checkTokens(t, tok, "a <x><y>", Options{}, "a", "<x>", "<y>")
	if tok.IsSpecial(2) || !tok.IsSpecial(3) {
		t.Error("the flags are those of the tokenizer.json")
	}
}

func TestInvalidUTF8IsReplaced(t *testing.T) {
	tok := file{Model: byteModel(), Pre: byteLevel, Decoder: byteLevelDecoder}.load(t)
	ids, err := tok.Encode("a\xE2\x82b", Options{})
	if got := tok.Decode(ids, false); err != nil || got != "a\uFFFDb" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	const bpe = `"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}`
	for _, c := range []struct{ name, data, config, want string }{
		{"nothing", ``, ``, "bad JSON at byte 0: expected {"},
		{"no object", `[]`, ``, "expected {"},
		{"cut off", `{` + bpe, ``, "expected a comma or }"},
		{"text after it", `{` + bpe + `} x`, ``, "expected the end"},
		{"not UTF-8", "{\"a\":\"\xFF\"," + bpe + "}", ``, "not UTF-8"},
		{"a part twice", `{` + bpe + `,` + bpe + `}`, ``, `"model" appears twice`},
		{"no model", `{}`, ``, "model: bad JSON"},
		{"no vocabulary", `{"model":{"type":"BPE","merges":[]}}`, ``, "vocab is missing"},
		{"an empty one", `{"model":{"type":"BPE","vocab":{},"merges":[]}}`, ``, "the vocabulary is empty"},
		{"an unknown model", `{"model":{"type":"WordPiece","vocab":{"a":0}}}`, ``, `model: type "WordPiece" is not supported`},
		{"an old file of another model", `{"model":{"vocab":{"a":0}}}`, ``, `type "WordPiece" is not supported`},
		{"dropout", `{"model":{"type":"BPE","vocab":{"a":0},"merges":[],"dropout":0.1}}`, ``, "dropout"},
		{"two ids of a token", `{"model":{"type":"BPE","vocab":{"a":0,"a":1},"merges":[]}}`, ``, "1 tokens are in the vocabulary twice"},
		{"two tokens of an id", `{"model":{"type":"BPE","vocab":{"a":0,"b":0},"merges":[]}}`, ``, `tokens "a" and "b" have the same id 0`},
		{"an id far off", `{"model":{"type":"BPE","vocab":{"a":2000000000},"merges":[]}}`, ``, "token id 2000000000 in a vocabulary of 1"},
		{"a negative id", `{"model":{"type":"BPE","vocab":{"a":-1},"merges":[]}}`, ``, "expected a token id"},
		{"a fraction", `{"model":{"type":"BPE","vocab":{"a":1.5},"merges":[]}}`, ``, "expected a comma"},
		{"a huge id", `{"model":{"type":"BPE","vocab":{"a":99999999999999999999},"merges":[]}}`, ``, "expected a token id"},
		{"half a surrogate", `{"model":{"type":"BPE","vocab":{"\ud800":0},"merges":[]}}`, ``, "four hexadecimal digits"},
		{"a control character", "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"\n\":0},\"merges\":[]}}", ``, "no control character"},
		{"a merge of unknown parts", `{"model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}}`, ``, `merges: merge 0: "b" is not in the vocabulary`},
		{"a merge to nowhere", `{"model":{"type":"BPE","vocab":{"a":0},"merges":["a a"]}}`, ``, `its result "aa" is not in the vocabulary`},
		{"a merge of three", `{"model":{"type":"BPE","vocab":{"a":0},"merges":["a a a"]}}`, ``, "merge 0 is not two parts"},
		{"a merge of one", `{"model":{"type":"BPE","vocab":{"a":0},"merges":[["a"]]}}`, ``, "merge 0 is not a pair"},
		{"an unknown unk", `{"model":{"type":"BPE","vocab":{"a":0},"merges":[],"unk_token":"u"}}`, ``, `unk_token "u" is not in the vocabulary`},
		{"an unknown unk id", `{"model":{"type":"Unigram","vocab":[["a",-1]],"unk_id":1}}`, ``, "unk_id 1 is not in the vocabulary"},
		{"a score that is none", `{"model":{"type":"Unigram","vocab":[["a",true]]}}`, ``, "expected a number"},
		{"an entry without score", `{"model":{"type":"Unigram","vocab":[["a"]]}}`, ``, "an entry is not [text, score]"},
		{"an added token on another's id", `{"added_tokens":[{"id":0,"content":"x"}],` + bpe + `}`, ``, `tokens "a" and "x" have the same id 0`},
		{"an added token with two ids", `{"added_tokens":[{"id":5,"content":"x"},{"id":6,"content":"x"}],` + bpe + `}`, ``, `token "x" has the ids 5 and 6`},
		{"an added token of the vocabulary elsewhere", `{"added_tokens":[{"id":5,"content":"a"}],` + bpe + `}`, ``, `token "a" has the ids 0 and 5`},
		{"an added token far off", `{"added_tokens":[{"id":2000000000,"content":"x"}],` + bpe + `}`, ``, "token id 2000000000"},
		{"an added token before the first", `{"added_tokens":[{"id":-1,"content":"x"}],` + bpe + `}`, ``, "expected a token id"},
		{"an unknown normalizer", `{"normalizer":{"type":"Nmt"},` + bpe + `}`, ``, `normalizer: type "Nmt" is not supported`},
		{"an unknown pre-tokenizer", `{"pre_tokenizer":{"type":"UnicodeScripts"},` + bpe + `}`, ``, `pre_tokenizer: type "UnicodeScripts" is not supported`},
		{"one of no type", `{"pre_tokenizer":{},` + bpe + `}`, ``, `pre_tokenizer: type "" is not supported`},
		{"an unknown post-processor", `{"post_processor":{"type":"X"},` + bpe + `}`, ``, `post_processor: type "X" is not supported`},
		{"an unknown behavior", `{"pre_tokenizer":{"type":"Split","pattern":{"String":"a"},"behavior":"x"},` + bpe + `}`, ``, `behavior "x" is unknown`},
		{"no behavior", `{"pre_tokenizer":{"type":"Split","pattern":{"String":"a"}},` + bpe + `}`, ``, `behavior "" is unknown`},
		{"no pattern", `{"pre_tokenizer":{"type":"Split","behavior":"Isolated"},` + bpe + `}`, ``, "pattern must be a String or a Regex"},
		{"an unknown scheme", `{"pre_tokenizer":{"type":"Metaspace","prepend_scheme":"x"},` + bpe + `}`, ``, `prepend_scheme "x" is unknown`},
		{"a bad pattern", `{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"(?i)a"},"behavior":"Isolated"},` + bpe + `}`, ``, "group (?i) is not supported"},
		{"a bad map", `{"normalizer":{"type":"Precompiled","precompiled_charsmap":"AAAA"},` + bpe + `}`, ``, "precompiled_charsmap: shorter than its header"},
		{"a template without text", `{"post_processor":{"type":"TemplateProcessing","single":[]},` + bpe + `}`, ``, "single has no sequence A"},
		{
			"a template of unknown tokens", `{"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}}]},` + bpe + `}`, ``,
			`special token "x" is not defined`,
		},
		{"a template of no tokens", `{"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}},{"Sequence":{"id":"A"}}],` +
			`"special_tokens":{"x":{"ids":[7]}}},` + bpe + `}`, ``, "token 7 is not in the vocabulary"},
		{"a bad config", `{` + bpe + `}`, `{`, "tokenizer_config.json"},
		{"a config with a bad id", `{` + bpe + `}`, `{"added_tokens_decoder":{"x":{"content":"y"}}}`, `"x" is no token id`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := FromJSON([]byte(c.data), []byte(c.config))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestOrderOfMembersDoesNotMatter(t *testing.T) {
	data := `{"model":{"merges":[["a","b"]],"vocab":{"ab":2,"\u0061":0,"b":1},"type":"BPE"},"added_tokens":[{"content":"\ud83d\ude00","id":9}]}`
	tok, err := FromJSON([]byte(data), nil)
	if err != nil {
		t.Fatal(err)
	}
	checkTokens(t, tok, "ab😀", Options{}, "ab", "😀")
	if tok.Size() != 10 {
		t.Errorf("size %d", tok.Size())
	}
	if _, ok := tok.Token(5); ok {
		t.Error("5 is a token")
	}
	if got := tok.Decode([]int32{2, 5, 9}, false); got != "ab 😀" {
		t.Errorf("decoded to %q", got)
	}
	if !slices.Equal(tok.EOG(), []int32{}) {
		t.Errorf("ends %v", tok.EOG())
	}
}
