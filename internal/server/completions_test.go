package server

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// hello is continued with five tokens that are always the same.
var hello = object{"prompt": "hello", "temperature": 0, "max_tokens": 5, "ignore_eos": true}

const completionsPath = "/v1/completions"

func texts(c completion) (all []string) {
	for _, choice := range c.Choices {
		all = append(all, choice.Text)
	}
	return all
}

// Prompts come as text, as token ids, or as lists of either, and give the same.
func TestPromptForms(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	ids := ask[tokenized](t, a, "/tokenize", object{"prompt": "hello"}).Tokens
	one := ask[completion](t, a, completionsPath, hello)
	if len(one.Choices) != 1 || one.Choices[0].Text == "" || *one.Choices[0].FinishReason != "length" {
		t.Fatalf("%+v", one)
	}
	for _, tc := range []struct {
		prompt any
		n      int
	}{{[]string{"hello"}, 1}, {ids, 1}, {[][]int32{ids}, 1}, {[][]int32{ids, ids, ids}, 3}, {[]string{"hello", "hello"}, 2}} {
		got := ask[completion](t, a, completionsPath, merge(hello, object{"prompt": tc.prompt}))
		if want := slices.Repeat(texts(one), tc.n); !slices.Equal(texts(got), want) {
			t.Errorf("%v: %q, want %q", tc.prompt, texts(got), want)
		}
		for i, choice := range got.Choices {
			if choice.Index != i {
				t.Errorf("%v: choice %d has the index %d", tc.prompt, i, choice.Index)
			}
		}
	}
}

// A stream says in chunks what an answer says at once.
func TestCompletionStreams(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	for _, fields := range []object{
		{},
		{"n": 3, "temperature": 1.5, "seed": 7},
		{"prompt": []string{"hello", "and the world"}, "n": 2, "temperature": 1, "seed": 3},
		{"echo": true},
		{"logprobs": 3},
		{"logprobs": 2, "echo": true, "n": 2},
		{"return_token_ids": true},
		{"max_tokens": 0, "echo": true, "logprobs": 1},
	} {
		q := merge(hello, fields)
		want := ask[completion](t, a, completionsPath, q)
		got := make([]completionChoice, len(want.Choices))
		for _, chunk := range chunks[completion](t, a, completionsPath, merge(q, object{"stream": true})) {
			if len(chunk.Choices) != 1 || chunk.Usage != nil || chunk.Object != want.Object || chunk.Model != want.Model {
				t.Fatalf("%v: chunk %+v", fields, chunk)
			}
			c := chunk.Choices[0]
			if got[c.Index].FinishReason != nil {
				t.Errorf("%v: choice %d goes on after its end", fields, c.Index)
			}
			got[c.Index].join(c)
		}
		if diff := cmp.Diff(want.Choices, got); diff != "" {
			t.Errorf("%v: %s", fields, diff)
		}
	}
}

func (c *completionChoice) join(d completionChoice) {
	c.Index, c.FinishReason = d.Index, d.FinishReason
	c.Text += d.Text
	c.TokenIDs = append(c.TokenIDs, d.TokenIDs...)
	c.PromptTokenIDs = append(c.PromptTokenIDs, d.PromptTokenIDs...)
	if d.LogProbs == nil {
		return
	}
	if c.LogProbs == nil {
		c.LogProbs = new(textLogProbs)
	}
	c.LogProbs.Tokens = append(c.LogProbs.Tokens, d.LogProbs.Tokens...)
	c.LogProbs.TokenLogProbs = append(c.LogProbs.TokenLogProbs, d.LogProbs.TokenLogProbs...)
	c.LogProbs.TopLogProbs = append(c.LogProbs.TopLogProbs, d.LogProbs.TopLogProbs...)
	c.LogProbs.TextOffset = append(c.LogProbs.TextOffset, d.LogProbs.TextOffset...)
}

