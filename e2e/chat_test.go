package e2e

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// chat asks greedily.
func chat(s *server, messages ...openai.ChatCompletionMessageParamUnion) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: s.model, Messages: messages, Temperature: openai.Float(0)}
}

var withIDs = option.WithJSONSet("return_token_ids", true)

func testChat(t *testing.T, s *server, w *want) {
	got, err := s.client().Chat.Completions.New(within(t), chat(s, openai.UserMessage(w.Question)), withIDs)
	succeeded(t, err)
	if len(got.Choices) != 1 || got.Object != "chat.completion" || got.Model != s.model || !strings.HasPrefix(got.ID, "chatcmpl-") || got.Created == 0 {
		t.Fatalf("%s", got.RawJSON())
	}
	c := got.Choices[0]
	if c.Message.Content != w.Answer || c.Message.Role != "assistant" || c.FinishReason != "stop" || c.Index != 0 || c.Message.ToolCalls != nil {
		t.Errorf("%s, want %q", c.RawJSON(), w.Answer)
	}
	if got := c.Message.JSON.Refusal.Raw(); got != "null" {
		t.Errorf("refusal %s, want null", got)
	}
	prompt := extra[[]int64](t, got.JSON.ExtraFields["prompt_token_ids"].Raw())
	if !slices.Equal(prompt, w.QuestionIDs) {
		t.Errorf("the prompt is %v, want %v", prompt, w.QuestionIDs)
	}
	answer := extra[[]int64](t, c.JSON.ExtraFields["token_ids"].Raw())
	if !slices.Equal(answer, w.AnswerIDs) {
		t.Errorf("tokens %v, want %v", answer, w.AnswerIDs)
	}
	u := got.Usage
	if u.PromptTokens != int64(len(prompt)) || u.CompletionTokens != int64(len(answer)) || u.TotalTokens != u.PromptTokens+u.CompletionTokens {
		t.Errorf("usage %s", u.RawJSON())
	}

	// max_completion_tokens cuts the answer; the prompt is cached by now.
	q := chat(s, openai.UserMessage(w.Question))
	q.MaxCompletionTokens = openai.Int(4)
	got, err = s.client().Chat.Completions.New(within(t), q)
	succeeded(t, err)
	if c := got.Choices[0]; !strings.HasPrefix(w.Answer, c.Message.Content) || c.FinishReason != "length" || got.Usage.CompletionTokens != 4 {
		t.Errorf("%s", got.RawJSON())
	}
	if cached := got.Usage.PromptTokensDetails.CachedTokens; cached == 0 || cached >= got.Usage.PromptTokens {
		t.Errorf("%d of %d tokens of the prompt were cached", cached, got.Usage.PromptTokens)
	}

	// stop and n.
	q = chat(s, openai.UserMessage(w.Question))
	q.Stop.OfStringArray = []string{" water"}
	q.N = openai.Int(3)
	got, err = s.client().Chat.Completions.New(within(t), q)
	succeeded(t, err)
	before, _, found := strings.Cut(w.Answer, " water")
	if !found || len(got.Choices) != 3 {
		t.Fatalf("%s", got.RawJSON())
	}
	for i, c := range got.Choices {
		if c.Message.Content != before || c.FinishReason != "stop" || c.Index != int64(i) {
			t.Errorf("%s, want %q", c.RawJSON(), before)
		}
	}
}

// A stream is put together by the client's own accumulator, which also tells when
// a content has ended: the reason comes in a chunk of its own.
func testChatStream(t *testing.T, s *server, w *want) {
	for name, tc := range map[string]struct {
		n, max int64
		finish string
	}{
		"to its end": {1, 0, "stop"}, "two": {2, 0, "stop"}, "cut": {1, 4, "length"},
	} {
		q := chat(s, openai.UserMessage(w.Question))
		q.N = openai.Int(tc.n)
		tokens := len(w.AnswerIDs)
		if tc.max > 0 {
			q.MaxTokens, tokens = openai.Int(tc.max), int(tc.max)
		}
		q.StreamOptions.IncludeUsage = openai.Bool(true)
		stream := s.client().Chat.Completions.NewStreaming(within(t), q)
		defer stream.Close()
		var all openai.ChatCompletionAccumulator
		began, ended, contents := make([]int, tc.n), make([]int, tc.n), make([]string, tc.n)
		last := false
		for stream.Next() {
			chunk := stream.Current()
			if last {
				t.Errorf("%s: after the usage comes %s", name, chunk.RawJSON())
			}
			if !all.AddChunk(chunk) {
				t.Fatalf("%s: the client cannot add %s", name, chunk.RawJSON())
			}
			if chunk.Object != "chat.completion.chunk" || chunk.Model != s.model {
				t.Errorf("%s: %s", name, chunk.RawJSON())
			}
			for _, c := range chunk.Choices {
				if c.Delta.Role == "assistant" {
					began[c.Index]++
				}
				if began[c.Index] != 1 || ended[c.Index] != 0 {
					t.Errorf("%s: before the role, or after the end, comes %s", name, chunk.RawJSON())
				}
				if c.FinishReason != "" {
					ended[c.Index]++
				}
				if content, ok := all.JustFinishedContentForChoice(int(c.Index)); ok {
					contents[c.Index] = content
				}
			}
			last = len(chunk.Choices) == 0
		}
		succeeded(t, stream.Err())
		if len(all.Choices) != int(tc.n) || !last {
			t.Fatalf("%s: %d choices, usage at the end: %v", name, len(all.Choices), last)
		}
		for i, c := range all.Choices {
			whole := c.Message.Content == w.Answer
			if !strings.HasPrefix(w.Answer, c.Message.Content) || whole != (tc.max == 0) || c.FinishReason != tc.finish || ended[i] != 1 {
				t.Errorf("%s: %+v, want %q", name, c, w.Answer)
			}
			if contents[i] != c.Message.Content {
				t.Errorf("%s: the client saw the end of %q, the content is %q", name, contents[i], c.Message.Content)
			}
		}
		if u := all.Usage; u.PromptTokens != int64(len(w.QuestionIDs)) || u.CompletionTokens != tc.n*int64(tokens) {
			t.Errorf("%s: usage %+v", name, u)
		}
	}
}

