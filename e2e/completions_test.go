package e2e

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// closeTo is how near log-probabilities are: both are of the same bits, summed
// up in different places.
const closeTo = 1e-4

// ignoreEOS goes on to max_tokens whatever the model says.
var ignoreEOS = option.WithJSONSet("ignore_eos", true)

// complete is a greedy request for as many tokens as w has.
func (w *want) complete(s *server) openai.CompletionNewParams {
	return openai.CompletionNewParams{
		Model: openai.CompletionNewParamsModel(s.model), Prompt: prompt(w.Prompt),
		MaxTokens: openai.Int(int64(len(w.IDs))), Temperature: openai.Float(0),
	}
}

func testCompletion(t *testing.T, s *server, w *want) {
	got, err := s.client().Completions.New(within(t), w.complete(s), ignoreEOS, option.WithJSONSet("return_token_ids", true))
	succeeded(t, err)
	if len(got.Choices) != 1 || got.Object != "text_completion" || got.Model != s.model || !strings.HasPrefix(got.ID, "cmpl-") || got.Created == 0 {
		t.Fatalf("%s", got.RawJSON())
	}
	c := got.Choices[0]
	if strings.TrimSpace(c.Text) != w.Text || c.Index != 0 || c.FinishReason != "length" {
		t.Errorf("%s, want %q", c.RawJSON(), w.Text)
	}
	if ids := extra[[]int64](t, c.JSON.ExtraFields["token_ids"].Raw()); !slices.Equal(ids, w.IDs) {
		t.Errorf("tokens %v, want %v", ids, w.IDs)
	}
	if ids := extra[[]int64](t, c.JSON.ExtraFields["prompt_token_ids"].Raw()); !slices.Equal(ids, w.PromptIDs) {
		t.Errorf("tokens of the prompt %v, want %v", ids, w.PromptIDs)
	}
	if c.Logprobs.JSON.Tokens.Valid() {
		t.Errorf("nobody asked for log-probabilities: %s", c.RawJSON())
	}
	w.usage(t, got.Usage, 1, 1)
}

// usage checks what so many prompts and continuations take.
func (w *want) usage(t *testing.T, u openai.CompletionUsage, prompts, answers int) {
	t.Helper()
	in, out := int64(prompts*len(w.PromptIDs)), int64(answers*len(w.IDs))
	if u.PromptTokens != in || u.CompletionTokens != out || u.TotalTokens != in+out {
		t.Errorf("usage %s, want %d and %d tokens", u.RawJSON(), in, out)
	}
}

// A prompt is a text or token ids, and there may be several.
func testBatch(t *testing.T, s *server, w *want) {
	for name, p := range map[string]openai.CompletionNewParamsPromptUnion{
		"ids":           {OfArrayOfTokens: w.PromptIDs},
		"texts":         {OfArrayOfStrings: []string{w.Prompt, "Monday, Tuesday,", w.Prompt}},
		"lists of ids":  {OfArrayOfTokenArrays: [][]int64{w.PromptIDs, {1, 2, 3}, w.PromptIDs}},
		"one text":      {OfArrayOfStrings: []string{w.Prompt}},
		"one list":      {OfArrayOfTokenArrays: [][]int64{w.PromptIDs}},
		"the same text": {OfArrayOfStrings: slices.Repeat([]string{w.Prompt}, 9)},
	} {
		q := w.complete(s)
		q.Prompt = p
		got, err := s.client().Completions.New(within(t), q, ignoreEOS)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		n := max(len(p.OfArrayOfStrings), len(p.OfArrayOfTokenArrays), 1)
		if len(got.Choices) != n || got.Usage.CompletionTokens != int64(n*len(w.IDs)) {
			t.Fatalf("%s: %s", name, got.RawJSON())
		}
		for i, c := range got.Choices {
			if c.Index != int64(i) || (strings.TrimSpace(c.Text) == w.Text) != (n != 3 || i != 1) {
				t.Errorf("%s: choice %d is %s", name, i, c.RawJSON())
			}
		}
	}
}

