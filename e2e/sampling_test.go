package e2e

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// The same parameters and the same seed draw the same tokens from the API as
// from the command line.
func testSampling(t *testing.T, s *server, w *want) {
	for name, tc := range map[string]struct {
		flags  []string
		change func(*openai.CompletionNewParams)
		extra  map[string]any
	}{
		"temperature": {change: func(*openai.CompletionNewParams) {}},
		"top_p":       {flags: []string{"--top-p", "0.7"}, change: func(q *openai.CompletionNewParams) { q.TopP = openai.Float(0.7) }},
		"penalties": {
			flags: []string{"--presence-penalty", "1.5", "--frequency-penalty", "-0.5"},
			change: func(q *openai.CompletionNewParams) {
				q.PresencePenalty, q.FrequencyPenalty = openai.Float(1.5), openai.Float(-0.5)
			},
		},
		"logit_bias": {
			flags:  []string{"--logit-bias", "28=4", "--logit-bias", "253=-100"},
			change: func(q *openai.CompletionNewParams) { q.LogitBias = map[string]int64{"28": 4, "253": -100} },
		},
		"top_k and others": {
			flags:  []string{"--top-k", "20", "--min-p", "0.05", "--repetition-penalty", "1.2"},
			change: func(*openai.CompletionNewParams) {},
			extra:  map[string]any{"top_k": 20, "min_p": 0.05, "repetition_penalty": 1.2},
		},
	} {
		for _, seed := range []int64{1, 2} {
			q := w.complete(s)
			q.Temperature, q.Seed = openai.Float(1.1), openai.Int(seed)
			options := []option.RequestOption{ignoreEOS, withIDs}
			// Parameters that nobody names are off in both.
			flags := slices.Concat([]string{
				"run", smol, "--tokens", commas(w.PromptIDs), "--print-tokens", "--ignore-eos", "--max-tokens", strconv.Itoa(len(w.IDs)),
				"--temperature", "1.1", "--seed", strconv.FormatInt(seed, 10),
			}, tc.flags)
			for flag, off := range map[string]string{"--top-k": "0", "--top-p": "1"} {
				if !slices.Contains(flags, flag) {
					flags = append(flags, flag, off)
				}
			}
			if tc.extra["top_k"] == nil {
				options = append(options, option.WithJSONSet("top_k", 0))
			}
			if q.TopP = openai.Float(1); tc.change != nil {
				tc.change(&q)
			}
			for k, v := range tc.extra {
				options = append(options, option.WithJSONSet(k, v))
			}
			var want []int64
			parse(t, foretoken(t, flags...), &want)
			got, err := s.client().Completions.New(within(t), q, options...)
			succeeded(t, err)
			if ids := extra[[]int64](t, got.Choices[0].JSON.ExtraFields["token_ids"].Raw()); !slices.Equal(ids, want) || slices.Equal(ids, w.IDs) {
				t.Errorf("%s, seed %d: tokens %v, want %v", name, seed, ids, want)
			}
		}
	}
}

// A prompt of many steps is continued like any other.
func testLongPrompt(t *testing.T, s *server, w *want) {
	long := slices.Repeat(w.PromptIDs, 100)
	want := truth{smol}.greedy(t, long, 8)
	q := w.complete(s)
	q.Prompt = openai.CompletionNewParamsPromptUnion{OfArrayOfTokens: long}
	q.MaxTokens = openai.Int(8)
	for _, cached := range []bool{false, true} {
		got, err := s.client().Completions.New(within(t), q, ignoreEOS, withIDs)
		succeeded(t, err)
		if ids := extra[[]int64](t, got.Choices[0].JSON.ExtraFields["token_ids"].Raw()); !slices.Equal(ids, want) {
			t.Errorf("tokens %v, want %v", ids, want)
		}
		if n := got.Usage.PromptTokensDetails.CachedTokens; cached != (n > 1000) {
			t.Errorf("%d tokens of the prompt were cached", n)
		}
	}
}

// Characters that are several tokens come whole.
func testCharacters(t *testing.T, s *server, w *want) {
	const text = "🦜🌍🦜🌍🦜🌍🦜🌍🦜🌍"
	want := truth{smol}.text(t, text, 24)
	if !strings.ContainsAny(want, "🦜🌍") {
		t.Fatalf("the model continues with %q", want)
	}
	q := w.complete(s)
	q.Prompt, q.MaxTokens, q.Logprobs = prompt(text), openai.Int(24), openai.Int(1)
	stream := s.client().Completions.NewStreaming(within(t), q, ignoreEOS)
	defer stream.Close()
	var got string
	tokens := 0
	for stream.Next() {
		for _, c := range stream.Current().Choices {
			got += c.Text
			tokens += len(c.Logprobs.Tokens)
			if strings.ContainsRune(c.Text, '\uFFFD') && c.FinishReason == "" {
				t.Errorf("%s", c.RawJSON())
			}
		}
	}
	succeeded(t, stream.Err())
	if strings.TrimSpace(got) != want || tokens != 24 {
		t.Errorf("%q, %d tokens; want %q", got, tokens, want)
	}
}

// vLLM's prompt_logprobs are those of `foretoken score`.
func testPromptLogProbs(t *testing.T, s *server, w *want) {
	got, err := s.client().Completions.New(within(t), w.complete(s), ignoreEOS, option.WithJSONSet("prompt_logprobs", 2))
	succeeded(t, err)
	type score struct {
		LogProb float64 `json:"logprob"`
		Rank    int     `json:"rank"`
		Decoded string  `json:"decoded_token"`
	}
	tokens := extra[[]map[string]score](t, got.Choices[0].JSON.ExtraFields["prompt_logprobs"].Raw())
	if len(tokens) != len(w.PromptIDs) || tokens[0] != nil {
		t.Fatalf("%v", tokens)
	}
	for i, token := range tokens[1:] {
		of := token[strconv.FormatInt(w.PromptIDs[i+1], 10)]
		first := token[strconv.FormatInt(best(w.scores[i]), 10)]
		if math.Abs(of.LogProb-w.LogProbs[i]) > closeTo || first.Rank != 1 || len(token) < 2 || len(token) > 3 {
			t.Errorf("token %d: %+v, want %v", i+1, token, w.LogProbs[i])
		}
	}
}
