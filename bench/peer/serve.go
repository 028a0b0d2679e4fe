package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/foretoken/foretoken/internal/checkpoint"
)

func serveCommand(ctx context.Context, args []string) error {
	f, dir := flags("serve")
	models := f.String("model", "", "files, or names of models that peer model made, between commas")
	threads := f.String("t", strconv.Itoa(runtime.NumCPU()), "numbers of threads")
	rounds := f.Int("rounds", 3, "rounds, of which figures are medians")
	var s serving
	f.IntVar(&s.streams, "streams", 16, "streams at a time for throughput; 0: not measured")
	f.IntVar(&s.requests, "requests", 0, "requests of throughput, by default twice the streams")
	f.IntVar(&s.input, "input", 512, "tokens of a prompt")
	f.IntVar(&s.output, "output", 128, "tokens of an answer for throughput")
	interfere := f.String("interfere", "4096", "lengths of long prompts; empty: not measured")
	f.IntVar(&s.beside, "beside", 4, "streams beside which long prompts come")
	f.IntVar(&s.besideOutput, "beside-output", 768, "tokens of each, enough to outlast a prefill")
	f.IntVar(&s.prefix, "prefix", 2048, "tokens of a common prefix; 0: not measured")
	builds := f.String("builds", buildNames(settings), "llama.cpp's builds to measure; empty: Foretoken alone")
	binary := f.String("foretoken", "", "the command to measure; by default built from this source")
	more := f.String("args", "", "more flags of foretoken serve, between commas")
	out := f.String("json", "", "where all figures are written")
	if err := parse(f, args); err != nil {
		return err
	}
	l := llama{*dir}
	if err := l.built(); err != nil {
		return err
	}
	counts, err := numbers("t", *threads, 1)
	if err != nil {
		return err
	}
	if s.interfere, err = numbers("interfere", *interfere, 1); err != nil {
		return err
	}
	chosen, err := chooseBuilds(split(*builds))
	if err != nil {
		return err
	}
	if s.requests == 0 {
		s.requests = 2 * s.streams
	}
	if *rounds < 1 || *models == "" || len(counts) == 0 || min(s.streams, s.requests, s.prefix) < 0 || min(s.input, s.output, s.beside, s.besideOutput) < 1 {
		return errors.New("expected a -model, a number of threads, -rounds and lengths of at least 1, and no negative number")
	}
	if *binary == "" {
		*binary = filepath.Join(l.dir, "foretoken")
		if err := buildForetoken(ctx, *binary); err != nil {
			return err
		}
	}
	var all []*servingComparison
	for _, name := range split(*models) {
		c := &servingComparison{model: l.find(name), loads: s.loads(), settings: chosen, values: map[servingKey][]float64{}}
		if err := hasVocabulary(c.model); err != nil {
			return err
		}
		for round := range *rounds {
			for _, c.threads = range counts {
				fmt.Fprintf(os.Stderr, "%s: round %d of %d, threads: %d\n", name, round+1, *rounds, c.threads)
				if err := c.round(ctx, l, *binary, split(*more), round); err != nil {
					return err
				}
			}
		}
		if len(all) == 0 {
			fmt.Printf("%d processors, llama.cpp of llama-cpp-python %s\nMedians of %d rounds.\n", runtime.NumCPU(), release, *rounds)
		}
		fmt.Println()
		c.write(os.Stdout)
		all = append(all, c)
		if *out == "" {
			continue
		}
		if err := writeServing(*out, all); err != nil {
			return err
		}
	}
	return nil
}

// buildNames are names for chooseBuilds.
func buildNames(settings []setting) string {
	var names []string
	for _, s := range settings {
		names = append(names, strings.TrimPrefix(s.build, "build-"))
	}
	return strings.Join(names, ",")
}

func chooseBuilds(names []string) (chosen []setting, err error) {
	for _, name := range names {
		i := slices.IndexFunc(settings, func(s setting) bool { return s.build == "build-"+name })
		if i < 0 {
			return nil, fmt.Errorf("-builds %s: expected some of %s", name, buildNames(settings))
		}
		chosen = append(chosen, settings[i])
	}
	return chosen, nil
}

// hasVocabulary refuses a model whose tokens have no text: llama.cpp's server
// ends when it is to answer with one.
func hasVocabulary(model string) error {
	c, err := checkpoint.Open(model)
	if err != nil {
		return err
	}
	defer c.Close()
	if kind, _ := c.Metadata().String("tokenizer.ggml.model"); kind == "no_vocab" {
		return fmt.Errorf("%s: its tokens have no text: remove it and make it again with peer model", model)
	}
	return nil
}