func TestStreamUsage(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	want := ask[completion](t, a, completionsPath, hello).Usage
	for _, tc := range []struct {
		options object
		last    bool // chunk has no choices, and the usage of all
		each    bool // other chunk has a usage
	}{
		{object{"include_usage": true}, true, false},
		{object{"continuous_usage_stats": true}, false, true},
		{object{"include_usage": true, "continuous_usage_stats": true}, true, true},
		{object{}, false, false},
	} {
		all := chunks[completion](t, a, completionsPath, merge(hello, object{"stream": true, "stream_options": tc.options}))
		last := all[len(all)-1]
		if tc.last {
			if diff := cmp.Diff(want, last.Usage); diff != "" || len(last.Choices) != 0 {
				t.Errorf("%v: the last chunk is %+v", tc.options, last)
			}
			all = all[:len(all)-1]
		}
		for _, chunk := range all {
			if (chunk.Usage != nil) != tc.each || len(chunk.Choices) != 1 {
				t.Errorf("%v: %+v", tc.options, chunk)
			}
		}
	}
}

// What evaluations ask (lm-evaluation-harness, local-completions): the
// log-probabilities of the prompt's tokens, whether each was the most likely
// one, and one token more.
func TestEvaluationProtocol(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	prompts := [][]int32{{284, 72, 101, 108, 108, 111, 32, 119}, {1, 2, 3, 4, 5}}
	got := ask[completion](t, a, completionsPath, object{
		"model": "tiny", "prompt": prompts, "echo": true, "logprobs": 1, "max_tokens": 1, "temperature": 0, "seed": 1234,
	})
	for i, prompt := range prompts {
		p := got.Choices[i].LogProbs
		n := len(prompt) + 1
		if len(p.Tokens) != n || len(p.TokenLogProbs) != n || len(p.TopLogProbs) != n || len(p.TextOffset) != n {
			t.Fatalf("prompt %d: %d tokens, %+v", i, n, p)
		}
		if p.TokenLogProbs[0] != nil || p.TopLogProbs[0] != nil {
			t.Errorf("prompt %d: nothing predicts the first token, but it has %v, %v", i, p.TokenLogProbs[0], p.TopLogProbs[0])
		}
		for j := 1; j < n; j++ {
			logProb, top := *p.TokenLogProbs[j], p.TopLogProbs[j]
			if logProb > 0 || math.IsInf(logProb, 0) || len(top) < 1 || top[p.Tokens[j]] != logProb {
				t.Errorf("prompt %d, token %d: %q has %v, the best %v", i, j, p.Tokens[j], logProb, top)
			}
		}
		// The token that was generated is the most likely one.
		if len(p.TopLogProbs[n-1]) != 1 {
			t.Errorf("prompt %d: the greedy token is not the best of %v", i, p.TopLogProbs[n-1])
		}
		// The scores of a prompt's token are those that it has where it is generated.
		shorter := ask[completion](t, a, completionsPath, object{
			"prompt": prompt[:len(prompt)-1], "logprobs": 0, "max_tokens": 1, "temperature": 0,
			"logit_bias": object{fmt.Sprint(prompt[len(prompt)-1]): 100},
		})
		if want, got := shorter.Choices[0].LogProbs.TokenLogProbs[0], p.TokenLogProbs[n-2]; *want != *got {
			t.Errorf("prompt %d: the last token has %v, generated %v", i, *got, *want)
		}
	}
}

// Offsets are those of the tokens in the text, in characters.
func TestTextOffsets(t *testing.T) {
	a := serveAt(t, testmodel.Scripted(t, " Grüße", " an", " alle", "!"), Options{})
	q := object{"prompt": "é\n", "temperature": 0, "logprobs": 0, "max_tokens": 9}
	got := ask[completion](t, a, completionsPath, q).Choices[0]
	if want := []int{0, 6, 9, 14, 15}; got.Text != " Grüße an alle!" || !slices.Equal(got.LogProbs.TextOffset, want) {
		t.Errorf("%q, %v; want %v", got.Text, got.LogProbs.TextOffset, want)
	}
	got = ask[completion](t, a, completionsPath, merge(q, object{"echo": true})).Choices[0]
	// <bos>, é, a line break, the answer and the end of the turn
	if want := []int{0, 0, 1, 2, 8, 11, 16, 17}; got.Text != "é\n Grüße an alle!" || !slices.Equal(got.LogProbs.TextOffset, want) {
		t.Errorf("echo: %q, %v; want %v", got.Text, got.LogProbs.TextOffset, want)
	}
}