// Log-probabilities are those of `foretoken score`, one for each token, whole or
// streamed.
func testChatLogProbs(t *testing.T, s *server, w *want) {
	q := chat(s, openai.UserMessage(w.Question))
	q.Logprobs, q.TopLogprobs = openai.Bool(true), openai.Int(4)
	got, err := s.client().Chat.Completions.New(within(t), q)
	succeeded(t, err)
	check := func(tokens []openai.ChatCompletionTokenLogprob) {
		t.Helper()
		ids := w.AnswerIDs
		if len(tokens) != len(ids) {
			t.Fatalf("%d tokens have log-probabilities, want %d", len(tokens), len(ids))
		}
		var text []byte
		for i, token := range tokens {
			row := w.answerScores[i]
			if math.Abs(token.Logprob-float64(row[ids[i]])) > closeTo {
				t.Errorf("%q has %v, want %v", token.Token, token.Logprob, row[ids[i]])
			}
			sorted := slices.Sorted(slices.Values(row))
			if len(token.TopLogprobs) != 4 || token.TopLogprobs[0].Token != token.Token {
				t.Fatalf("the best of the greedy %q are %s", token.Token, token.RawJSON())
			}
			for j, top := range token.TopLogprobs {
				if want := float64(sorted[len(sorted)-1-j]); math.Abs(top.Logprob-want) > closeTo {
					t.Errorf("token %d has alternative %d with %v, want %v", i, j, top.Logprob, want)
				}
			}
			if i == len(ids)-1 {
				break // the end of the turn
			}
			for _, b := range token.Bytes {
				text = append(text, byte(b))
			}
			if !bytes.HasSuffix(text, []byte(token.Token)) {
				t.Errorf("token %q has the bytes %v", token.Token, token.Bytes)
			}
		}
		if string(text) != w.Answer {
			t.Errorf("the tokens' bytes are %q, want %q", text, w.Answer)
		}
	}
	check(got.Choices[0].Logprobs.Content)

	stream := s.client().Chat.Completions.NewStreaming(within(t), q)
	defer stream.Close()
	var tokens []openai.ChatCompletionTokenLogprob
	for stream.Next() {
		for _, c := range stream.Current().Choices {
			tokens = append(tokens, c.Logprobs.Content...)
		}
	}
	succeeded(t, stream.Err())
	check(tokens)
}

// Messages of every role, as texts or as parts.
func testMessages(t *testing.T, s *server, w *want) {
	parts := []openai.ChatCompletionContentPartTextParam{{Text: systemMessage}}
	user := openai.UserMessage(w.Question)
	for name, tc := range map[string]struct {
		messages []openai.ChatCompletionMessageParamUnion
		want     string
	}{
		"system":            {[]openai.ChatCompletionMessageParamUnion{openai.SystemMessage(systemMessage), user}, w.Instructed},
		"system in parts":   {[]openai.ChatCompletionMessageParamUnion{openai.SystemMessage(parts), user}, w.Instructed},
		"developer":         {[]openai.ChatCompletionMessageParamUnion{openai.DeveloperMessage(systemMessage), user}, w.Instructed},
		"user in parts":     {[]openai.ChatCompletionMessageParamUnion{openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{openai.TextContentPart(w.Question)})}, w.Answer},
		"what came of that": {[]openai.ChatCompletionMessageParamUnion{user, openai.AssistantMessage(w.Answer), openai.UserMessage(w.Followup)}, w.FollowupAnswer},
	} {
		got, err := s.client().Chat.Completions.New(within(t), chat(s, tc.messages...))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c := got.Choices[0]; c.Message.Content != tc.want {
			t.Errorf("%s: %s, want %q", name, c.RawJSON(), tc.want)
		}
	}
}

// continue_final_message goes on where the assistant's last message stops.
func testContinue(t *testing.T, s *server, w *want) {
	begun, rest, _ := strings.Cut(w.Answer, " water")
	got, err := s.client().Chat.Completions.New(within(t), chat(s, openai.UserMessage(w.Question), openai.AssistantMessage(begun)),
		option.WithJSONSet("continue_final_message", true), option.WithJSONSet("add_generation_prompt", false))
	succeeded(t, err)
	if c := got.Choices[0]; c.Message.Content != " water"+rest {
		t.Errorf("%s, want %q", c.RawJSON(), " water"+rest)
	}
}
