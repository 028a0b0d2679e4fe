package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/foretoken/foretoken/internal/bench"
)

type specKey struct {
	engine, method string
	threads        int
	figure         string
}

// A specComparison has all that was measured of ways to speculate with one model.
type specComparison struct {
	model   string
	threads int // of the round
	loads   []load
	ways    []way
	values  map[specKey][]float64 // a value a round
}

// round lets each way do each load once, with a server of its own; the order
// alternates.
func (c *specComparison) round(ctx context.Context, number int) error {
	ways := slices.Clone(c.ways)
	if number%2 == 1 {
		slices.Reverse(ways)
	}
	for _, load := range c.loads {
		for _, w := range ways {
			if err := c.measure(ctx, load, w); err != nil {
				return fmt.Errorf("%s %s: %w", w.engine, w.method, err)
			}
		}
	}
	return nil
}

func (c *specComparison) measure(ctx context.Context, load load, w way) error {
	s, err := w.start(ctx, c.model, c.threads, load.capacity)
	if err != nil {
		return err
	}
	defer s.stop()
	got, err := load.measure(ctx, s.url, 0)
	if err != nil {
		return err
	}
	for i, f := range load.figures {
		key := specKey{w.engine, w.method, c.threads, f.name}
		c.values[key] = append(c.values[key], got[i])
		fmt.Fprintf(os.Stderr, "  %s %s: %s %s\n", w.engine, w.method, f.name, significant(got[i]))
	}
	return nil
}

// A specRow compares one figure: medians of all rounds.
type specRow struct {
	Figure  string    `json:"figure"`
	Threads int       `json:"threads"`
	Ours    specSide  `json:"foretoken"`
	Peer    *specSide `json:"llama.cpp,omitempty"`
	Ratio   float64   `json:"ratio,omitempty"` // of the best methods; above 1: foretoken is faster
}

// A specSide is an engine without speculation and with its best method.
type specSide struct {
	Plain  specWay   `json:"plain"`
	Best   specWay   `json:"best"`
	Gain   float64   `json:"gain"` // of the best over none
	Others []specWay `json:"others"`
}

type specWay struct {
	Setting string    `json:"setting,omitempty"` // of llama.cpp
	Method  string    `json:"method,omitempty"`
	TokS    float64   `json:"tok_s"`
	Samples []float64 `json:"samples"`
}

func (c *specComparison) rows() (rows []specRow) {
	for _, load := range c.loads {
		for _, f := range load.figures {
			for _, threads := range c.threadCounts() {
				r := specRow{Figure: f.name, Threads: threads}
				r.Ours = *c.side(f.name, threads, true)
				if r.Peer = c.side(f.name, threads, false); r.Peer != nil {
					r.Ratio = r.Ours.Best.TokS / r.Peer.Best.TokS
				}
				rows = append(rows, r)
			}
		}
	}
	return rows
}

// side sums up one engine; nil: it was not measured. The better setting counts,
// for each method on its own, and the best of all may be to draft nothing.
func (c *specComparison) side(figure string, threads int, ours bool) *specSide {
	var best []specWay // of each method
	for _, w := range c.ways {
		if (w.engine == ourselves) != ours {
			continue
		}
		one := specWay{Method: w.method, Samples: c.values[specKey{w.engine, w.method, threads, figure}]}
		one.TokS = bench.Median(one.Samples)
		if !ours {
			one.Setting = w.engine
		}
		i := slices.IndexFunc(best, func(b specWay) bool { return b.Method == w.method })
		switch {
		case i < 0:
			best = append(best, one)
		case one.TokS > best[i].TokS:
			best[i] = one
		}
	}
	if len(best) == 0 {
		return nil
	}
	s := &specSide{Plain: best[0], Best: best[0], Others: best[1:]}
	for _, w := range best[1:] {
		if w.TokS > s.Best.TokS {
			s.Best = w
		}
	}
	s.Gain = s.Best.TokS / s.Plain.TokS
	return s
}

// threadCounts are those that were measured with.
func (c *specComparison) threadCounts() (counts []int) {
	for k := range c.values {
		counts = append(counts, k.threads)
	}
	slices.Sort(counts)
	return slices.Compact(counts)
}

// writeSpec writes everything that was measured.
func writeSpec(path string, all []*specComparison) error {
	type result struct {
		Model string    `json:"model"`
		Rows  []specRow `json:"rows"`
	}
	var results []result
	for _, c := range all {
		results = append(results, result{c.model, c.rows()})
	}
	return writeJSON(path, results)
}

// write prints the rows as a table in Markdown.
func (c *specComparison) write(out io.Writer) {
	name := strings.TrimSuffix(filepath.Base(c.model), ".gguf")
	fmt.Fprintf(out, "| %s | threads | foretoken, plain | best | gain | llama.cpp, plain | best | gain | ratio of the best |\n|---|---|---|---|---|---|---|---|---|\n", name)
	for _, r := range c.rows() {
		fmt.Fprintf(out, "| %s | %d | %s |", r.Figure, r.Threads, r.Ours)
		if r.Peer == nil {
			fmt.Fprint(out, "  |  |  |  |\n")
			continue
		}
		fmt.Fprintf(out, " %s | %.2f |\n", r.Peer, r.Ratio)
	}
}

// String is the columns plain, best and gain.
func (s specSide) String() string {
	return fmt.Sprintf("%s | %s | %.2f", s.Plain, s.Best, s.Gain)
}

// String is the speed, and how it was reached if not as the engine is by itself.
func (w specWay) String() string {
	text := significant(w.TokS)
	if w.Method != "" {
		text += ", " + w.Method
	}
	if w.Setting != "" && w.Setting != settings[0].name {
		text += ", " + w.Setting
	}
	return text
}
