package server

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// serveTemplate serves a model with another chat template.
func serveTemplate(t *testing.T, source string, o Options) *testAPI {
	t.Helper()
	e := openEngine(t, testmodel.Safetensors(t, testmodel.Family("llama")), engine.Options{ChatTemplate: source})
	return serveEngine(t, e, o)
}

// forever is a template whose loops do not end while a test runs.
var forever = strings.Repeat("{% for a in range(100000) %}", 5) + strings.Repeat("{% endfor %}", 5)

// Templates are strangers' programs: what they do wrong, or too much of, is an
// answer to the client.
func TestHostileTemplates(t *testing.T) {
	for _, tc := range []struct{ name, source, words string }{
		{"raise_exception", "{{ raise_exception('roles must alternate') }}", "roles must alternate"},
		{"a loop of 1e9", "{% for i in range(1000000000) %}{% endfor %}", "range"},
		{"multiplied text", "{{ 'x' * 1000000000 }}", "more than"},
		{"doubled text", "{% set ns = namespace(x='x') %}{% for i in range(100) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}", "more than"},
		{"multiplied list", "{{ ([0] * 1000000000)|length }}", "more than"},
		{"recursion", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "deeper than"},
		{"nested values", "{% set ns = namespace(v=0) %}{% for i in range(50000) %}{% set ns.v = [ns.v] %}{% endfor %}{{ ns.v }}", "deeper than"},
		{"a huge power", "{{ 3 ** 1000000000 }}", "too large"},
		{"a width of 1e9", "{{ '%1000000000d' % 1 }}", "more than"},
		{"the class of a text", "{{ ''.__class__.__mro__ }}", ""},
		{"no conversation", "{{ undefined_function() }}", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := serveTemplate(t, tc.source, Options{})
			for _, body := range []object{sayHello, merge(sayHello, object{"stream": true})} {
				status, text := a.post(t, chatPath, body)
				e := refusal(t, text)
				if status != http.StatusBadRequest || e.Param != "messages" || !strings.Contains(e.Message, tc.words) || len(text) > 1000 {
					t.Errorf("%d %s, want 400 and %q", status, text, tc.words)
				}
			}
			ask[completion](t, a, completionsPath, hello) // what needs no template
		})
	}
}

// ownLimit is less than what rendering allows itself, 10 s: what takes as long
// was not ended from outside.
const ownLimit = 9 * time.Second

// A template that does not end holds a request no longer than it may take.
func TestTemplateHasADeadline(t *testing.T) {
	a := serveTemplate(t, forever, Options{Limits: Limits{Total: 20 * time.Millisecond}})
	late := time.AfterFunc(ownLimit, func() { t.Error("rendering went on") })
	defer late.Stop()
	status, text := a.post(t, chatPath, sayHello)
	if e := refusal(t, text); status != http.StatusGatewayTimeout || e.Code != "timeout" {
		t.Errorf("%d %s", status, text)
	}
}

// Nor longer than its client is there.
func TestTemplateEndsWithItsClient(t *testing.T) {
	a := serveTemplate(t, forever, Options{})
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.URL+chatPath, strings.NewReader(`{"messages":[{"role":"user","content":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		response, err := http.DefaultClient.Do(r)
		if err == nil {
			response.Body.Close()
		}
		gone <- err
	}()
	for a.server.gate.count() == 0 { // until it is there
		runtime.Gosched()
	}
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the client: %v", err)
	}
	late := time.AfterFunc(ownLimit, func() { t.Error("rendering went on") })
	defer late.Stop()
	<-a.left // its handler has returned
}

// What clients say is text, whatever it looks like.
func TestTextIsNoTemplate(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	const text = "{{ 7 * 191 }}{% for i in range(9) %}{{ raise_exception('x') }}{% endfor %}{# gone #}"
	got := ask[tokenized](t, a, "/tokenize", object{"messages": []object{{"role": "user", "content": text}}})
	if prompt := ask[detokenized](t, a, "/detokenize", object{"tokens": got.Tokens}).Prompt; !strings.Contains(prompt, text) {
		t.Errorf("the prompt is %q", prompt)
	}
	// Nor can it name what the template has, or bring a template.
	status, answer := a.post(t, chatPath, merge(sayHello, object{"chat_template": "{{ 1 }}"}))
	if e := refusal(t, answer); status != http.StatusBadRequest || e.Param != "chat_template" {
		t.Errorf("%d %s", status, answer)
	}
}
