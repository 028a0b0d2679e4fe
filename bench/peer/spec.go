package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/foretoken/foretoken/internal/bench/serve"
	"github.com/foretoken/foretoken/internal/bench/spec"
)

// The methods that both have something of, and llama.cpp's: all that draft
// without a model, and that which drafts with one.
const (
	ourMethods = "ngram,suffix"
	peerTypes  = "ngram-simple,ngram-map-k,ngram-map-k4v,ngram-mod,ngram-cache"
	ourDraft   = "draft_model"
	peerDraft  = "draft-simple"
)

func specCommand(ctx context.Context, args []string) error {
	f, c := newContest("spec", "files, or names of models that peer model made, between commas; drafts of random weights mean nothing",
		strconv.Itoa(runtime.NumCPU()), 3, "serve")
	draft := f.String("draft", "", "a model that drafts for them, in both engines; by default none")
	prompts := f.String("prompts", "code-edit,summarise", "code-edit and summarise, which foretoken bench spec brings, and data sets as NAME=FILE")
	streams := f.String("streams", "1,4", "streams at a time")
	requests := f.Int("requests", 8, "requests of a load")
	output := f.Int("output", 128, "tokens of an answer")
	methods := f.String("methods", ourMethods, "Foretoken's methods beside none, and draft_model with -draft")
	types := f.String("types", peerTypes, "llama.cpp's types of speculation beside none, and draft-simple with -draft")
	builds := f.String("builds", buildNames(settings), "llama.cpp's builds to measure; empty: Foretoken alone")
	if err := c.open(f, args); err != nil {
		return err
	}
	atATime, err := numbers("streams", *streams, 1)
	if err != nil {
		return err
	}
	chosen, err := chooseBuilds(split(*builds))
	if err != nil {
		return err
	}
	if *c.rounds < 1 || *c.models == "" || len(c.counts) == 0 || len(atATime) == 0 || *requests < 1 || *output < 2 {
		return errors.New("expected a -model, numbers of threads and -streams, -rounds and -requests of at least 1 and -output of at least 2")
	}
	loads, err := specLoads(split(*prompts), atATime, *requests, *output)
	if err != nil {
		return err
	}
	var all []*specComparison
	return c.hold(ctx, func(model string) (pairing, error) {
		if err := hasVocabulary(model); err != nil {
			return pairing{}, err
		}
		one := &specComparison{model: model, loads: loads, values: map[specKey][]float64{}}
		one.ways = specWays(c.llama, *c.binary, split(*c.more), split(*methods), split(*types), chosen, *draft)
		all = append(all, one)
		return pairing{
			round: func(threads, number int) error {
				one.threads = threads
				return one.round(ctx, number)
			},
			head: serversHead, write: one.write,
			save: func(path string) error { return writeSpec(path, all) },
		}, nil
	})
}

// specLoads are all sets of prompts at all numbers of streams.
func specLoads(sets []string, streams []int, requests, output int) (loads []load, err error) {
	for _, item := range sets {
		name, file, _ := strings.Cut(item, "=")
		var set spec.Set
		switch {
		case slices.Contains(spec.Made(), name) && file == "":
			set, err = spec.Shipped(name)
		case file == "":
			err = fmt.Errorf("expected NAME=FILE, %s", strings.Join(spec.Made(), " or "))
		default:
			var data []byte
			if data, err = os.ReadFile(file); err == nil {
				set, err = spec.ReadSet(name, data)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("-prompts %s: %w", item, err)
		}
		for _, n := range streams {
			loads = append(loads, specLoad(set, n, max(n, requests), output))
		}
	}
	return loads, nil
}

// specLoad is the first prompts of a set as texts to continue, each as often as
// any other.
func specLoad(set spec.Set, streams, requests, output int) load {
	o := request(requests, streams, warmUpTokens, output)
	longest := warmUpTokens
	for _, p := range set.Prompts[:min(requests, len(set.Prompts))] {
		o.Prompts = append(o.Prompts, p.Plain())
		longest = max(longest, len(p.Plain())) // bytes, of which a token has one at least
	}
	name := fmt.Sprintf("%s, %d streams: ", set.Name, streams)
	return load{
		capacity: capacity{slots: streams, context: longest + output + spare}, asked: []serve.Options{o},
		figures: []servingFigure{
			{name: name + "output, tokens/s", higher: true},
			{name: name + "a stream after its first token, tokens/s", higher: true},
		},
		values: func(r []*serve.Report) ([]float64, error) {
			if r[0].TPOT == nil || r[0].TPOT.Median <= 0 {
				return nil, errors.New("all tokens of an answer came at once: expected a longer -output")
			}
			return []float64{r[0].OutputThroughput, 1e3 / r[0].TPOT.Median}, nil
		},
	}
}

// warmUpTokens are those of the prompt, a random one, that is answered before.
const warmUpTokens = 32

// A way is an engine with a method of speculation, or with none.
type way struct {
	engine string // ourselves, or a setting of llama.cpp
	method string // "": none
	start  func(ctx context.Context, model string, threads int, c capacity) (*server, error)
}

// specWays are all that take turns.
func specWays(l llama, binary string, more, methods, types []string, builds []setting, draft string) (ways []way) {
	if draft != "" {
		methods, types = append(slices.Clip(methods), ourDraft), append(slices.Clip(types), peerDraft)
	}
	for _, method := range append([]string{""}, methods...) {
		args := slices.Clone(more)
		if method != "" {
			config := map[string]any{"method": method}
			if method == ourDraft {
				config["model"] = draft
			}
			text, _ := json.Marshal(config) // of texts alone
			args = append(args, "--speculative-config", string(text))
		}
		ways = append(ways, way{ourselves, method, func(ctx context.Context, model string, threads int, c capacity) (*server, error) {
			return startOurs(ctx, binary, args, model, threads, c)
		}})
	}
	for _, s := range builds {
		for _, kind := range append([]string{""}, types...) {
			var args []string
			if kind != "" {
				args = []string{"--spec-type", kind}
			}
			if kind == peerDraft {
				args = append(args, "--spec-draft-model", draft)
			}
			ways = append(ways, way{s.name, kind, func(ctx context.Context, model string, threads int, c capacity) (*server, error) {
				return startLlama(ctx, l, s, args, model, threads, c)
			}})
		}
	}
	return ways
}
