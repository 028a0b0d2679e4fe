package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
)

func runCommand(ctx context.Context, args []string) error {
	f, c := newContest("run", "files, or names of models that peer model made, between commas", "1,"+strconv.Itoa(runtime.NumCPU()), 5, "bench")
	prefill := f.String("prefill", "512", "lengths of prompts")
	decode := f.Int("decode", 64, "tokens to generate")
	depths := f.String("depth", "0,512", "tokens that precede generation; verification follows the first")
	verify := f.String("verify", "1,2,4,8,16", "tokens of a forward with all logits")
	if err := c.open(f, args); err != nil {
		return err
	}
	if len(c.counts) == 0 {
		return errors.New("-t: expected at least one number")
	}
	w := work{decode: *decode}
	for _, list := range []struct {
		flag, text string
		least      int
		to         *[]int
	}{
		{"prefill", *prefill, 1, &w.prefill},
		{"depth", *depths, 0, &w.depths},
		{"verify", *verify, 1, &w.verify},
	} {
		values, err := numbers(list.flag, list.text, list.least)
		if err != nil {
			return err
		}
		if len(values) == 0 {
			return fmt.Errorf("-%s: expected at least one number", list.flag)
		}
		*list.to = values
	}
	if err := checkArgs(split(*c.more)); err != nil {
		return err
	}
	if *c.rounds < 1 || *decode < 1 || *c.models == "" {
		return errors.New("expected a -model, -rounds of at least 1 and -decode of at least 1")
	}
	var all []*comparison
	return c.hold(ctx, func(model string) (pairing, error) {
		one, w := newComparison(model), w
		all, w.model = append(all, one), model
		return pairing{
			round: func(threads, number int) error {
				w.threads = threads
				return one.round(ctx, c.llama, *c.binary, split(*c.more), w, number)
			},
			head: func() string {
				return fmt.Sprintf("foretoken on %s\nllama.cpp of llama-cpp-python %s, %s", one.machine, release, one.features)
			},
			write: one.write,
			save:  func(path string) error { return writeResults(path, all) },
		}, nil
	})
}

// find returns the path of a model of ours, or name itself.
func (l llama) find(name string) string {
	if _, err := os.Stat(l.model(name)); err == nil {
		return l.model(name)
	}
	return name
}

func newComparison(model string) *comparison {
	c := &comparison{
		model: model, ours: samples{}, peer: map[string]samples{},
		probes: map[figure][]float64{}, limits: map[figure][]float64{},
	}
	for _, s := range settings {
		c.peer[s.name] = samples{}
	}
	return c
}

// writeResults writes everything that was measured.
func writeResults(path string, all []*comparison) error {
	type result struct {
		Model    string `json:"model"`
		Machine  string `json:"machine"`
		Features string `json:"llama.cpp_features"`
		Rows     []row  `json:"rows"`
	}
	var results []result
	for _, c := range all {
		results = append(results, result{c.model, c.machine, c.features, c.rows()})
	}
	return writeJSON(path, results)
}

func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
