package tokenizer

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// gpt2Metadata has all bytes, the results of merges and then further tokens "text" (normal) or
// "text:type".
func gpt2Metadata(pre string, merges []string, further ...string) metadata {
	var texts []string
	for _, c := range alphabet {
		texts = append(texts, string(c))
	}
	for _, m := range merges {
		texts = append(texts, strings.ReplaceAll(m, " ", ""))
	}
	types := slices.Repeat([]int32{typeNormal}, len(texts))
	for _, text := range further {
		text, typ, _ := strings.Cut(text, ":")
		texts = append(texts, text)
		types = append(types, map[string]int32{
			"": typeNormal, "control": typeControl, "user": typeUserDefined, "unknown": typeUnknown,
			"unused": typeUnused, "byte": typeByte,
		}[typ])
	}
	return metadata{
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": pre, "tokenizer.ggml.tokens": texts, "tokenizer.ggml.token_type": types,
		"tokenizer.ggml.merges": append([]string{}, merges...),
	}
}

func (m metadata) with(key string, value any) metadata {
	m = maps.Clone(m)
	m[key] = value
	return m
}

func fromGGUF(t testing.TB, m metadata) *Tokenizer {
	t.Helper()
	tok, err := FromGGUF(m)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestEveryPreTokenizerLoads(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range preTokenizers {
		for name := range strings.FieldsSeq(e.names) {
			if seen[name] {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
			tok := fromGGUF(t, gpt2Metadata(name, nil))
			const text = "Hello, WORLD! it's 1234567 中文\n\n  x_y(\"é\")"
			ids, err := tok.Encode(text, Options{})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if e.flags&rawText == 0 && tok.Decode(ids, false) != text {
				t.Errorf("%s: %q", name, tok.Decode(ids, false))
			}
		}
	}
	if len(seen) != 87 {
		t.Errorf("%d names", len(seen))
	}
}

func TestPreTokenizersSplitAsTheirModels(t *testing.T) {
	for _, c := range []struct{ pre, text, want string }{
		{"gpt-2", "I'm 12345 a  b", "I|'m| 12345| a| | b"},
		{"llama-bpe", "I'M 12345 a  b\n\n.", "I|'M| |123|45| a| | b|\n\n|."},
		{"smaug-bpe", "12345", "123|45"},
		{"qwen2", "12 a\r\n", "1|2| a|\r\n"},
		{"qwen35", "a\u0301b", "a\u0301b"},
		{"deepseek-v3", "a1234中文b", "a|123|4|中文|b"},
		{"deepseek-llm", "ab  \ncd 12", "ab|  |\n|cd| |12"},
		{"deepseek-coder", "a 12,", "a| |1|2|,"},
		{"falcon", "a ,b 1234", "a| |,|b| |123|4"},
		{"starcoder", "a12", "a|1|2"},
		{"tekken", "aBc 12", "a|Bc| |1|2"},
		{"gpt-4o", "aBc's 1234/\n", "a|Bc's| |123|4|/\n"},
		{"tiny_aya", "1234567 1234a", "1|234|567| |123|4|a"},
		{"afmoe", "1234a", "1|234|a"},
		{"superbpe", "x 1234 y", "x |1|234| y"},
		{"kimi-k2", "a中文b", "a|中文|b"},
		{"jais-2", "      a", "    | | a"},
		{"bloom", "a, b", "a|,| b"},
		{"viking", "a12", "a|1|2"},
		{"chameleon", "IMGIMGABZxIMGIMGA  ", "IMGIMGABZ|xIMGIMGA|  "},
		{"laguna", "a\n\nb", "a|\n\n|b"},
		{"gemma4", "a b\n\nc", "a b|\n\n|c"},
		{"whitespace", " ab  c\n", "ab|c"},
		{"default", "a ,1234", "a| |,|123|4"},
		{"seed-coder", "a,\n\n", "a|,|\n\n"},
		{"exaone-moe", "ab cd, 1", "ab cd|,| |1"},
		{"bailingmoe", "it's\n\n", "it|'s|\n\n"},
		{"minicpm5", "12345a", "123|45|a"},
		{"youtu", "한국語12", "한국|語|1|2"},
	} {
		tok := fromGGUF(t, gpt2Metadata(c.pre, nil))
		if got := strings.Join(pieces(t, c.text, tok.split...), "|"); got != c.want {
			t.Errorf("%s of %q: %q, want %q", c.pre, c.text, got, c.want)
		}
	}
}

func TestGGUFBytePairs(t *testing.T) {
	merges := []string{"a b", "ab c", "Ġ a"}
	m := gpt2Metadata("gpt-2", merges, "<|x|>:control", "  :user", "<|im_end|>", "", "ba")
	tok := fromGGUF(t, m)
	checkTokens(t, tok, "abc ab<|x|>  a", Options{}, "abc", "Ġ", "ab", "<|x|>", "  ", "a")
	checkTokens(t, tok, "<|x|>  ", Options{PlainText: true}, "<", "|", "x", "|", ">", "  ")
	checkTokens(t, tok, "ba", Options{}, "b", "a") // no merge makes it
	checkTokens(t, fromGGUF(t, m.with("tokenizer.ggml.pre", "llama-bpe")), "ba", Options{}, "ba")
	// Conversions have marked such tokens as normal.
	checkTokens(t, tok, "<|im_end|>", Options{}, "<|im_end|>")
	if got := names(tok, tok.EOG()); !slices.Equal(got, []string{"<|im_end|>"}) {
		t.Errorf("ends %v", got)
	}
	if id, ok := tok.ID("[EMPTY_262]"); !ok || id != 262 {
		t.Errorf("the empty token is %d, %v", id, ok)
	}
	if got := tok.Decode([]int32{256, 259, 260}, false); got != "ab<|x|>  " {
		t.Errorf("decoded to %q", got)
	}
	if got := tok.Decode([]int32{256, 259, 260}, true); got != "ab  " {
		t.Errorf("decoded to %q", got)
	}
}

func TestGGUFNormalizes(t *testing.T) {
	merges := []string{"Ã ©"}
	checkTokens(t, fromGGUF(t, gpt2Metadata("qwen2", merges)), "e\u0301", Options{}, "Ã©")
	checkTokens(t, fromGGUF(t, gpt2Metadata("hunyuan", merges)), "e\u0301", Options{}, "e", "Ì", "ģ")
}

func TestGGUFSpecialTokens(t *testing.T) {
	const bos, eos = 256, 257
	base := gpt2Metadata("gpt-2", nil, "<s>:control", "</s>:control")
	ids := base.with("tokenizer.ggml.bos_token_id", uint32(bos)).with("tokenizer.ggml.eos_token_id", uint32(eos))
	for _, c := range []struct {
		name string
		meta metadata
		want string // of "a"
	}{
		{"GPT-2 adds none", ids, "a"},
		{"unless asked to", ids.with("tokenizer.ggml.add_bos_token", true), "<s>|a"},
		{"EOS as well", ids.with("tokenizer.ggml.add_bos_token", true).with("tokenizer.ggml.add_eos_token", true), "<s>|a|</s>"},
		{"Llama 3 does", ids.with("tokenizer.ggml.pre", "llama-bpe"), "<s>|a"},
		{"unless asked not to", ids.with("tokenizer.ggml.pre", "llama-bpe").with("tokenizer.ggml.add_bos_token", false), "a"},
		{"or there is none", base.with("tokenizer.ggml.pre", "llama-bpe"), "a"},
		{"Roberta adds SEP", ids.with("tokenizer.ggml.pre", "roberta-bpe").with("tokenizer.ggml.seperator_token_id", uint32(eos)), "a|</s>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tok := fromGGUF(t, c.meta)
			checkTokens(t, tok, "a", Options{Special: true}, strings.Split(c.want, "|")...)
			if tok.AddsBOS() != strings.HasPrefix(c.want, "<s>") {
				t.Errorf("AddsBOS is %v", tok.AddsBOS())
			}
		})
	}
	tok := fromGGUF(t, ids)
	if got, want := tok.SpecialTokens(), (map[string]string{"bos_token": "<s>", "eos_token": "</s>"}); !maps.Equal(got, want) {
		t.Errorf("special tokens %v, want %v", got, want)
	}
}

func TestGGUFHarmonyShowsItsStructure(t *testing.T) {
	tok := fromGGUF(t, gpt2Metadata("gpt-4o", nil, "<|return|>:control", "<|call|>:control", "<|end|>:control", "<|channel|>:control"))
	if got := tok.Decode([]int32{259, 258, 256}, true); got != "<|channel|>" {
		t.Errorf("decoded to %q", got)
	}
	if got := names(tok, tok.EOG()); !slices.Equal(got, []string{"<|return|>", "<|call|>"}) {
		t.Errorf("ends %v", got)
	}
	if ids, _ := tok.Encode("<|channel|>", Options{PlainText: true}); slices.Contains(ids, 259) {
		t.Error("plain text writes <|channel|>")
	}
}

// spmMetadata: tokens with scores, most probable first; <unk>, <s>, </s> and all bytes come before
// them.
func spmMetadata(tokens ...string) metadata {
	texts, types, scores := []string{"<unk>", "<s>", "</s>"}, []int32{typeUnknown, typeControl, typeControl}, []float32{0, 0, 0}
	for b := range 256 {
		texts, types, scores = append(texts, "<0x"+hexByte(byte(b))+">"), append(types, typeByte), append(scores, 0)
	}
	for i, text := range tokens {
		text, user := strings.CutSuffix(text, ":user")
		texts, types, scores = append(texts, text), append(types, typeNormal), append(scores, -float32(i))
		if user {
			types[len(types)-1] = typeUserDefined
		}
	}
	return metadata{"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": texts, "tokenizer.ggml.token_type": types, "tokenizer.ggml.scores": scores}
}

func TestGGUFSentencePiece(t *testing.T) {
	m := spmMetadata("▁a", "bc", "ab", "▁", "a", "b", "c", "<x>:user", "éx", "x")
	tok := fromGGUF(t, m)
	for _, c := range []struct{ text, want string }{
		{"abc", "▁a|bc"},
		{"bcab", "▁|bc|ab"},
		{"a<x>a", "▁a|<x>|▁a"},                               // a space after each token that was cut out
		{" a", "▁|▁a"},                                       // and before a space
		{"é", "▁|<0xC3>|<0xA9>"},                             //
		{"éx", "▁|éx"},                                       // of a character that is no token
		{"éé", "▁|<0xC3>|<0xA9>|<0xC3>|<0xA9>"},              //
		{"a\n", "▁a|<0x0A>"},                                 //
		{"<s>a</s>", "<s>|▁a|</s>"},                          //
		{"<0x0A>", "▁|<0x3C>|<0x30>|x|<0x30>|<0x41>|<0x3E>"}, // text that spells a byte token is text
	} {
		checkTokens(t, tok, c.text, Options{}, strings.Split(c.want, "|")...)
		ids, _ := tok.Encode(c.text, Options{})
		if got := tok.Decode(ids, false); got != c.text && got != strings.ReplaceAll(strings.ReplaceAll(c.text, "<x>a", "<x> a"), "<s>a", "<s> a") {
			t.Errorf("%q decodes to %q", c.text, got)
		}
	}
	checkTokens(t, tok, "a", Options{Special: true}, "<s>", "▁a")
	checkTokens(t, tok, "", Options{})
	gemma := fromGGUF(t, m.with("tokenizer.ggml.add_space_prefix", false))
	checkTokens(t, gemma, "abc a", Options{}, "a", "bc", "▁a")
	if got := gemma.Decode([]int32{259}, false); got != " a" {
		t.Errorf("decoded to %q", got)
	}
}

func TestGGUFScoresOrderMerges(t *testing.T) {
	// Equal scores: leftmost first.
	m := spmMetadata("aa", "a")
	m["tokenizer.ggml.add_space_prefix"] = false
	checkTokens(t, fromGGUF(t, m), "aaaaa", Options{}, "aa", "aa", "a")
	// The higher score first, whatever the place and the id.
	m = spmMetadata("bc", "ab", "a", "b", "c")
	m["tokenizer.ggml.add_space_prefix"] = false
	checkTokens(t, fromGGUF(t, m), "abc", Options{}, "a", "bc")
	m["tokenizer.ggml.scores"].([]float32)[260] = 1
	checkTokens(t, fromGGUF(t, m), "abc", Options{}, "ab", "c")
}

func TestGGUFWhiteSpaceAroundSpecials(t *testing.T) {
	phi := spmMetadata("▁a", "▁", "a", "<|end|>").with("general.name", "Phi-3 mini")
	checkTokens(t, fromGGUF(t, phi), "<|end|>\n a", Options{}, "<|end|>", "▁a")
	checkTokens(t, fromGGUF(t, phi.with("general.name", "other")), "<|end|>\n a", Options{}, "<|end|>", "▁", "<0x0A>", "▁a")
	bert := gpt2Metadata("modern-bert", nil, "[MASK]:control")
	checkTokens(t, fromGGUF(t, bert), "a [MASK] b", Options{}, "a", "[MASK]", "Ġ", "b")
}

func TestGGUFRawText(t *testing.T) {
	m := gpt2Metadata("gemma4", []string{"▁ a", "\n \n"})
	texts := []string{"\n\n\n"}
	for b := range 256 {
		texts = append(texts, "<0x"+hexByte(byte(b))+">")
	}
	texts = append(texts, "▁", "a", "▁a", "\n", "\n\n")
	m["tokenizer.ggml.tokens"], m["tokenizer.ggml.token_type"] = texts, slices.Repeat([]int32{typeNormal}, len(texts))
	m["tokenizer.ggml.model"] = "gemma4"
	tok := fromGGUF(t, m)
	checkTokens(t, tok, "a a\n\n\naé", Options{}, "a", "▁a", "\n\n\n", "a", "<0xC3>", "<0xA9>")
	checkTokens(t, fromGGUF(t, m.with("tokenizer.ggml.pre", "sarvam-moe")), "\n\n\n", Options{}, "\n\n", "\n")
	ids, _ := tok.Encode("a a\n\n\naé", Options{})
	if got := tok.Decode(ids, false); got != "a a\n\n\naé" {
		t.Errorf("decoded to %q", got)
	}
}

func TestGGUFPrefersTheWholeFile(t *testing.T) {
	data, _ := file{Model: byteModel("a b"), Pre: byteLevel, Decoder: byteLevelDecoder, Added: []obj{added(300, "<s>", "special")}}.json(t)
	m := metadata{
		"tokenizer.huggingface.json": string(data), "tokenizer.ggml.model": "rwkv", "tokenizer.ggml.bos_token_id": 300,
		"tokenizer.ggml.add_bos_token": true,
	}
	checkTokens(t, fromGGUF(t, m), "ab", Options{Special: true}, "<s>", "ab")
	if _, err := FromGGUF(m.with("tokenizer.huggingface.json", "{")); err == nil {
		t.Error("a broken tokenizer.json is passed over")
	}
}

func TestGGUFVocabulariesThatAreRefused(t *testing.T) {
	gpt2, spm := gpt2Metadata("gpt-2", []string{"a b"}), spmMetadata("a")
	for _, c := range []struct {
		name string
		meta metadata
		want string
	}{
		{"nothing", metadata{}, "tokenizer.ggml.model is missing"},
		{"another model", gpt2.with("tokenizer.ggml.model", "rwkv"), `tokenizer.ggml.model "rwkv" is not supported`},
		{"T5", gpt2.with("tokenizer.ggml.model", "t5"), `tokenizer.ggml.model "t5" is not supported`},
		{"no tokens", gpt2.with("tokenizer.ggml.tokens", nil), "tokenizer.ggml.tokens is missing or empty"},
		{"tokens of a wrong type", gpt2.with("tokenizer.ggml.tokens", []int32{1}), "tokenizer.ggml.tokens is missing or empty"},
		{"no pre", gpt2.with("tokenizer.ggml.pre", nil), "tokenizer.ggml.pre is missing"},
		{"an unknown pre", gpt2.with("tokenizer.ggml.pre", "gpt-5"), `tokenizer.ggml.pre "gpt-5" is not supported`},
		{"no merges", gpt2.with("tokenizer.ggml.merges", nil), "tokenizer.ggml.merges is missing"},
		{"a merge of one", gpt2.with("tokenizer.ggml.merges", []string{"ab"}), "merge 0 is not two parts"},
		{"an empty merge", gpt2.with("tokenizer.ggml.merges", []string{""}), "merge 0 is not two parts"},
		{"an unknown merge", gpt2.with("tokenizer.ggml.merges", []string{"a c"}), `merge 0: its result "ac" is not in the vocabulary`},
		{"types that do not fit", gpt2.with("tokenizer.ggml.token_type", []int32{1}), "token_type has 1 entries, tokens 257"},
		{
			"an unknown type",
			metadata{"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": []string{"a"}, "tokenizer.ggml.token_type": []int32{7}},
			"token 0 has the unknown type 7",
		},
		{"BOS beyond the vocabulary", gpt2.with("tokenizer.ggml.bos_token_id", uint32(257)), "tokenizer.ggml.bos_token_id is 257"},
		{"a negative EOS", gpt2.with("tokenizer.ggml.eos_token_id", int64(-1)), "tokenizer.ggml.eos_token_id is -1"},
		{"BOS to add but none there", gpt2.with("tokenizer.ggml.add_bos_token", true), "add_bos_token is true, but there is no such token"},
		{"no scores", spm.with("tokenizer.ggml.scores", nil), "tokenizer.ggml.scores has 0 entries, tokens 260"},
		{"a long token", spmMetadata(strings.Repeat("a", 2000)), "token 259 is longer than 1024 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := FromGGUF(c.meta)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// A key of another type is not the same as none: control tokens would be text.
func TestGGUFKeysOfAnotherTypeAreRefused(t *testing.T) {
	m := gpt2Metadata("qwen2", nil)
	for key, value := range map[string]any{
		"pre": int64(1), "token_type": []string{"3"}, "scores": []int32{1}, "add_bos_token": "yes", "eos_token_id": "2",
	} {
		_, err := FromGGUF(m.with("tokenizer.ggml."+key, value))
		if err == nil || !strings.Contains(err.Error(), "tokenizer.ggml."+key+": expected ") {
			t.Errorf("%s of type %T: %v", key, value, err)
		}
	}
}
