package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/foretoken/foretoken/internal/bench"
)

// work is what both engines are asked to do.
type work struct {
	model   string // path
	threads int
	prefill []int // lengths of prompts
	decode  int   // tokens
	depths  []int // tokens that precede decoding; verification follows the first
	verify  []int // tokens of a forward
}

// A figure names what is measured.
type figure struct {
	Threads int    `json:"threads"`
	Kind    string `json:"kind"` // prefill, decode or verify
	Tokens  int    `json:"tokens"`
	Context int    `json:"context"`
}

// speeds of a round: tokens a second of prefill and decode, forwards a second
// of verify.
type speeds map[figure]float64

// checkArgs refuses flags of foretoken bench that would change what it is
// asked to do, which then were not what the peer does.
func checkArgs(args []string) error {
	for _, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		switch {
		case slices.Contains([]string{"--json", "--runs", "--threads", "--prefill", "--decode", "--context", "--verify", "--batch"}, name),
			strings.HasPrefix(name, "-t"):
			return fmt.Errorf("-args %s: expected flags that say how Foretoken runs, such as --kv-cache-dtype; what is measured is the same for both", name)
		}
	}
	return nil
}

// foretoken runs our side once.
func foretoken(ctx context.Context, binary string, args []string, w work) (speeds, *bench.Report, error) {
	args = append([]string{
		"bench", w.model, "--json", "--runs", "1", "--threads", strconv.Itoa(w.threads),
		"--prefill", join(w.prefill), "--decode", strconv.Itoa(w.decode), "--context", join(w.depths), "--verify", join(w.verify),
		"--batch", "1",
	}, args...)
	var report bench.Report
	if err := readJSON(ctx, &report, binary, args...); err != nil {
		return nil, nil, err
	}
	out := speeds{}
	for _, p := range report.Prefill {
		out[figure{w.threads, "prefill", p.Tokens, 0}] = p.TokS
	}
	for _, d := range report.Decode {
		out[figure{w.threads, "decode", w.decode, d.Context}] = d.TokS
	}
	for _, v := range report.Verify {
		if v.Context == w.depths[0] {
			out[figure{w.threads, "verify", v.K, v.Context}] = 1e3 / v.MS
		}
	}
	return out, &report, nil
}

// llamaBench runs llama.cpp's own benchmark once: prompts, and then
// generation, which it does not measure at the same depths in one call.
func llamaBench(ctx context.Context, l llama, s setting, w work) (speeds, error) {
	out := speeds{}
	for _, test := range [][]string{
		{"-p", join(w.prefill), "-n", "0"},
		{"-p", "0", "-n", strconv.Itoa(w.decode), "-d", join(w.depths)},
	} {
		args := append([]string{"-m", w.model, "-t", strconv.Itoa(w.threads), "-r", "1", "-o", "json"}, test...)
		var tests []struct {
			Prompt   int     `json:"n_prompt"`
			Generate int     `json:"n_gen"`
			Depth    int     `json:"n_depth"`
			Speed    float64 `json:"avg_ts"`
		}
		if err := readJSON(ctx, &tests, l.tool(s, benchTool), args...); err != nil {
			return nil, err
		}
		for _, t := range tests {
			if t.Prompt > 0 {
				out[figure{w.threads, "prefill", t.Prompt, t.Depth}] = t.Speed
			} else {
				out[figure{w.threads, "decode", t.Generate, t.Depth}] = t.Speed
			}
		}
	}
	return out, nil
}

// verifyCycles is how many times each size has its turn in a round.
const verifyCycles = 3

// llamaVerify measures forwards with all logits, and returns the features
// that llama.cpp was built with and sees.
func llamaVerify(ctx context.Context, l llama, s setting, w work) (speeds, string, error) {
	args := []string{w.model, strconv.Itoa(w.threads), strconv.Itoa(w.depths[0]), strconv.Itoa(verifyCycles)}
	for _, k := range w.verify {
		args = append(args, strconv.Itoa(k))
	}
	var result struct {
		Features string
		Verify   []struct {
			K  int
			MS []float64
		}
	}
	if err := readJSON(ctx, &result, l.tool(s, verifyTool), args...); err != nil {
		return nil, "", err
	}
	out := speeds{}
	for _, v := range result.Verify {
		out[figure{w.threads, "verify", v.K, w.depths[0]}] = 1e3 / bench.Median(v.MS)
	}
	return out, result.Features, nil
}

// readJSON runs a command that prints one JSON value.
func readJSON(ctx context.Context, v any, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	var notes strings.Builder
	c.Stderr = &notes
	text, err := c.Output()
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, strings.TrimSpace(notes.String()))
	}
	return nil
}

// buildForetoken compiles the command of this very source.
func buildForetoken(ctx context.Context, to string) error {
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", to, "github.com/foretoken/foretoken/cmd/foretoken")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("building foretoken: %w\n%s", err, text)
	}
	return nil
}