// The chunks of a stream put together are the answer, in order, and the last one
// has the usage if it was asked for.
func testCompletionStream(t *testing.T, s *server, w *want) {
	q := w.complete(s)
	q.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := s.client().Completions.NewStreaming(within(t), q, ignoreEOS, option.WithJSONSet("return_token_ids", true))
	defer stream.Close()
	var text string
	var ids []int64
	var usage openai.CompletionUsage
	var id string
	finish := 0
	for stream.Next() {
		chunk := stream.Current()
		if id == "" {
			id = chunk.ID
		}
		if chunk.ID != id || chunk.Object != "text_completion" || chunk.Model != s.model {
			t.Errorf("%s", chunk.RawJSON())
		}
		if len(chunk.Choices) == 0 {
			usage = chunk.Usage
			continue
		}
		if usage.TotalTokens != 0 || finish != 0 {
			t.Errorf("after the end comes %s", chunk.RawJSON())
		}
		c := chunk.Choices[0]
		text += c.Text
		if f := c.JSON.ExtraFields["token_ids"]; f.Raw() != "" {
			ids = append(ids, extra[[]int64](t, f.Raw())...)
		}
		if c.FinishReason != "" {
			finish++
			if c.FinishReason != "length" {
				t.Errorf("%s", c.RawJSON())
			}
		}
	}
	succeeded(t, stream.Err())
	if strings.TrimSpace(text) != w.Text || !slices.Equal(ids, w.IDs) || finish != 1 {
		t.Errorf("%q %v, finished %d times; want %q %v", text, ids, finish, w.Text, w.IDs)
	}
	w.usage(t, usage, 1, 1)
}

// Log-probabilities are those that `foretoken score` computes, also of the
// prompt's tokens if it is echoed.
func testCompletionLogProbs(t *testing.T, s *server, w *want) {
	for _, tc := range []struct {
		echo bool
		top  int64
	}{{false, 0}, {false, 3}, {true, 1}, {true, 5}} {
		q := w.complete(s)
		q.Echo, q.Logprobs = openai.Bool(tc.echo), openai.Int(tc.top)
		got, err := s.client().Completions.New(within(t), q, ignoreEOS)
		succeeded(t, err)
		c := got.Choices[0]
		want, first := w.LogProbs, 1
		if !tc.echo {
			want, first = w.LogProbs[len(w.PromptIDs)-1:], 0
		}
		// openai-go has no null in lists of maps, and reads none of them then.
		var p struct {
			Tokens        []string             `json:"tokens"`
			TokenLogprobs []*float64           `json:"token_logprobs"`
			TopLogprobs   []map[string]float64 `json:"top_logprobs"`
			TextOffset    []int                `json:"text_offset"`
		}
		parse(t, []byte(c.Logprobs.RawJSON()), &p)
		n := len(want) + first
		if len(p.Tokens) != n || len(p.TokenLogprobs) != n || len(p.TopLogprobs) != n || len(p.TextOffset) != n {
			t.Fatalf("%+v: %d, %d, %d, %d values, want %d each", tc, len(p.Tokens), len(p.TokenLogprobs), len(p.TopLogprobs), len(p.TextOffset), n)
		}
		text := []rune(c.Text)
		if tc.echo {
			if p.TokenLogprobs[0] != nil || p.TopLogprobs[0] != nil {
				t.Errorf("nothing predicts the first token: %s", c.Logprobs.RawJSON())
			}
			if !strings.HasPrefix(c.Text, w.Prompt) {
				t.Errorf("%q does not begin with the prompt", c.Text)
			}
		}
		for i, token := range p.Tokens {
			at := p.TextOffset[i]
			if end := at + utf8.RuneCountInString(token); end > len(text) || string(text[at:end]) != token {
				t.Errorf("%+v: token %d, %q, is not at %d of %q", tc, i, token, at, c.Text)
			}
		}
		for i, lp := range want {
			row := w.scores[len(w.LogProbs)-len(want)+i]
			token, got, top := p.Tokens[i+first], *p.TokenLogprobs[i+first], p.TopLogprobs[i+first]
			if math.Abs(got-lp) > closeTo || top[token] != got {
				t.Errorf("%+v: %q has %v, its alternatives %v; want %v", tc, token, got, top, lp)
			}
			// The most likely tokens, and the token itself if it is none of them.
			greedy := slices.Max(row)
			if most := slices.Max(slices.Collect(maps.Values(top))); tc.top > 0 && math.Abs(most-float64(greedy)) > closeTo {
				t.Errorf("%+v: the best of %v has %v, want %v", tc, top, most, greedy)
			}
			if len(top) < max(int(tc.top), 1) || len(top) > int(tc.top)+1 {
				t.Errorf("%+v: %d alternatives", tc, len(top))
			}
		}
	}
}

