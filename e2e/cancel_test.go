package e2e

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// A client that leaves, or waits no longer, frees its sequence.
func testCancel(t *testing.T, s *server, w *want) {
	long := chat(s, openai.UserMessage("Tell me a long story."))

	t.Run("stream", func(t *testing.T) {
		ctx, cancel := context.WithCancel(within(t))
		defer cancel()
		stream := s.client().Chat.Completions.NewStreaming(ctx, long, ignoreEOS)
		defer stream.Close()
		for range 3 {
			if !stream.Next() {
				t.Fatalf("the stream ends: %v", stream.Err())
			}
		}
		s.running(t, 1, 0)
		cancel()
		for stream.Next() {
		}
		if err := stream.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("the stream ends with %v", err)
		}
		s.running(t, 0, 0)
	})
	t.Run("stream closed", func(t *testing.T) {
		stream := s.client().Chat.Completions.NewStreaming(within(t), long, ignoreEOS)
		if !stream.Next() {
			t.Fatalf("the stream ends: %v", stream.Err())
		}
		stream.Close()
		s.running(t, 0, 0)
	})
	t.Run("answer", func(t *testing.T) {
		ctx, cancel := context.WithCancel(within(t))
		ended := make(chan error, 1)
		go func() {
			_, err := s.client().Chat.Completions.New(ctx, long, ignoreEOS)
			ended <- err
		}()
		s.running(t, 1, 0)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the request ends with %v", err)
		}
		s.running(t, 0, 0)
	})
	t.Run("timeout", func(t *testing.T) {
		_, err := s.client().Chat.Completions.New(within(t), long, ignoreEOS, option.WithRequestTimeout(time.Second))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the request ends with %v", err)
		}
		s.running(t, 0, 0)
	})
	t.Run("and the server goes on", func(t *testing.T) { testChat(t, s, w) })
}

// Streams at the same time say each what it says alone, whoever leaves
// meanwhile.
func testConcurrent(t *testing.T, s *server, w *want) {
	m := truth{smol}
	prompts := []string{w.Prompt, "Once upon a time", "def fibonacci(n):", "Monday, Tuesday, Wednesday,"}
	wants := make([]string, len(prompts))
	for i, p := range prompts {
		wants[i] = m.text(t, p, 32)
	}
	var clients sync.WaitGroup
	for i := range 4 * len(prompts) {
		clients.Go(func() {
			q := w.complete(s)
			q.Prompt, q.MaxTokens = prompt(prompts[i%len(prompts)]), openai.Int(32)
			stream := s.client().Completions.NewStreaming(within(t), q, ignoreEOS)
			defer stream.Close()
			var text strings.Builder
			for stream.Next() {
				for _, c := range stream.Current().Choices {
					text.WriteString(c.Text)
				}
				if i%3 == 2 && text.Len() > 0 {
					return
				}
			}
			if err := stream.Err(); err != nil {
				t.Errorf("stream %d: %v", i, err)
			}
			if got := strings.TrimSpace(text.String()); got != wants[i%len(prompts)] {
				t.Errorf("stream %d: %q, want %q", i, got, wants[i%len(prompts)])
			}
		})
	}
	clients.Wait()
	s.running(t, 0, 0)
}
