package server

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// Values at the ends of what JSON and the fields' types hold. Other values that
// no field may have are in TestCompletionRefusals and TestChatRefusals, other
// bodies in TestHostileBodies.
func TestExtremes(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	const largest, least = math.MaxInt64, math.MinInt64
	for _, tc := range []struct {
		path   string
		field  string
		value  any
		status int
	}{
		{completionsPath, "n", largest, 400},
		{completionsPath, "n", least, 400},
		{completionsPath, "n", 129, 400}, // of one prompt
		{completionsPath, "n", 128, 200},
		{completionsPath, "best_of", largest, 400},
		{completionsPath, "best_of", least, 400},
		{completionsPath, "best_of", 128, 200},
		{completionsPath, "max_tokens", largest, 200}, // the context bounds it
		{completionsPath, "max_tokens", least, 400},
		{completionsPath, "max_tokens", 0, 200},
		{completionsPath, "min_tokens", largest, 400},
		{completionsPath, "min_tokens", least, 400},
		{completionsPath, "logprobs", largest, 400},
		{completionsPath, "logprobs", least, 400},
		{completionsPath, "logprobs", 20, 200},
		{completionsPath, "prompt_logprobs", largest, 400},
		{completionsPath, "top_k", largest, 200}, // more than there are: all
		{completionsPath, "top_k", least, 400},
		{completionsPath, "seed", largest, 200},
		{completionsPath, "seed", least, 200},
		{completionsPath, "priority", largest, 200},
		{completionsPath, "priority", least, 200},
		{completionsPath, "temperature", math.MaxFloat32, 200},
		{completionsPath, "temperature", math.SmallestNonzeroFloat32, 200},
		{completionsPath, "temperature", math.MaxFloat64, 400},
		{completionsPath, "temperature", "NaN", 400},
		{completionsPath, "temperature", -math.SmallestNonzeroFloat32, 400},
		{completionsPath, "top_p", math.SmallestNonzeroFloat64, 400}, // 0 as float32
		{completionsPath, "top_p", math.SmallestNonzeroFloat32, 200},
		{completionsPath, "top_p", -0.5, 400},
		{completionsPath, "top_p", 1.0000001, 400},
		{completionsPath, "min_p", -1e-9, 400},
		{completionsPath, "typical_p", 0, 400},
		{completionsPath, "repetition_penalty", 1000, 200},
		{completionsPath, "repetition_penalty", 0.001, 200},
		{completionsPath, "repetition_penalty", math.MaxFloat32, 400}, // logits times that are not finite
		{completionsPath, "repetition_penalty", math.SmallestNonzeroFloat32, 400},
		{completionsPath, "repetition_penalty", 0, 400},
		{completionsPath, "repetition_penalty", -1, 400},
		{completionsPath, "frequency_penalty", -2.1, 400},
		{completionsPath, "logit_bias", object{"-1": 0}, 400},
		{completionsPath, "logit_bias", object{"2147483648": 0}, 400},
		{completionsPath, "logit_bias", object{"5": math.MaxFloat64}, 400},
		{completionsPath, "prompt", []int{math.MaxInt32}, 400},
		{completionsPath, "prompt", []int{math.MinInt32}, 400},
		{completionsPath, "prompt", []any{0.5}, 400},
		{completionsPath, "prompt", "", 200}, // <bos> alone
		{completionsPath, "prompt", []string{"", ""}, 200},
		{completionsPath, "prompt", [][]int{{1}, {}}, 400},
		{completionsPath, "stop", strings.Repeat("x", 1e5), 200},
		{completionsPath, "stop_token_ids", []int{-1}, 400},
		{completionsPath, "cache_salt", strings.Repeat("x", 256), 200},
		{completionsPath, "cache_salt", strings.Repeat("x", 1e5), 400},
		{completionsPath, "guided_regex", "(a+)+$", 400},
		{completionsPath, "guided_json", object{"$ref": "#"}, 400},
		{completionsPath, "structured_outputs", object{"json": object{"not": object{}}}, 400},
		{completionsPath, "grammar", strings.Repeat("root ::= root\n", 1e4), 400},
		{chatPath, "n", 128, 200},
		{chatPath, "n", largest, 400},
		{chatPath, "top_logprobs", largest, 400},
		{chatPath, "max_tokens", largest, 200},
		{chatPath, "max_completion_tokens", least, 400},
		{chatPath, "response_format", object{"type": "json_schema", "json_schema": object{"name": "x", "schema": object{"$ref": "#"}}}, 400},
		{chatPath, "tools", "x", 400},
		{"/v1/embeddings", "dimensions", largest, 400},
		{"/v1/embeddings", "input", []int{largest}, 400},
		{"/detokenize", "tokens", []int{math.MaxInt32}, 400},
		{"/detokenize", "tokens", []int{-1}, 400},
	} {
		body := object{"max_tokens": 1, "ignore_eos": true}
		switch tc.path {
		case completionsPath:
			body["prompt"] = "hello"
		case chatPath:
			body["messages"] = sayHello["messages"]
		case "/v1/embeddings":
			body = object{"input": "hello"}
		default:
			body = object{}
		}
		if tc.field == "max_completion_tokens" {
			delete(body, "max_tokens")
		}
		body[tc.field] = tc.value
		status, text := a.post(t, tc.path, body)
		if name := fmt.Sprintf("%s: %s %.60v", tc.path, tc.field, tc.value); status != tc.status {
			t.Errorf("%s: %d %.300s, want %d", name, status, text, tc.status)
		} else if status != http.StatusOK {
			if e := refusal(t, text); !strings.HasPrefix(e.Param, tc.field) || len(text) > 1000 {
				t.Errorf("%s: %.1100s, want the parameter %s", name, text, tc.field)
			}
		}
	}
}