// Whether a token is the most likely one shows also where the one that is has
// the same text.
func TestAlternativesOfTheSameText(t *testing.T) {
	s := serveAt(t, testmodel.Scripted(t, "Ġq", " q"), Options{}).server
	one, other := int32(testmodel.Tokens), int32(testmodel.Tokens+1)
	c := s.newTextScorer(2, nil, false, false)
	c.add(one, -2, []sample.TokenLogProb{{Token: other, LogProb: -0.1}, {Token: one, LogProb: -2}}, false)
	if diff := cmp.Diff([]map[string]float64{{" q": -2, "token_id:289": -0.1}}, c.take().TopLogProbs); diff != "" {
		t.Error(diff)
	}
}

func TestEchoWithoutGeneration(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	got := ask[completion](t, a, completionsPath, object{"prompt": "hello world", "echo": true, "max_tokens": 0})
	if c := got.Choices[0]; c.Text != "hello world" || *c.FinishReason != "length" {
		t.Errorf("%+v", c)
	}
	if u := got.Usage.(map[string]any); u["completion_tokens"] != 0. {
		t.Errorf("%v tokens were generated", u)
	}
}

// The best of several is the one whose tokens are the most likely in the mean.
func TestBestOf(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	q := merge(hello, object{"temperature": 2, "seed": 5, "logprobs": 0, "n": 4})
	mean := func(c completionChoice) (sum float64) {
		for _, p := range c.LogProbs.TokenLogProbs {
			sum += *p
		}
		return sum / float64(len(c.LogProbs.TokenLogProbs))
	}
	all := ask[completion](t, a, completionsPath, q).Choices
	slices.SortFunc(all, func(a, b completionChoice) int {
		if mean(a) > mean(b) {
			return -1
		}
		return 1
	})
	got := ask[completion](t, a, completionsPath, merge(q, object{"n": 2, "best_of": 4}))
	if want := []string{all[0].Text, all[1].Text}; !slices.Equal(texts(got), want) {
		t.Errorf("%q, want %q of %v", texts(got), want, all)
	}
	if u := got.Usage.(map[string]any); u["completion_tokens"] != 20. {
		t.Errorf("usage %v: all that was generated counts", u)
	}
	without := ask[completion](t, a, completionsPath, merge(q, object{"n": 2, "best_of": 4, "logprobs": nil}))
	if !slices.Equal(texts(without), texts(got)) || without.Choices[0].LogProbs != nil {
		t.Errorf("without logprobs: %+v", without)
	}
}

func TestPromptLogProbs(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	ids := []int32{5, 6, 7, 8}
	got := ask[completion](t, a, completionsPath, object{"prompt": ids, "prompt_logprobs": 2, "max_tokens": 1}).Choices[0]
	if len(got.PromptLogProbs) != len(ids) || got.PromptLogProbs[0] != nil || got.LogProbs != nil {
		t.Fatalf("%+v", got)
	}
	for i, id := range ids[1:] {
		scores := got.PromptLogProbs[i+1]
		ranks := map[int]bool{}
		for _, s := range scores {
			ranks[s.Rank] = true
		}
		if _, ok := scores[id]; !ok || !ranks[1] || !ranks[2] || len(scores) > 3 {
			t.Errorf("token %d: %+v", id, scores)
		}
	}
}

func TestStops(t *testing.T) {
	a := serveAt(t, testmodel.Scripted(t, "one", " two", " three", " four"), Options{})
	q := object{"prompt": "\n", "temperature": 0}
	for _, tc := range []struct {
		fields object
		text   string
		why    string
	}{
		{object{}, "one two three four", "stop"},
		{object{"stop": "thr"}, "one two ", "stop"},
		{object{"stop": []string{"x", " t"}}, "one", "stop"},
		{object{"stop": "thr", "include_stop_str_in_output": true}, "one two thr", "stop"},
		{object{"max_tokens": 2}, "one two", "length"},
		{object{"stop_token_ids": ask[tokenized](t, a, "/tokenize", object{"prompt": " three", "add_special_tokens": false}).Tokens}, "one two", "stop"},
		{object{"stop": nil, "max_tokens": nil}, "one two three four", "stop"},
	} {
		got := ask[completion](t, a, completionsPath, merge(q, tc.fields)).Choices[0]
		if got.Text != tc.text || string(*got.FinishReason) != tc.why {
			t.Errorf("%v: %q, %s; want %q, %s", tc.fields, got.Text, *got.FinishReason, tc.text, tc.why)
		}
	}
}

