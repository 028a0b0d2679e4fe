package e2e

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// A server with a key, room for one sequence and one more that waits.
func TestSmallServer(t *testing.T) {
	const key = "sk-small"
	s := serve(t, smol, "test/small", "--api-key", key, "--max-num-seqs", "1", "--max-queued-requests", "1")
	s.key = key
	q := chat(s, openai.UserMessage("Hi"))
	q.MaxTokens = openai.Int(4)

	for name, wrong := range map[string]string{"none": "none", "another": "sk-other", "longer": key + "x", "shorter": key[:5]} {
		t.Run("key/"+name, func(t *testing.T) {
			c := s.client(option.WithAPIKey(wrong))
			_, err := c.Chat.Completions.New(within(t), q)
			refused(t, err, http.StatusUnauthorized, "", "invalid_api_key")
			_, err = c.Models.List(within(t))
			refused(t, err, http.StatusUnauthorized, "", "invalid_api_key")
		})
	}

	t.Run("models", func(t *testing.T) { testModels(t, s, nil) })

	// One runs, one waits. Who comes then is told when to come again, and does.
	t.Run("queue", func(t *testing.T) {
		ctx, cancel := context.WithCancel(within(t))
		defer cancel()
		hold := s.hold(ctx, t)
		s.running(t, 1, 0)
		waits := s.hold(ctx, t)
		s.running(t, 1, 1)

		_, err := s.client().Chat.Completions.New(within(t), q)
		e := refused(t, err, http.StatusTooManyRequests, "", "queue_full")
		if after := e.Response.Header.Get("Retry-After"); after == "" || strings.Trim(after, "0123456789") != "" {
			t.Errorf("Retry-After: %q, want seconds", after)
		}

		var answers []int
		got, err := s.client(option.WithMaxRetries(5), option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
			response, err := next(r)
			if err == nil {
				answers = append(answers, response.StatusCode)
				if len(answers) == 1 {
					cancel() // the others leave, which makes room
					<-hold
					<-waits
					s.running(t, 0, 0)
				}
			}
			return response, err
		})).Chat.Completions.New(within(t), q)
		succeeded(t, err)
		if len(answers) != 2 || answers[0] != 429 || answers[1] != 200 || got.Usage.CompletionTokens != 4 {
			t.Errorf("answers %v, then %s", answers, got.RawJSON())
		}
	})
	t.Run("node", func(t *testing.T) { s.node(t, facts{Key: key}, "small.test.js") })
	t.Run("python", func(t *testing.T) { s.python(t, facts{Key: key}, "small.py") })
}

// hold keeps a sequence busy until ctx ends. The channel is closed when the
// client has let go of it.
func (s *server) hold(ctx context.Context, t *testing.T) <-chan struct{} {
	gone := make(chan struct{})
	q := chat(s, openai.UserMessage("Tell me a long story."))
	go func() {
		defer close(gone)
		stream := s.client().Chat.Completions.NewStreaming(ctx, q, ignoreEOS)
		defer stream.Close()
		for stream.Next() {
		}
		if err := stream.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("a long stream ends with %v", err)
		}
	}()
	return gone
}
