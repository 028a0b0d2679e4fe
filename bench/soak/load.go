package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// A known request has been answered alone: its tokens may not depend on who
// else is served, on what is cached, or on having been computed twice.
type known struct {
	body object
	ids  []int32
}

// A loader sends load and counts.
type loader struct {
	*process
	known []known
	bad   []refusal

	mu      sync.Mutex
	sent    int
	kinds   map[string]int // that ended as they had to
	same    int            // of those that are known
	wrong   int
	example error // the first of the wrong ones
	points  []point
}

// every is how often memory is looked at, in requests.
const every = 100

// load sends many requests of every kind, from several clients, to a server with
// a cache that is soon full.
func (s *soak) load(ctx context.Context) ([]figure, error) {
	model, args := s.model, []string{"--max-model-len", "512", "--max-num-seqs", "12", "--schedule-conservativeness", "0.3", "--kv-cache-memory"}
	if model == "" {
		var err error
		if model, err = s.tiny(512); err != nil {
			return nil, err
		}
		args = append(args, "256KiB", "--kv-cache-dtype", "f16") // 1024 tokens
	} else {
		args = append(args, "32MiB")
	}
	p, err := s.serve(ctx, model, args...)
	if err != nil {
		return nil, err
	}
	l := &loader{process: p, kinds: map[string]int{}}
	for _, r := range refusals() { // not what takes so much memory for a moment that no slope would show
		if !r.large() {
			l.bad = append(l.bad, r)
		}
	}
	for i := range 32 {
		k := known{body: generate(numbers(i/4, 10+i*5)[:10+i*5], 10+i)} // four that begin alike
		ids, err := l.generate(ctx, k.body)
		if err != nil {
			return nil, err
		}
		k.ids = ids
		l.known = append(l.known, k)
	}
	_, before, err := p.settled(ctx, 1e6)
	if err != nil {
		return nil, err
	}

	begin := time.Now()
	var workers sync.WaitGroup
	for w := range s.workers {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(w)))
			for l.next(s.warmup + s.requests) {
				l.one(ctx, random)
			}
		})
	}
	workers.Wait()
	took := time.Since(begin)
	settled, after, err := p.settled(ctx, before["go_goroutines"])
	if err != nil {
		return nil, err
	}
	counted := slices.DeleteFunc(slices.Clone(l.points), func(p point) bool { return p.x < float64(s.warmup) })
	if len(counted) < 2 {
		return nil, errors.New("too few requests to see how memory grows")
	}
	const MiB = 1 << 20
	growth := slope(counted) * 1000 / MiB
	held := after["vllm:num_requests_running"] + after["vllm:num_requests_waiting"] + after["vllm:kv_cache_usage_perc"]
	right := exactly("requests that ended as they had to", l.sent, l.sent-l.wrong, fmt.Sprintf("%d in %.0f s: %v", l.sent, took.Seconds(), l.kinds))
	if l.example != nil {
		right.measured += "; one of the others: " + l.example.Error()
	}
	tokens := exactly("known requests with the tokens they have alone", l.kinds["known"], l.same, fmt.Sprint(l.kinds["known"]))
	tokens.measured += fmt.Sprintf("; %.0f %% of prompt tokens were cached, %.0f pages evicted, %.0f sequences retracted",
		100*after["vllm:prefix_cache_hits_total"]/max(after["vllm:prefix_cache_queries_total"], 1), after["foretoken_prefix_cache_evicted_pages_total"], after["vllm:num_preemptions_total"])
	back := within("goroutines are as before", 5*time.Second, []time.Duration{settled})
	back.measured += fmt.Sprintf(" (%.0f before, %.0f after)", before["go_goroutines"], after["go_goroutines"])
	return []figure{
		right, tokens,
		{
			goal: fmt.Sprintf("growth of RssAnon and VmSwap over %d requests, after %d", s.requests, s.warmup), limit: "≤ 1 MiB per 1000", missed: growth > 1,
			measured: fmt.Sprintf("%.2f MiB per 1000; %.0f MiB at first, %.0f MiB at last", growth, counted[0].y/MiB, counted[len(counted)-1].y/MiB),
		},
		{goal: "requests and pages that are held at the end", limit: "0", measured: fmt.Sprint(held), missed: held != 0},
		back,
	}, p.stop()
}