// What cannot be honoured is refused by name.
func TestCompletionRefusals(t *testing.T) {
	a := serveModel(t, "llama", Options{Limits: Limits{Output: 100}})
	tokens := func(n int) []int { return make([]int, n) }
	for _, tc := range []struct {
		fields       object
		param, words string
	}{
		{object{"prompt": nil}, "prompt", "prompt is missing"},
		{object{"prompt": ""}, "", ""}, // <bos>
		{object{"prompt": []int{}}, "prompt", "prompt is an empty list"},
		{object{"prompt": [][]int{{}}}, "prompt", "prompt is empty"},
		{object{"prompt": []any{"a", 1}}, "prompt", "prompt[1] is 1, expected a text"},
		{object{"prompt": []any{1, "a"}}, "prompt", `prompt[1] is "a", expected a token id`},
		{object{"prompt": []int{-1}}, "prompt", "prompt[0] is -1, expected a token id"},
		{object{"prompt": []int{1 << 40}}, "prompt", "expected a token id"},
		{object{"prompt": []int{300}}, "prompt", "token 0 is 300, expected 0 to"},
		{object{"prompt": object{}}, "prompt", "prompt is an object"},
		{object{"prompt": tokens(600)}, "prompt", "prompt has 600 tokens, this server takes 512"},
		{object{"prompt": strings.Repeat("hello ", 100000)}, "prompt", "prompt has 600000 bytes"},
		{object{"prompt": slices.Repeat([]string{"a"}, 2049)}, "prompt", "prompt has 2049 prompts"},
		{object{"prompt": slices.Repeat([]string{"a"}, 101)}, "n", "101 answers"},
		{object{"model": "other"}, "model", `the model "other" is not here; this server has tiny`},
		{object{"n": 0}, "n", "n is 0"},
		{object{"cache_salt": strings.Repeat("a", 257)}, "cache_salt", "257 bytes, expected at most 256"},
		{object{"n": 129}, "n", "n is 129, expected 1 to 128"},
		{object{"n": 128, "prompt": slices.Repeat([]string{"a"}, 17)}, "n", "expected at most 2048 answers"},
		{object{"best_of": 1 << 62, "prompt": []string{"a", "b", "c", "d"}}, "best_of", "expected at most 128"},
		{object{"best_of": 1, "n": 2}, "best_of", "expected at least n, 2"},
		{object{"best_of": 2, "stream": true}, "best_of", "with stream"},
		{object{"max_tokens": -1}, "max_tokens", "max_tokens is -1"},
		{object{"max_tokens": 1e30}, "max_tokens", "expected an integer"},
		{object{"max_tokens": 1.5}, "max_tokens", "max_tokens is 1.5, expected an integer"},
		{object{"max_tokens": 60, "n": 2}, "max_tokens", "this server writes 100 tokens"},
		{object{"min_tokens": 6}, "min_tokens", "min_tokens is 6, expected at most max_tokens, 5"},
		{object{"prompt": tokens(510), "min_tokens": 5}, "min_tokens", "leaves 2 of the model's 512"},
		{object{"logprobs": 21}, "logprobs", "expected 0 to 20"},
		{object{"logprobs": true}, "logprobs", "logprobs is true"},
		{object{"prompt_logprobs": -1}, "prompt_logprobs", "expected 0 to 20"},
		{object{"prompt_logprobs": 1, "stream": true}, "prompt_logprobs", "stream"},
		{object{"temperature": -1}, "temperature", "temperature is -1, expected 0 or more"},
		{object{"temperature": 1e39}, "temperature", "expected a number within float32"},
		{object{"temperature": "hot"}, "temperature", `temperature is "hot", expected a number`},
		{object{"top_p": 0}, "top_p", "top_p is 0"},
		{object{"top_k": -2}, "top_k", "top_k is -2"},
		{object{"min_p": 1.1}, "min_p", "min_p is 1.1"},
		{object{"presence_penalty": 3}, "presence_penalty", "-2 to 2"},
		{object{"logit_bias": object{"x": 1}}, "logit_bias", `the key "x"`},
		{object{"logit_bias": object{"300": 1}}, "logit_bias", "token 300"},
		{object{"logit_bias": object{"3": 101}}, "logit_bias", "101"},
		{object{"logit_bias": []int{1}}, "logit_bias", "expected an object"},
		{object{"stop": ""}, "stop", `stop string 0 is ""`},
		{object{"stop": []any{"a", 1}}, "stop", "stop[1] is 1"},
		{object{"stop_token_ids": []int{1000}}, "stop_token_ids", "1000"},
		{object{"stop_token_ids": []any{nil}}, "stop_token_ids", "null"},
		{object{"stream_options": object{}}, "stream_options", "without stream"},
		{object{"stream_options": object{"usage": true}, "stream": true}, "stream_options.usage", "unknown field"},
		{object{"stream_options": 1, "stream": true}, "stream_options", "expected an object"},
		{object{"suffix": "x"}, "suffix", "suffix is not supported"},
		{object{"suffix": ""}, "", ""},
		{object{"guided_json": object{"type": "object"}}, "guided_json", "does not constrain"},
		{object{"truncate_prompt_tokens": 5}, "truncate_prompt_tokens", "no token of a prompt is dropped"},
		{object{"use_beam_search": false}, "", ""},
		{object{"use_beam_search": true}, "use_beam_search", "no beam search"},
		{object{"temprature": 1}, "temprature", "unknown field"},
		{object{"topP": 1}, "topP", `did you mean "top_p"?`},
		{object{"store": true}, "store", "keeps no answers"},
		{object{"store": false, "user": "u", "metadata": object{"a": "b"}, "service_tier": "auto"}, "", ""},
		{object{"service_tier": "flex"}, "service_tier", "one tier"},
	} {
		status, text := a.post(t, completionsPath, merge(hello, tc.fields))
		wantStatus := http.StatusBadRequest
		switch tc.param {
		case "":
			wantStatus = http.StatusOK
		case "model":
			wantStatus = http.StatusNotFound
		}
		if status != wantStatus {
			t.Errorf("%.100v: status %d, want %d: %.300s", tc.fields, status, wantStatus, text)
		}
		if status == http.StatusOK {
			continue
		}
		var got struct{ Error errorFields }
		decodeAnswer(t, text, &got)
		if got.Error.Param == nil || *got.Error.Param != tc.param || !strings.Contains(got.Error.Message, tc.words) {
			t.Errorf("%.100v: got %s; want the parameter %s and %q", tc.fields, text, tc.param, tc.words)
		}
	}
}

func TestLongPromptHasOpenAIsCode(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	_, text := a.post(t, completionsPath, merge(hello, object{"prompt": make([]int, 513)}))
	if !strings.Contains(text, `"code":"context_length_exceeded"`) {
		t.Error(text)
	}
}

// A list of more prompts than may wait would be refused for ever: it is said to
// be too long, and not that there is no room at the moment.
func TestMorePromptsThanMayWait(t *testing.T) {
	a := serveEngine(t, openEngine(t, testmodel.Safetensors(t, testmodel.Family("llama")), engine.Options{MaxQueued: 2}), Options{})
	for path, field := range map[string]string{completionsPath: "prompt", "/v1/embeddings": "input"} {
		status, text := a.post(t, path, object{field: []string{"a", "b", "c"}})
		if e := refusal(t, text); status != http.StatusBadRequest || e.Param != field || !strings.Contains(e.Message, "3 prompts: expected at most 2") {
			t.Errorf("%s, three prompts: %d %s", path, status, text)
		}
		if status, text := a.post(t, path, object{field: []string{"a", "b"}}); status != http.StatusOK {
			t.Errorf("%s, two prompts: %d %s", path, status, text)
		}
	}
}
