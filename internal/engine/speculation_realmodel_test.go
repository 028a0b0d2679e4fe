//go:build realmodel

package engine

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/foretoken/foretoken/internal/fixtures"
	"github.com/foretoken/foretoken/internal/tokenizer"
)

var speculationPrompts = flag.Int("speculation.prompts", 60, "of a published model that are gone on with, with speculation and without")

// A published model gives the same text with speculation and without, token for
// token, whatever drafts, in whatever form, and however the engine is set:
// prompts that people ask, options so that any two of them meet.
func TestSpeculationRealModel(t *testing.T) {
	path := realModel(t)
	rnd := rand.New(rand.NewPCG(*metamorphicSeed, 1))
	base := Options{MaxModelLen: 512}
	plain, err := Open(context.Background(), path, base)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	requests := realRequests(t, plain, rnd, *speculationPrompts)
	var want []outcome
	for _, r := range requests {
		want = append(want, answers(t, plain, []Request{r})[0])
	}

	drafters := []Speculation{
		{Method: ngram},
		{Method: suffix},
		{Method: auto},
		{Method: auto, Model: "self:q4"},
		{Method: draftModel, Model: path},
		{Method: draftModel, Model: "self:q4"},
		{Method: draftModel, Model: "self:layers=0-24,29"},
	}
	trees := []Speculation{{}, {TopK: 2}, {TopK: 4, Nodes: 20}, {Tree: staticTree}}
	control := []Speculation{{Fixed: true}, {}, {Async: true}}
	batches, caches, chunks, most := []int{1, 3, 12}, []string{"shared", "none", "tight"}, []int{0, 7, 33}, []int{0, 2, 9}
	rows := pairwise(rnd, []int{len(drafters), len(trees), len(control), len(batches), len(caches), len(chunks), len(most)})
	var sum SpeculationStats
	for i, row := range rows {
		o := base
		o.Speculation = drafters[row[0]]
		if s := &o.Speculation; s.Model != "" {
			s.TopK, s.Nodes, s.Tree = trees[row[1]].TopK, trees[row[1]].Nodes, trees[row[1]].Tree
		}
		o.Speculation.Fixed, o.Speculation.Async, o.Speculation.Tokens = control[row[2]].Fixed, control[row[2]].Async, most[row[6]]
		o.MaxSeqs, o.ChunkSize, o.NoPrefixCache = batches[row[3]], chunks[row[5]], caches[row[4]] == "none"
		if caches[row[4]] == "tight" {
			o.KVCacheMemory = cacheMemory(plain, 640)
			if o.Speculation.Model == path {
				o.KVCacheMemory *= 2 // the drafter's layers are in the same pages
			}
		}
		from, to := i*len(requests)/len(rows), (i+1)*len(requests)/len(rows)
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			e, err := Open(context.Background(), path, o)
			if err != nil {
				t.Fatalf("%+v: %v", o, err)
			}
			defer e.Close()
			for k, got := range answers(t, e, requests[from:to]) {
				if diff := got.differs(&want[from+k]); diff != "" {
					t.Errorf("prompt %d: %s\noptions %+v", from+k, diff, o)
				}
			}
			for _, s := range e.Stats().Speculation {
				sum.Drafted, sum.Accepted = sum.Drafted+s.Drafted, sum.Accepted+s.Accepted
			}
		})
	}
	t.Logf("%d prompts, %d sets of options, %d tokens drafted, %d accepted", len(requests), len(rows), sum.Drafted, sum.Accepted)
	if sum.Accepted < sum.Drafted/20 || sum.Accepted == sum.Drafted {
		t.Errorf("of %d drafted tokens %d were accepted: expected that some were, and some not", sum.Drafted, sum.Accepted)
	}
}

// answers has an engine go on with all requests at once.
func answers(t *testing.T, e *Engine, requests []Request) []outcome {
	t.Helper()
	got := make([]outcome, len(requests))
	var all sync.WaitGroup
	for i, r := range requests {
		all.Go(func() {
			tokens, err := collect(e, context.Background(), r)
			if err != nil {
				t.Error(err)
			}
			got[i].add(tokens)
		})
	}
	all.Wait()
	return got
}

// realRequests are of questions of three sets, greedy or not.
func realRequests(t *testing.T, e *Engine, rnd *rand.Rand, n int) (requests []Request) {
	var texts []string
	for _, set := range []string{"gsm8k_test.jsonl", "HumanEval.jsonl.gz", "mt_bench_question.jsonl"} {
		questions := questions(t, set)
		rnd.Shuffle(len(questions), func(i, j int) { questions[i], questions[j] = questions[j], questions[i] })
		texts = append(texts, questions[:min((n+2)/3, len(questions))]...)
	}
	rnd.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
	for i, text := range texts {
		ids, err := e.tokenizer.Encode(text, tokenizer.Options{Special: true})
		if err != nil {
			t.Fatal(err)
		}
		p := greedy(48)
		p.LogProbs = i%3 - 1
		if i%2 == 1 {
			p.Temperature, p.Seed, p.TopP = 0.4+0.6*rnd.Float32(), uint64(i), 0.95
		}
		if i%5 == 4 {
			p.FrequencyPenalty, p.MinTokens, p.Stop = 0.3, 8, []string{"\n\n"}
		}
		requests = append(requests, Request{Prompt: ids[:min(len(ids), 400)], Params: p})
	}
	return requests
}

// questions are those of one set, of any of its forms.
func questions(t *testing.T, file string) (list []string) {
	data, err := os.ReadFile(fixtures.Data(t, "prompts", file))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(file, ".gz") {
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err == nil {
			data, err = io.ReadAll(r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for line := range bytes.Lines(data) {
		var q struct {
			Question, Prompt string
			Turns            []string
		}
		if err := json.Unmarshal(line, &q); err != nil {
			t.Fatal(err)
		}
		list = append(list, slices.Concat([]string{q.Question + q.Prompt}, q.Turns)[min(len(q.Turns), 1)])
	}
	return list
}
