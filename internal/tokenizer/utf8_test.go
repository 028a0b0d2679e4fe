package tokenizer

import "testing"

func TestValidUTF8ReplacesMaximalSubparts(t *testing.T) {
	for in, want := range map[string]string{
		"plain é 😀":          "plain é 😀",
		"\xE2\x82A":          "\uFFFDA",
		"\xF0\x9F\x98":       "\uFFFD",
		"\xFF\xFE":           "\uFFFD\uFFFD",
		"\xC0\x80":           "\uFFFD\uFFFD",
		"\xED\xA0\x80":       "\uFFFD\uFFFD\uFFFD",
		"\xF0\x80\x80\x41":   "\uFFFD\uFFFD\uFFFDA",
		"\xF4\x90\x80\x80":   "\uFFFD\uFFFD\uFFFD\uFFFD",
		"\xE2\x82\xE2\x82":   "\uFFFD\uFFFD",
		"\xF1\x80\xC2\xA9":   "\uFFFD©",
		"\uFFFD is a letter": "\uFFFD is a letter",
	} {
		if got := validUTF8(in); got != want {
			t.Errorf("validUTF8(%x) = %x, want %x", in, got, want)
		}
	}
}

func TestAppendUTF8HoldsBackAnUnfinishedSequence(t *testing.T) {
	for in, want := range map[string]int{
		"a\xE2": 1, "a\xE2\x82": 2, "\xF0\x9F\x98": 3, "a": 0, "\xFF": 0, "\x80": 0, "\xED\xA0": 0, "\xC0": 0,
	} {
		if _, got := appendUTF8(nil, []byte(in)); got != want {
			t.Errorf("appendUTF8(%x) holds back %d bytes, want %d", in, got, want)
		}
	}
}