// n continuations differ, best_of draws more and returns the likeliest, and a
// seed draws the same again.
func testChoices(t *testing.T, s *server, w *want) {
	ask := func(n, bestOf, seed int64) []openai.CompletionChoice {
		t.Helper()
		q := w.complete(s)
		q.N, q.Seed, q.Temperature, q.Logprobs = openai.Int(n), openai.Int(seed), openai.Float(1.2), openai.Int(0)
		if bestOf > 0 {
			q.BestOf = openai.Int(bestOf)
		}
		got, err := s.client().Completions.New(within(t), q, ignoreEOS)
		succeeded(t, err)
		w.usage(t, got.Usage, 1, int(max(n, bestOf)))
		if len(got.Choices) != int(n) {
			t.Fatalf("%d choices, want %d", len(got.Choices), n)
		}
		for i, c := range got.Choices {
			if c.Index != int64(i) || len(c.Logprobs.Tokens) != len(w.IDs) {
				t.Errorf("choice %d: %s", i, c.RawJSON())
			}
		}
		return got.Choices
	}
	texts := func(all []openai.CompletionChoice) (texts []string) {
		for _, c := range all {
			texts = append(texts, c.Text)
		}
		return texts
	}
	mean := func(c openai.CompletionChoice) (sum float64) {
		for _, p := range c.Logprobs.TokenLogprobs {
			sum += p
		}
		return sum / float64(len(c.Logprobs.TokenLogprobs))
	}

	four := ask(4, 0, 7)
	if distinct := slices.Compact(slices.Sorted(slices.Values(texts(four)))); len(distinct) != 4 {
		t.Errorf("choices are the same: %q", texts(four))
	}
	if again := ask(4, 0, 7); !slices.Equal(texts(again), texts(four)) {
		t.Errorf("the same seed gives %q, then %q", texts(four), texts(again))
	}
	if other := ask(4, 0, 8); slices.Equal(texts(other), texts(four)) {
		t.Errorf("another seed gives the same: %q", texts(four))
	}
	slices.SortStableFunc(four, func(a, b openai.CompletionChoice) int {
		if mean(a) > mean(b) {
			return -1
		}
		return 1
	})
	if two := ask(2, 4, 7); !slices.Equal(texts(two), texts(four[:2])) {
		t.Errorf("the best two are %q, of %q", texts(two), texts(four))
	}
}

// A stop string ends the text before it.
func testStop(t *testing.T, s *server, w *want) {
	words := strings.Fields(w.Text)
	stop := words[3]
	before, _, _ := strings.Cut(w.Text, stop)
	for name, u := range map[string]openai.CompletionNewParamsStopUnion{
		"one":  {OfString: openai.String(stop)},
		"many": {OfStringArray: []string{"never said", stop, w.Text}},
	} {
		q := w.complete(s)
		q.Stop = u
		got, err := s.client().Completions.New(within(t), q, ignoreEOS)
		succeeded(t, err)
		if c := got.Choices[0]; strings.TrimLeft(c.Text, " \n") != before || c.FinishReason != "stop" {
			t.Errorf("%s: %s, want %q", name, c.RawJSON(), before)
		}
		if n := got.Usage.CompletionTokens; n == 0 || n >= int64(len(w.IDs)) {
			t.Errorf("%s: %d tokens", name, n)
		}
	}
}
