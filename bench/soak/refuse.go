package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A refusal is a request that has to be refused.
type refusal struct {
	path   string
	body   any
	status int
}

// refusals are bad in one way each. That each is refused for the right reason is
// for the tests of internal/server; here it counts how soon, and how.
func refusals() []refusal {
	with := func(name string, value any) object {
		return object{"prompt": "hello", "max_tokens": 1, name: value}
	}
	image := object{"type": "image_url", "image_url": object{"url": "http://127.0.0.1:1/etc/passwd"}}
	return []refusal{
		{completions, "", 400},
		{completions, "null", 400},
		{completions, `{"prompt": "a"`, 400},
		{completions, strings.Repeat(`{"prompt":`, 1e5), 400},
		{completions, `{"prompt": "a", "prompt": "b"}`, 400},
		{completions, "{\"prompt\": \"\xff\"}", 400},
		{completions, `{"prompt": "\ud83d"}`, 400},
		{completions, `{"prompt": "a", "temperature": NaN}`, 400},
		{completions, with("prompt", nil), 400},
		{completions, with("prompt", strings.Repeat("hello ", 2e6)), 400}, // 12 MB
		{completions, with("prompt", []int{-1}), 400},
		{completions, with("prompt", []int{1 << 30}), 400},
		{completions, with("prompt", make([]int, 1e6)), 400},
		{completions, with("temperature", -1), 400},
		{completions, with("top_p", 0), 400},
		{completions, with("n", 1<<40), 400},
		{completions, with("best_of", 1<<30), 400},
		{completions, with("logprobs", 1000), 400},
		{completions, with("max_tokens", -5), 400},
		{completions, with("stop", make([]string, 1e4)), 400},
		{completions, with("logit_bias", object{"99999": 1}), 400},
		{completions, with("guided_regex", "(a+)+$"), 400},
		{completions, with("temprature", 1), 400},
		{completions, with("model", "other"), 404},
		{chat, object{"messages": []object{{"role": "user", "content": []object{image}}}}, 400},
		{chat, object{"messages": []object{}}, 400},
		{chat, object{"messages": []object{{"role": "user", "content": "x"}}, "response_format": object{"type": "json_object"}}, 400},
		{"/v1/nothing", "{}", 404},
	}
}

// large reports whether the body alone is much work.
func (r refusal) large() bool { return len(fmt.Sprint(r.body)) > 1<<20 }

// check says what is wrong with how it was refused.
func (r refusal) check(a answer) error {
	var body struct {
		Error map[string]any
	}
	err := json.Unmarshal([]byte(a.text), &body)
	message, _ := body.Error["message"].(string)
	switch {
	case a.status != r.status:
		err = fmt.Errorf("status %d, expected %d", a.status, r.status)
	case err == nil && (len(body.Error) != 4 || message == "" || body.Error["type"] == nil):
		err = fmt.Errorf("no error object of OpenAI's")
	case err == nil && (strings.Contains(a.text, ".go:") || strings.Contains(a.text, "goroutine") || strings.Contains(a.text, "/tmp/") || strings.Contains(a.text, "0x")):
		err = fmt.Errorf("what it says is the server's own business")
	}
	if err != nil {
		return fmt.Errorf("%.100v to %s: %w: %.300s", r.body, r.path, err, a.text)
	}
	return nil
}

// refuse times refusals while others are being served.
func (s *soak) refuse(ctx context.Context) (figures []figure, err error) {
	model, err := s.tiny(40000)
	if err != nil {
		return nil, err
	}
	p, err := s.serve(ctx, model)
	if err != nil {
		return nil, err
	}
	busy, idle := context.WithCancel(ctx)
	defer idle()
	for i := range 4 {
		stream, err := p.open(busy, completions, generate(numbers(i, 16), 30000))
		if err != nil {
			return nil, err
		}
		go stream.rest() //nolint:errcheck // it ends with idle
	}
	var small, large, beyond []time.Duration
	try := func(r refusal) (time.Duration, error) {
		a, err := p.post(ctx, r.path, r.body)
		if err == nil {
			err = r.check(a)
		}
		return a.took, err
	}
	for range 20 {
		for _, r := range refusals() {
			took, err := try(r)
			if err != nil {
				return nil, err
			}
			if r.large() {
				large = append(large, took)
			} else {
				small = append(small, took)
			}
		}
		took, err := try(refusal{completions, strings.Repeat(" ", 17<<20), 413})
		if err != nil {
			return nil, err
		}
		beyond = append(beyond, took)
	}
	figures = append(figures,
		within("bad requests, 4 streams running: 4xx with an error object", 100*time.Millisecond, small),
		within("the same, prompts of 12 MB and of 10⁶ token ids", 100*time.Millisecond, large),
		within("body of 17 MiB: 413", 100*time.Millisecond, beyond))
	f, err := p.header(ctx)
	idle()
	return append(figures, f), firstOf(err, p.stop)
}

// header sends too large a header.
func (p *process) header(ctx context.Context) (figure, error) {
	var took []time.Duration
	for range 20 {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/v1/models", nil)
		if err != nil {
			return figure{}, err
		}
		r.Header.Set("X-Large", strings.Repeat("x", 80<<10))
		a, err := p.do(r)
		if err == nil && a.status != http.StatusRequestHeaderFieldsTooLarge {
			err = fmt.Errorf("a header of 80 KiB: status %d, expected 431", a.status)
		}
		if err != nil {
			return figure{}, err
		}
		took = append(took, a.took)
	}
	return within("header of 80 KiB: 431", 100*time.Millisecond, took), nil
}

// firstOf is err, or what then says; then is called in any case.
func firstOf(err error, then func() error) error {
	if after := then(); err == nil {
		err = after
	}
	return err
}