// Text that is none is refused wherever it stands, and text that is unusual is
// taken wherever it stands.
func TestUnusualText(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	for _, tc := range []struct {
		name, text string
		status     int
	}{
		{"bytes that are no UTF-8", "\xff", 400},
		{"half of a character", "\xe2\x82", 400},
		{"an overlong slash", "\xc0\xaf", 400},
		{"a surrogate in UTF-8", "\xed\xa0\x80", 400},
		{"half a surrogate pair", `\udc00`, 400},
		{"halves the wrong way round", `\udc00\ud800`, 400},
		{"a line break", "\n", 400},
		{"an unknown escape", `\x41`, 400},
		{"NUL", `\u0000`, 200},
		{"the replacement character", `\ufffd`, 200},
		{"no character", `\uffff`, 200},
		{"beyond the basic plane", `\ud83d\ude00`, 200},
		{"right to left", "\u202e\u2066", 200},
		{"a special token", "<|im_end|>", 200},
		{"lines of a stream", `\n\ndata: [DONE]\n\n`, 200},
	} {
		for path, format := range map[string]string{
			completionsPath:  `{"prompt":"a%sb","max_tokens":1}`,
			chatPath:         `{"messages":[{"role":"user","content":[{"type":"text","text":"a%sb"}]}],"max_tokens":1}`,
			responsesPath:    `{"input":"a%sb","max_output_tokens":16}`,
			"/tokenize":      `{"prompt":"a%sb"}`,
			"/v1/embeddings": `{"input":["a%sb"]}`,
		} {
			if status, text := a.post(t, path, fmt.Sprintf(format, tc.text)); status != tc.status {
				t.Errorf("%s in %s: %d %.300s, want %d", tc.name, path, status, text, tc.status)
			}
		}
		// And in a field's name.
		if status, text := a.post(t, completionsPath, fmt.Sprintf(`{"prompt":"a","a%sb":1}`, tc.text)); status != http.StatusBadRequest || len(text) > 500 {
			t.Errorf("%s in a name: %d %.600s", tc.name, status, text)
		}
	}
}

