package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/foretoken/foretoken/internal/checkpoint"
)

func serveCommand(ctx context.Context, args []string) error {
	f, c := newContest("serve", "files, or names of models that peer model made, between commas", strconv.Itoa(runtime.NumCPU()), 3, "serve")
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
	err := c.open(f, args)
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
	if *c.rounds < 1 || *c.models == "" || len(c.counts) == 0 || min(s.streams, s.requests, s.prefix) < 0 || min(s.input, s.output, s.beside, s.besideOutput) < 1 {
		return errors.New("expected a -model, a number of threads, -rounds and lengths of at least 1, and no negative number")
	}
	var all []*servingComparison
	return c.hold(ctx, func(model string) (pairing, error) {
		if err := hasVocabulary(model); err != nil {
			return pairing{}, err
		}
		one := &servingComparison{model: model, loads: s.loads(), settings: chosen, values: map[servingKey][]float64{}}
		all = append(all, one)
		return pairing{
			round: func(threads, number int) error {
				one.threads = threads
				return one.round(ctx, c.llama, *c.binary, split(*c.more), number)
			},
			head: serversHead, write: one.write,
			save: func(path string) error { return writeServing(path, all) },
		}, nil
	})
}

// serversHead says what all servers ran on, and who the peer is.
func serversHead() string {
	return fmt.Sprintf("%d processors, llama.cpp of llama-cpp-python %s", runtime.NumCPU(), release)
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
