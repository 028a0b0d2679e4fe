package server

import (
	"testing"
)

var continueHello = object{"model": "tiny", "prompt": "hello", "temperature": 0, "max_tokens": 5, "ignore_eos": true}

func TestCompletion(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	got := ask[completion](t, a, "/v1/completions", continueHello)
	t.Logf("%+v", got)
	for _, e := range a.events(t, "/v1/completions", merge(continueHello, object{"stream": true, "logprobs": 2, "echo": true, "n": 2, "stream_options": object{"include_usage": true}})) {
		t.Log(e)
	}
	t.Log(a.post(t, "/v1/completions", merge(continueHello, object{"suffix": "x"})))
	t.Log(a.post(t, "/v1/completions", merge(continueHello, object{"maxTokens": 1})))
	t.Log(a.post(t, "/v1/completions", merge(continueHello, object{"top_p": 7})))
}