// A text of 10 MB is refused by its beginning, and as many token ids by their
// number.
func TestPromptOfTenMegabytes(t *testing.T) {
	a := serveModel(t, "llama", Options{Limits: Limits{Body: 16 << 20}})
	long := strings.Repeat("hello ", 10_000_000/6)
	for _, tc := range []struct {
		path  string
		body  object
		words string
	}{
		{completionsPath, object{"prompt": long}, "the first 8192 of which"},
		{completionsPath, object{"prompt": []string{"a", long}}, "the first 8192 of which"},
		{completionsPath, object{"prompt": strings.Repeat("\n", 5e6)}, "the first 8192 of which"},
		{completionsPath, object{"prompt": make([]int, 1e6)}, "1000000 tokens"},
		{chatPath, object{"messages": []object{{"role": "user", "content": long}}}, "the first 8192 of which"},
		{responsesPath, object{"input": long}, "the first 8192 of which"},
		{"/v1/embeddings", object{"input": long}, "the first 8192 of which"},
	} {
		status, text := a.post(t, tc.path, tc.body)
		if e := refusal(t, text); status != http.StatusBadRequest || e.Code != "context_length_exceeded" || !strings.Contains(e.Message, tc.words) || len(text) > 500 {
			t.Errorf("%s: %d %.600s, want %q", tc.path, status, text, tc.words)
		}
	}
}

// A body that is small only while it is compressed is not unpacked.
func TestCompressedBomb(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	for range 20 { // MB
		if _, err := w.Write(make([]byte, 1e6)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, encoding := range []string{"gzip", "GZIP", "gzip, gzip", "deflate", "br", "zstd"} {
		r, text := a.send(t, http.MethodPost, completionsPath, bomb.String(), "Content-Encoding", encoding)
		if e := refusal(t, text); r.StatusCode != http.StatusUnsupportedMediaType || !strings.Contains(e.Message, "have to come as they are") {
			t.Errorf("%s: %d %s", encoding, r.StatusCode, text)
		}
	}
	// Without the header it is no JSON.
	if r, text := a.send(t, http.MethodPost, completionsPath, bomb.String()); r.StatusCode != http.StatusBadRequest {
		t.Errorf("%d %s", r.StatusCode, text)
	}
}

// No request makes the server fetch anything.
func TestServerFetchesNothing(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	var asked atomic.Int32
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer inside.Close()
	for _, url := range []string{
		inside.URL + "/image.png", "http://169.254.169.254/latest/meta-data/", "file:///etc/passwd", "gopher://127.0.0.1:1/", "data:image/png;base64,AAAA", "",
	} {
		image := object{"type": "image_url", "image_url": object{"url": url}}
		for _, tc := range []struct {
			path string
			body object
		}{
			{chatPath, object{"messages": []object{{"role": "user", "content": []object{{"type": "text", "text": "what is it?"}, image}}}}},
			{chatPath, object{"messages": []object{{"role": "system", "content": []object{image}}, {"role": "user", "content": "x"}}}},
			{chatPath, object{"messages": []object{{"role": "user", "content": []object{{"type": "video_url", "video_url": object{"url": url}}}}}}},
			{chatPath, object{"messages": []object{{"role": "user", "content": []object{{"type": "input_audio", "input_audio": object{"data": url}}}}}}},
			{responsesPath, object{"input": []object{{"role": "user", "content": []object{{"type": "input_image", "image_url": url}}}}}},
			{responsesPath, object{"input": []object{{"role": "user", "content": []object{{"type": "input_file", "file_url": url}}}}}},
			{responsesPath, object{"input": "x", "tools": []object{{"type": "mcp", "server_label": "x", "server_url": url}}}},
			{chatPath, object{"messages": sayHello["messages"], "tools": []object{{"type": "mcp", "server_url": url}}}},
			{chatPath, object{"messages": sayHello["messages"], "mm_processor_kwargs": object{"url": url}}},
		} {
			status, text := a.post(t, tc.path, tc.body)
			if e := refusal(t, text); status != http.StatusBadRequest || e.Param == "" {
				t.Errorf("%v: %d %s", tc.body, status, text)
			}
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("the server has asked %d times", n)
	}
}
