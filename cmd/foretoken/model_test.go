package main

import (
	"context"
	"errors"
	"testing"

	"github.com/foretoken/foretoken/internal/testmodel"
)

// Ctrl-C ends every verb that loads a model while it does: before what comes
// next, which here would be an error of another kind.
func TestInterruptWhileLoading(t *testing.T) {
	model, prompt, tooHigh := testmodel.GGUF(t, testmodel.Family("llama")), "hello", 1<<20
	for name, verb := range map[string]interface{ Run(context.Context) error }{
		"run":   &runCmd{Model: model, Prompt: &prompt, samplingFlags: samplingFlags{StopID: []int32{int32(tooHigh)}}},
		"score": &scoreCmd{Model: model, Tokens: "missing.json"},
		"bench": &benchCmd{Model: model, Prefill: []int{tooHigh}, Runs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			if err := verb.Run(ctx); err == nil || errors.Is(err, context.Canceled) {
				t.Fatalf("%v without Ctrl-C", err)
			}
			cancel()
			err := verb.Run(ctx)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want %v", err, context.Canceled)
			}
			if code := report(err, ctx.Err()); code != exitInterrupted {
				t.Errorf("exit code %d, want %d", code, exitInterrupted)
			}
		})
	}
}