// next reports whether there is one more to send, and looks at memory now and
// then.
func (l *loader) next(most int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sent == most {
		return false
	}
	if l.sent++; l.sent%every == 0 {
		bytes, err := l.memory()
		if err != nil {
			l.note("memory", err)
		} else {
			l.points = append(l.points, point{float64(l.sent), bytes})
		}
	}
	return true
}

// note counts a request; the caller holds mu.
func (l *loader) note(kind string, err error) {
	if err == nil {
		l.kinds[kind]++
		return
	}
	if l.wrong++; l.example == nil {
		l.example = fmt.Errorf("%s: %w", kind, err)
	}
}

// one sends a request of any kind.
func (l *loader) one(ctx context.Context, random *rand.Rand) {
	kind, same, err := l.draw(ctx, random)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note(kind, err)
	if same {
		l.same++
	}
}

func (l *loader) draw(ctx context.Context, random *rand.Rand) (kind string, same bool, err error) {
	prompt := numbers(random.IntN(1<<30), 4+random.IntN(200))
	sampled := object{"prompt": prompt, "max_tokens": 1 + random.IntN(40), "temperature": 0.8, "n": 1 + random.IntN(3), "logprobs": random.IntN(3)}
	talk := object{"messages": []object{{"role": "user", "content": fmt.Sprint("hello world ", prompt[:4])}}, "max_tokens": 1 + random.IntN(40)}
	expect := func(path string, body any) error {
		a, err := l.post(ctx, path, body)
		if err == nil && a.status != http.StatusOK {
			err = fmt.Errorf("status %d: %s", a.status, a.text)
		}
		if err == nil && !json.Valid([]byte(a.text)) {
			err = fmt.Errorf("no JSON: %.200s", a.text)
		}
		return err
	}
	switch n := random.IntN(100); {
	case n < 25:
		k := l.known[random.IntN(len(l.known))]
		ids, err := l.generate(ctx, k.body)
		return "known", err == nil && slices.Equal(ids, k.ids), err
	case n < 45:
		return "completion", false, expect(completions, sampled)
	case n < 60:
		return "chat", false, expect(chat, talk)
	case n < 72:
		talk["stream"], talk["return_token_ids"], talk["ignore_eos"] = true, true, true
		stream, err := l.open(ctx, chat, talk)
		if err != nil {
			return "chat stream", false, err
		}
		ids, err := stream.rest()
		if err == nil && len(ids) != talk["max_tokens"] {
			err = fmt.Errorf("%d tokens, expected %v", len(ids), talk["max_tokens"])
		}
		return "chat stream", false, err
	case n < 86:
		return "client that leaves", false, l.abandon(ctx, random, prompt)
	case n < 94:
		r := l.bad[random.IntN(len(l.bad))]
		a, err := l.post(ctx, r.path, r.body)
		if err == nil {
			err = r.check(a)
		}
		return "bad request", false, err
	case n < 97:
		return "embedding", false, expect("/v1/embeddings", object{"input": prompt})
	}
	return "tokenize", false, expect("/tokenize", object{"prompt": fmt.Sprint(prompt)})
}

// generate is a stream read to its end.
func (l *loader) generate(ctx context.Context, body object) ([]int32, error) {
	stream, err := l.open(ctx, completions, body)
	if err != nil {
		return nil, err
	}
	return stream.rest()
}

// abandon leaves a request some time after it was sent, streamed or not.
func (l *loader) abandon(ctx context.Context, random *rand.Rand, prompt []int) error {
	here, leave := context.WithTimeout(ctx, time.Duration(random.IntN(20e6)))
	defer leave()
	body := generate(prompt, 300)
	body["stream"] = random.IntN(2) == 0
	a, err := l.post(here, completions, body)
	switch {
	case here.Err() != nil:
		return nil // as it was to be
	case err == nil && a.status != http.StatusOK:
		err = fmt.Errorf("status %d: %s", a.status, a.text)
	}
	return err
}
