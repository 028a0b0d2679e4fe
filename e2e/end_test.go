package e2e

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"
)

// A stream that has begun ends with an error when its time is over, which is not
// taken for its end; an answer that is not streamed is refused.
func TestDeadline(t *testing.T) {
	s := serve(t, smol, "late", "--request-timeout", "1s")
	q := chat(s, openai.UserMessage("Tell me a long story."))
	stream := s.client().Chat.Completions.NewStreaming(within(t), q, ignoreEOS)
	defer stream.Close()
	chunks := 0
	for stream.Next() {
		chunks++
		if c := stream.Current().Choices; len(c) > 0 && c[0].FinishReason != "" {
			t.Errorf("%s", stream.Current().RawJSON())
		}
	}
	var e *ssestream.StreamError
	if !errors.As(stream.Err(), &e) || !strings.Contains(e.Message, `"timeout"`) || chunks == 0 {
		t.Errorf("after %d chunks the stream ends with %v", chunks, stream.Err())
	}
	_, err := s.client().Chat.Completions.New(within(t), q, ignoreEOS)
	refused(t, err, http.StatusGatewayTimeout, "", "timeout")
	s.running(t, 0, 0)
}

// A server that is told to end answers what it has begun to answer, and nothing
// more.
func TestDrain(t *testing.T) {
	s := serve(t, smol, "last")
	const tokens = 600 // takes longer than to see that the server drains
	q := chat(s, openai.UserMessage("Tell me a long story."))
	q.MaxTokens = openai.Int(tokens)
	q.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := s.client().Chat.Completions.NewStreaming(within(t), q, ignoreEOS)
	defer stream.Close()
	if !stream.Next() {
		t.Fatal(stream.Err())
	}
	s.end(t)
	s.until(t, "draining", func() bool {
		r, err := http.Get(s.url + "/ready")
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusServiceUnavailable
	})
	_, err := s.client().Chat.Completions.New(within(t), chat(s, openai.UserMessage("Hi")))
	e := refused(t, err, http.StatusServiceUnavailable, "", "shutting_down")
	if e.Response.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	finish, n := "", int64(0)
	for stream.Next() {
		chunk := stream.Current()
		for _, c := range chunk.Choices {
			finish += c.FinishReason
		}
		n = max(n, chunk.Usage.CompletionTokens)
	}
	succeeded(t, stream.Err())
	if finish != "length" || n != tokens {
		t.Errorf("the stream ends with %q and %d tokens", finish, n)
	}
}
