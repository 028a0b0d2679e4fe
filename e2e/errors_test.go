package e2e

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// succeeded ends a test whose request did not succeed, with the reason that
// openai-go does not print.
func succeeded(t *testing.T, err error) {
	t.Helper()
	if e := (*openai.Error)(nil); errors.As(err, &e) {
		t.Fatalf("status %d, %s", e.StatusCode, e.RawJSON())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// refused checks the error that openai-go made of an answer.
func refused(t *testing.T, err error, status int, param, code string) *openai.Error {
	t.Helper()
	var e *openai.Error
	if !errors.As(err, &e) {
		t.Fatalf("the error is %v, want one of the API with status %d", err, status)
	}
	if e.StatusCode != status || e.Param != param || e.Code != code || e.Message == "" || e.Type == "" {
		t.Errorf("status %d, %s; want %d, param %q, code %q", e.StatusCode, e.RawJSON(), status, param, code)
	}
	if strings.Contains(e.Message, ".go:") || strings.Contains(e.Message, "/tmp") {
		t.Errorf("the message tells of the server's insides: %s", e.Message)
	}
	return e
}

// What cannot be meant or done is refused by name.
func testErrors(t *testing.T, s *server, w *want) {
	c := s.client()
	question := chat(s, openai.UserMessage(w.Question))
	for _, tc := range []struct {
		name   string
		change func(*openai.ChatCompletionNewParams)
		extra  map[string]any
		status int
		param  string
		code   string
	}{
		{name: "another model", change: func(q *openai.ChatCompletionNewParams) { q.Model = "gpt-4" }, status: 404, param: "model", code: "model_not_found"},
		{name: "a temperature below zero", change: func(q *openai.ChatCompletionNewParams) { q.Temperature = openai.Float(-1) }, status: 400, param: "temperature"},
		{name: "too many alternatives", change: func(q *openai.ChatCompletionNewParams) {
			q.Logprobs, q.TopLogprobs = openai.Bool(true), openai.Int(1000)
		}, status: 400, param: "top_logprobs"},
		{name: "no messages", change: func(q *openai.ChatCompletionNewParams) { q.Messages = []openai.ChatCompletionMessageParamUnion{} }, status: 400, param: "messages"},
		{name: "an image", change: func(q *openai.ChatCompletionNewParams) {
			q.Messages = []openai.ChatCompletionMessageParamUnion{openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
				openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: "http://127.0.0.1/a.png"}),
			})}
		}, status: 400, param: "messages[0].content[0]"},
		{name: "a longer answer than the context", extra: map[string]any{"min_tokens": 100000}, status: 400, param: "min_tokens", code: "context_length_exceeded"},
		{name: "a schema", change: func(q *openai.ChatCompletionNewParams) {
			q.ResponseFormat.OfJSONObject = &openai.ResponseFormatJSONObjectParam{}
		}, status: 400, param: "response_format"},
		{name: "an unknown field", extra: map[string]any{"temprature": 1}, status: 400, param: "temprature"},
		{name: "a field of the wrong type", extra: map[string]any{"seed": "seven"}, status: 400, param: "seed"},
	} {
		q := question
		if tc.change != nil {
			tc.change(&q)
		}
		var options []option.RequestOption
		for k, v := range tc.extra {
			options = append(options, option.WithJSONSet(k, v))
		}
		t.Run(tc.name, func(t *testing.T) {
			_, err := c.Chat.Completions.New(within(t), q, options...)
			e := refused(t, err, tc.status, tc.param, tc.code)
			if ct := e.Response.Header.Get("Content-Type"); !strings.HasPrefix(ct, "application/json") {
				t.Errorf("Content-Type: %s", ct)
			}
			// A stream that cannot begin is refused the same way.
			stream := c.Chat.Completions.NewStreaming(within(t), q, options...)
			defer stream.Close()
			for stream.Next() {
				t.Errorf("%s", stream.Current().RawJSON())
			}
			refused(t, stream.Err(), tc.status, tc.param, tc.code)
		})
	}

	t.Run("a prompt beyond the context", func(t *testing.T) {
		q := w.complete(s)
		q.Prompt = prompt(strings.Repeat("word ", 10000))
		_, err := c.Completions.New(within(t), q)
		refused(t, err, http.StatusBadRequest, "prompt", "context_length_exceeded")
	})
	t.Run("the best of a stream", func(t *testing.T) {
		q := w.complete(s)
		q.BestOf = openai.Int(2)
		stream := c.Completions.NewStreaming(within(t), q)
		defer stream.Close()
		if stream.Next() {
			t.Errorf("%s", stream.Current().RawJSON())
		}
		refused(t, stream.Err(), http.StatusBadRequest, "best_of", "")
	})
	t.Run("a suffix", func(t *testing.T) {
		q := w.complete(s)
		q.Suffix = openai.String("the end")
		_, err := c.Completions.New(within(t), q)
		refused(t, err, http.StatusBadRequest, "suffix", "")
	})
	t.Run("a body beyond the limit", func(t *testing.T) {
		q := w.complete(s)
		q.Prompt = prompt(strings.Repeat("word ", 4<<20))
		_, err := c.Completions.New(within(t), q)
		refused(t, err, http.StatusRequestEntityTooLarge, "", "request_too_large")
	})
	t.Run("no such address", func(t *testing.T) {
		_, err := c.Images.Generate(within(t), openai.ImageGenerateParams{Prompt: "a cat"})
		refused(t, err, http.StatusNotFound, "", "not_found")
	})
	t.Run("after all of them it answers", func(t *testing.T) { testChat(t, s, w) })
}
