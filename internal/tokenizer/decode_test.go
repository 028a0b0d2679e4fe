package tokenizer

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

var (
	unmarkStep  = obj{"type": "Replace", "pattern": obj{"String": "▁"}, "content": " "}
	llamaDecode = sequence("decoders", unmarkStep, obj{"type": "ByteFallback"}, obj{"type": "Fuse"}, obj{"type": "Strip", "content": " ", "start": 1, "stop": 0})
)

// wordFile has a token for each word, ids from 0.
func wordFile(decoder any, words ...string) file {
	return file{Model: obj{"type": "BPE", "vocab": vocabulary(words...), "merges": []string{}}, Decoder: decoder}
}

func TestDecoders(t *testing.T) {
	for _, c := range []struct {
		name    string
		decoder any
		tokens  string // separated by spaces
		want    string
	}{
		{"none: join with spaces", nil, "ab cd", "ab cd"},
		{"ByteLevel", byteLevelDecoder, "Ġa Ã ©", " aé"},
		{"ByteLevel: a token outside the alphabet is its own text", byteLevelDecoder, "<｜x｜> Ġ", "<｜x｜> "},
		{"ByteLevel: maximal subparts", byteLevelDecoder, "ð Ł A Ã", "\uFFFDA\uFFFD"},
		{"Llama", llamaDecode, "▁a ▁b <0xC3> <0xA9> <0x0A>", "a bé\n"},
		{"only one space is stripped", llamaDecode, "▁▁a", " a"},
		{"from the text, not from each token", llamaDecode, "▁ ▁a", " a"},
		{"invalid bytes: one U+FFFD each, for the whole run", llamaDecode, "<0xC3> <0xA9> <0xE2> <0x82> a", "\uFFFD\uFFFD\uFFFD\uFFFDa"},
		{"lower case bytes", llamaDecode, "<0xc3> <0xa9>", "é"},
		{"Gemma: nothing is stripped", sequence("decoders", unmarkStep, obj{"type": "ByteFallback"}, obj{"type": "Fuse"}), "▁a", " a"},
		{"Metaspace", obj{"type": "Metaspace"}, "▁▁a▁b ▁c", "ab c"}, // all of the first token's marks vanish
		{"Metaspace, never", obj{"type": "Metaspace", "prepend_scheme": "never"}, "▁a ▁c", " a c"},
		{"Strip before joining acts on each token", sequence("decoders", obj{"type": "Strip", "content": "_", "start": 1, "stop": 0}), "__a _b", "_ab"},
	} {
		t.Run(c.name, func(t *testing.T) {
			words := strings.Fields(c.tokens)
			unique := map[string]int32{}
			list := []string{}
			var ids []int32
			for _, w := range words {
				if _, seen := unique[w]; !seen {
					unique[w] = int32(len(list))
					list = append(list, w)
				}
				ids = append(ids, unique[w])
			}
			tok := wordFile(c.decoder, list...).load(t)
			if got := tok.Decode(ids, false); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestDecodeSkips(t *testing.T) {
	f := wordFile(llamaDecode, "<s>", "▁a", "<0xC3>", "<0xA9>", "<x>")
	f.Added = []obj{added(0, "<s>", "special"), added(4, "<x>")}
	tok := f.load(t)
	for _, c := range []struct {
		ids  []int32
		skip bool
		want string
	}{
		{[]int32{0, 1}, false, "<s> a"},
		{[]int32{0, 1}, true, "a"}, // the first space is that of the text
		{[]int32{1, 4, 1}, true, "a<x> a"},
		{[]int32{1, -1, 5, 1 << 30}, true, "a"}, // no tokens
		{[]int32{2, 0, 3}, true, "é"},           // a skipped token does not interrupt a character
		{[]int32{2, 0, 3}, false, "\uFFFD<s>\uFFFD"},
	} {
		if got := tok.Decode(c.ids, c.skip); got != c.want {
			t.Errorf("%v, skipping %v: %q, want %q", c.ids, c.skip, got, c.want)
		}
	}
}

func TestDecodersThatAreRefused(t *testing.T) {
	for want, decoder := range map[string]obj{
		`decoder: type "WordPiece" is not supported`:   {"type": "WordPiece"},
		`decoder: type "CTC" is not supported`:         {"type": "CTC"},
		`decoder: type "BPEDecoder" is not supported`:  {"type": "BPEDecoder"},
		`decoder: type "Replace" after the tokens`:     sequence("decoders", obj{"type": "Fuse"}, unmarkStep),
		`decoder: type "ByteFallback" after the token`: sequence("decoders", byteLevelDecoder, obj{"type": "ByteFallback"}),
		`decoder: Strip: a stop above 0 after`:         sequence("decoders", obj{"type": "Fuse"}, obj{"type": "Strip", "content": " ", "stop": 1}),
		`decoder: Strip: content must be one char`:     {"type": "Strip", "content": "ab"},
	} {
		_, err := FromJSON(wordFile(decoder, "a").json(t))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestStreamHoldsBackUnfinishedCharacters(t *testing.T) {
	words := []string{"a", "ð", "Ł", "ĺ", "Ģ", "Ã", "<｜end｜>"} // F0 9F 98 80 is 😀
	f := wordFile(byteLevelDecoder, words...)
	f.Added = []obj{added(6, "<｜end｜>", "special")}
	tok := f.load(t)
	for _, c := range []struct {
		name   string
		prompt []int32
		ids    []int32
		want   []string // of each Push, then Flush
	}{
		{"four tokens, one character", nil, []int32{1, 2, 3, 4}, []string{"", "", "", "😀", ""}},
		{"interrupted", nil, []int32{0, 1, 2, 0}, []string{"a", "", "", "\uFFFDa", ""}},
		{"at the end", nil, []int32{1, 2, 3}, []string{"", "", "", "\uFFFD"}},
		{"broken twice", nil, []int32{5, 5, 0}, []string{"", "\uFFFD", "\uFFFDa", ""}},
		{"a skipped token in between", nil, []int32{1, 2, 6, 3, 4}, []string{"", "", "", "", "😀", ""}},
		{"begun in the prompt", []int32{0, 1, 2}, []int32{3, 4}, []string{"", "😀", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := tok.Stream(c.prompt, true)
			for i, id := range c.ids {
				if got := s.Push(id); got != c.want[i] {
					t.Errorf("token %d gives %q, want %q", i, got, c.want[i])
				}
			}
			if got := s.Flush(); got != c.want[len(c.ids)] {
				t.Errorf("the end gives %q, want %q", got, c.want[len(c.ids)])
			}
		})
	}
}

func TestStreamStripsTheFirstSpaceOfTheSequence(t *testing.T) {
	f := wordFile(llamaDecode, "<s>", "▁a", "▁", "<0x20>", "<0xE2>", "<0x82>")
	f.Added = []obj{added(0, "<s>", "special")}
	tok := f.load(t)
	for _, c := range []struct {
		prompt, ids []int32
		want        string
	}{
		{nil, []int32{1, 1}, "a a"},
		{[]int32{0}, []int32{1}, "a"}, // the prompt has no text
		{[]int32{0, 1}, []int32{1}, " a"},
		{nil, []int32{2, 1}, " a"},
		{nil, []int32{3, 1}, " a"},
		{nil, []int32{4, 5, 1}, "\uFFFD\uFFFD a"},
	} {
		s := tok.Stream(c.prompt, true)
		got := ""
		for _, id := range c.ids {
			got += s.Push(id)
		}
		if got += s.Flush(); got != c.want {
			t.Errorf("%v after %v: %q, want %q", c.ids, c.prompt, got, c.want)
		}
	}
}

// TestStreamsAddUp: what a stream returns is what Decode does, it is valid UTF-8 at all times, and
// at most 3 bytes wait.
func TestStreamsAddUp(t *testing.T) {
	alphabetic := byteModel("Ġ a")
	bytes := []string{"<s>", "a", "▁", "▁a"}
	for b := range 256 {
		bytes = append(bytes, "<0x"+hexByte(byte(b))+">")
	}
	fallback := wordFile(llamaDecode, bytes...)
	fallback.Added = []obj{added(0, "<s>", "special")}
	for name, tok := range map[string]*Tokenizer{
		"byte-level":    file{Model: alphabetic, Pre: byteLevel, Decoder: byteLevelDecoder, Added: []obj{added(300, "<s>", "special")}}.load(t),
		"byte tokens":   fallback.load(t),
		"no decoder":    wordFile(nil, "a", "é", "<s>").load(t),
		"Metaspace":     wordFile(obj{"type": "Metaspace"}, "▁", "▁a", "a").load(t),
		"strip several": wordFile(sequence("decoders", obj{"type": "Fuse"}, obj{"type": "Strip", "content": "é", "start": 3, "stop": 0}), "é", "éé", "a").load(t),
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				id := rapid.Int32Range(-1, int32(tok.Size()))
				if name != "no decoder" && rapid.Bool().Draw(t, "bytes") {
					id = rapid.Int32Range(0, 5)
				}
				ids := rapid.SliceOf(id).Draw(t, "ids")
				skip := rapid.Bool().Draw(t, "skip")
				whole := tok.Decode(ids, skip)
				s := tok.Stream(nil, skip)
				got := ""
				for _, id := range ids {
					part := s.Push(id)
					if !utf8.ValidString(part) {
						t.Fatalf("%q is not UTF-8", part)
					}
					if len(s.run) > 3 {
						t.Fatalf("%d bytes wait", len(s.run))
					}
					got += part
				}
				got += s.Flush()
				if got != whole && !(name == "byte tokens" && strings.Contains(whole, "\uFFFD")) {
					t.Fatalf("%v streams as %q, decodes to %q", ids, got, whole)
				}
			})
		})
	}
}

func TestBytes(t *testing.T) {
	f := wordFile(llamaDecode, "▁a", "<0xC3>", "<s>", "<x>")
	f.Added = []obj{added(2, "<s>", "special"), added(3, "<x>")}
	tok := f.load(t)
	for id, want := range []string{" a", "\xC3", "<s>", "<x>", ""} {
		if got := string(tok.Bytes(int32(id))); got != want {
			t.Errorf("token %d: %q, want %q", id, got, want)
		}
	}
	if tok.Bytes(-1) != nil {
		t.Error("token -1 has bytes")
	}
}
