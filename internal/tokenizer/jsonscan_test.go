package tokenizer

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestStringsAreReadAsByEncodingJSON(t *testing.T) {
	part := rapid.SampledFrom([]string{`a`, `é`, `😀`, `\n`, `\t`, `\r`, `\b`, `\f`, `\/`, `\\`, `\"`, `\u0041`, `\u00e9`, `\uD83D\uDE00`, `\u4E2D`, ` `, `,`, `]`})
	rapid.Check(t, func(t *rapid.T) {
		text := `"` + strings.Join(rapid.SliceOf(part).Draw(t, "parts"), "") + `"`
		var want string
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		s := jsonScanner{buf: []byte(text + "x")}
		got, err := s.str()
		if err != nil || string(got) != want || s.pos != len(text) {
			t.Fatalf("%s: %q, %v, up to %d; want %q", text, got, err, s.pos, want)
		}
	})
}

func TestStringsThatAreRefused(t *testing.T) {
	for _, text := range []string{``, `a`, `"`, `"a`, `"\`, `"\x"`, `"\u12"`, `"\u12`, `"\uD83D"`, `"\uD83Dx"`, `"\uD83D\u0041"`, `"\uDE00"`, "\"\x01\"", "\"\\n\x01\""} {
		s := jsonScanner{buf: []byte(text)}
		if got, err := s.str(); err == nil {
			t.Errorf("%s is read as %q", text, got)
		}
	}
}

func TestRawValues(t *testing.T) {
	for text, want := range map[string]string{
		` {"a":[1,-2.5e+3,{"b":null}],"c":"]}"} ,`: `{"a":[1,-2.5e+3,{"b":null}],"c":"]}"}`,
		`true]`:        `true`,
		`"a\"b" : 1`:   `"a\"b"`,
		`[]`:           `[]`,
		`[[[[]]]]x`:    `[[[[]]]]`,
		`-1.5E3`:       `-1.5E3`,
		`{"a" : [ ] }`: `{"a" : [ ] }`,
	} {
		s := jsonScanner{buf: []byte(text)}
		if got, err := s.raw(); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{``, ` `, `]`, `,`, `[`, `[1`, `[}`, `{]`, `{"a":[}]`, `"a`, `@`, `[1,@]`} {
		s := jsonScanner{buf: []byte(text)}
		if got, err := s.raw(); err == nil {
			t.Errorf("%s is skipped as %s", text, got)
		}
	}
}
