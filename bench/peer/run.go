package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
)

func runCommand(ctx context.Context, args []string) error {
	f, dir := flags("run")
	models := f.String("model", "", "files, or names of models that peer model made, between commas")
	threads := f.String("t", "1,"+strconv.Itoa(runtime.NumCPU()), "numbers of threads")
	rounds := f.Int("rounds", 5, "rounds, of which figures are medians")
	prefill := f.String("prefill", "512", "lengths of prompts")
	decode := f.Int("decode", 64, "tokens to generate")
	depths := f.String("depth", "0,512", "tokens that precede generation; verification follows the first")
	verify := f.String("verify", "1,2,4,8,16", "tokens of a forward with all logits")
	binary := f.String("foretoken", "", "the command to measure; by default built from this source")
	more := f.String("args", "", "more flags of foretoken bench, between commas")
	out := f.String("json", "", "where all figures are written")
	if err := parse(f, args); err != nil {
		return err
	}
	l := llama{*dir}
	if err := l.built(); err != nil {
		return err
	}
	w := work{decode: *decode}
	var counts []int
	for _, list := range []struct {
		flag, text string
		least      int
		to         *[]int
	}{
		{"t", *threads, 1, &counts},
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
	if err := checkArgs(split(*more)); err != nil {
		return err
	}
	if *rounds < 1 || *decode < 1 || *models == "" {
		return errors.New("expected a -model, -rounds of at least 1 and -decode of at least 1")
	}
	if *binary == "" {
		*binary = filepath.Join(l.dir, "foretoken")
		if err := buildForetoken(ctx, *binary); err != nil {
			return err
		}
	}

	var all []*comparison
	for _, name := range split(*models) {
		c := newComparison(l.find(name))
		for round := range *rounds {
			for _, w.threads = range counts {
				w.model = c.model
				fmt.Fprintf(os.Stderr, "%s: round %d of %d, threads: %d\n", name, round+1, *rounds, w.threads)
				if err := c.round(ctx, l, *binary, split(*more), w, round); err != nil {
					return err
				}
			}
		}
		if len(all) == 0 {
			fmt.Printf("foretoken on %s\nllama.cpp of llama-cpp-python %s, %s\nMedians of %d rounds.\n", c.machine, release, c.features, *rounds)
		}
		fmt.Println()
		c.write(os.Stdout)
		all = append(all, c)
		if *out == "" {
			continue
		}
		if err := writeResults(*out, all); err != nil {
			return err
		}
	}
	return nil
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
