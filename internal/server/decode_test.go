package server

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"
)

// Bodies that no client of sense sends.
func TestHostileBodies(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	stops := `"a"` + strings.Repeat(`,"hello stop"`, 10000)
	var biases []string
	for id := range 288 {
		biases = append(biases, fmt.Sprintf(`"%d":-1`, id))
	}
	for _, tc := range []struct {
		name, body string
		status     int
		words      string
	}{
		{"nothing", ``, 400, "unexpected end"},
		{"spaces", "  \n", 400, "unexpected end"},
		{"a list", `[]`, 400, "the body is a list, expected a JSON object"},
		{"a string", `"prompt"`, 400, `the body is \"prompt\"`},
		{"null", `null`, 400, "the body is null"},
		{"half an object", `{"prompt":"a"`, 400, "offset 13"},
		{"two objects", `{"prompt":"a"}{}`, 400, "data after the value"},
		{"a comma too many", `{"prompt":"a",}`, 400, "expected a key"},
		{"depth", strings.Repeat(`{"prompt":`, 1e5), 400, "nested deeper"},
		{"depth in an ignored field", `{"metadata":` + strings.Repeat("[", 1e5), 400, "nested deeper"},
		{"a key twice", `{"prompt":"a","prompt":"b"}`, 400, `the key \"prompt\" comes twice`},
		{"a key twice, escaped", `{"prompt":"a","pr\u006fmpt":"b"}`, 400, `the key \"prompt\" comes twice`},
		{"a key twice within", `{"prompt":"a","metadata":{"x":1,"x":2}}`, 400, `the key \"x\" comes twice`},
		{"no UTF-8", "{\"prompt\":\"a\xff\"}", 400, "invalid UTF-8"},
		{"half a surrogate pair", `{"prompt":"\ud83d"}`, 400, "half a surrogate pair"},
		{"a whole surrogate pair", `{"prompt":"\ud83d\ude00","max_tokens":1}`, 200, ""},
		{"NUL", `{"prompt":"a\u0000b","max_tokens":1}`, 200, ""},
		{"NaN", `{"prompt":"a","temperature":NaN}`, 400, "offset 28"},
		{"a number beyond float64", `{"prompt":"a","temperature":1e999}`, 400, "number beyond float64"},
		{"a number of many digits", `{"prompt":"a","seed":` + strings.Repeat("9", 65) + `}`, 400, "the most is 64"},
		{"a number beyond 64 bits", `{"prompt":"a","seed":99999999999999999999}`, 400, "expected an integer of 64 bits"},
		{"many stop strings", `{"prompt":"a","max_tokens":1,"stop":[` + stops + `]}`, 200, ""},
		{"a bias for every token", `{"prompt":"a","max_tokens":1,"logit_bias":{` + strings.Join(biases, ",") + `}}`, 200, ""},
		{"a name of a megabyte", `{"` + strings.Repeat("x", 1e6) + `":1}`, 400, "unknown field"},
		{"too long", `{"prompt":"` + strings.Repeat("x", 1<<20) + `"}`, 413, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status, text := a.post(t, completionsPath, tc.body)
			if status != tc.status || !strings.Contains(text, tc.words) || len(text) > 2000 {
				t.Errorf("%d %.500s; want %d and %q", status, text, tc.status, tc.words)
			}
		})
	}
	// The server has survived it.
	ask[completion](t, a, completionsPath, hello)
}

func TestTooManyValues(t *testing.T) {
	body := `{"prompt":[` + strings.Repeat("[],", bodyLimits.Values) + `[]]}`
	if err := decodeRequest([]byte(body), new(completionRequest)); err == nil || !strings.Contains(err.Error(), "too many values") {
		t.Error(err)
	}
}

func TestTooManyKeys(t *testing.T) {
	var body strings.Builder
	for i := range bodyLimits.Keys + 1 {
		fmt.Fprintf(&body, `,"%d":1`, i)
	}
	for _, format := range []string{"{%s}", `{"metadata":{%s}}`} {
		err := decodeRequest(fmt.Appendf(nil, format, body.String()[1:]), new(completionRequest))
		if err == nil || !strings.Contains(err.Error(), "an object has more than 262144 keys") {
			t.Error(err)
		}
	}
}

// Any body is a request or an error that a client can be told.
func FuzzRequests(f *testing.F) {
	for _, body := range []string{
		`{"model":"m","prompt":["a"],"stream":true,"stream_options":{"include_usage":true},"logit_bias":{"1":2},"stop":["x"]}`,
		`{"prompt":[[1,2],[3]],"echo":true,"logprobs":1,"max_tokens":1,"best_of":null}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto"}`,
		`{"input":[{"role":"user","content":[{"type":"input_text","text":"a"}]}],"text":{"format":{"type":"text"}},"reasoning":{"effort":"low"}}`,
		`{"input":"a","dimensions":4,"encoding_format":"base64"}`,
		`{"tokens":[1,2]}`, `{"a":{"b":[1.5e3,-0,null,true]}}`, `[`, "\xff",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, into := range []any{new(completionRequest), new(chatRequest), new(responseRequest), new(embeddingRequest), new(tokenizeRequest), new(detokenizeRequest)} {
			err := decodeRequest(body, into)
			if err == nil {
				continue
			}
			var e *Error
			if !errors.As(err, &e) || e.Status != http.StatusBadRequest || e.Message == "" || strings.ContainsAny(e.Message, "\n\r") || !utf8.ValidString(e.Message) {
				t.Errorf("%T: %#v", into, err)
			}
		}
	})
}
