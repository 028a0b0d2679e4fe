package server

import (
	"context"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/sample"
)

// An answer that the handler has given up is neither a failure nor one that came
// to its end, whatever the engine does of it until it is settled.
func TestGenerationIsGivenUp(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	e := a.server.engine
	release := block(t, e)
	ctx := context.WithValue(t.Context(), requestKey{}, new(request))
	g, err := a.server.start(ctx, engine.Request{Prompt: []int32{3, 4}, Params: sample.Default()})
	if err != nil {
		t.Fatal(err)
	}
	enough, stop := context.WithCancel(ctx)
	stop()
	if _, err := g.Next(enough); err == nil {
		t.Fatal("tokens of an engine that does not run")
	}
	g.Close()
	release()
	for g.Progress().Ended.IsZero() { // each call is a step
		if _, err := e.Requests(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var of totals
	g.settle(&of)
	_, text := a.send(t, "GET", "/metrics", "")
	if want := `vllm:request_success_total{finished_reason="abort",model_name="tiny"} 1`; of.finish != "abort" || !strings.Contains(text, want) {
		t.Errorf("finish %q, want abort; no %s in\n%s", of.finish, want, text)
	}
}
