package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/foretoken/foretoken/internal/bench"
)

// ourselves is the setting of our own samples.
const ourselves = "foretoken"

type servingKey struct {
	setting string // ourselves, or one of llama.cpp's
	threads int
	figure  string
}

// A servingComparison has all that was measured of servers of one model.
type servingComparison struct {
	model    string
	threads  int // of the round
	loads    []load
	settings []setting                // of llama.cpp
	values   map[servingKey][]float64 // a value a round
}

// round lets each server do each load once, one server at a time; who is first
// alternates. Both get the same prompts, and those of each round are new.
func (c *servingComparison) round(ctx context.Context, l llama, binary string, args []string, number int) error {
	for _, load := range c.loads {
		turns := []func() error{
			func() error {
				s, err := startOurs(ctx, binary, args, c.model, c.threads, load.capacity)
				return c.measure(ctx, load, ourselves, s, err, number)
			},
		}
		for _, setting := range c.settings {
			turns = append(turns, func() error {
				s, err := startLlama(ctx, l, setting, nil, c.model, c.threads, load.capacity)
				return c.measure(ctx, load, setting.name, s, err, number)
			})
		}
		if number%2 == 1 {
			slices.Reverse(turns)
		}
		for _, turn := range turns {
			if err := turn(); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure takes the figures of a load, unless the server did not start.
func (c *servingComparison) measure(ctx context.Context, load load, setting string, s *server, err error, round int) error {
	if err != nil {
		return err
	}
	defer s.stop()
	got, err := load.measure(ctx, s.url, uint64(round))
	if err != nil {
		return fmt.Errorf("%s: %w", setting, err)
	}
	for i, f := range load.figures {
		key := servingKey{setting, c.threads, f.name}
		c.values[key] = append(c.values[key], got[i])
		fmt.Fprintf(os.Stderr, "  %s: %s %s\n", setting, f.name, significant(got[i]))
	}
	return nil
}

// A servingRow compares one figure: medians of all rounds.
type servingRow struct {
	Figure  string  `json:"figure"`
	Threads int     `json:"threads"`
	Ours    float64 `json:"foretoken"`
	Peer    float64 `json:"llama.cpp,omitempty"` // of its better setting
	Setting string  `json:"setting,omitempty"`   // empty: llama.cpp was not measured
	Ratio   float64 `json:"ratio,omitempty"`     // above 1: foretoken is better; 0: not compared

	Samples     []float64 `json:"samples"`
	PeerSamples []float64 `json:"llama.cpp_samples,omitempty"`
}

func (c *servingComparison) rows() (rows []servingRow) {
	for _, load := range c.loads {
		for _, f := range load.figures {
			for _, threads := range c.threadCounts(f.name) {
				r := servingRow{Figure: f.name, Threads: threads, Samples: c.values[servingKey{ourselves, threads, f.name}]}
				r.Ours = bench.Median(r.Samples)
				for _, s := range c.settings {
					samples := c.values[servingKey{s.name, threads, f.name}]
					if v := bench.Median(samples); r.Setting == "" || (v > r.Peer) == f.higher {
						r.Peer, r.Setting, r.PeerSamples = v, s.name, samples
					}
				}
				switch {
				case f.within || r.Setting == "":
				case f.higher:
					r.Ratio = r.Ours / r.Peer
				default:
					r.Ratio = r.Peer / r.Ours
				}
				rows = append(rows, r)
			}
		}
	}
	return rows
}

// writeServing writes everything that was measured.
func writeServing(path string, all []*servingComparison) error {
	type result struct {
		Model string       `json:"model"`
		Rows  []servingRow `json:"rows"`
	}
	var results []result
	for _, c := range all {
		results = append(results, result{c.model, c.rows()})
	}
	return writeJSON(path, results)
}

// threadCounts are those that a figure was measured with.
func (c *servingComparison) threadCounts(figure string) (counts []int) {
	for k := range c.values {
		if k.figure == figure && k.setting == ourselves {
			counts = append(counts, k.threads)
		}
	}
	slices.Sort(counts)
	return counts
}

// write prints the rows as a table in Markdown.
func (c *servingComparison) write(out io.Writer) {
	name := strings.TrimSuffix(filepath.Base(c.model), ".gguf")
	fmt.Fprintf(out, "| %s | threads | foretoken | llama.cpp | ratio |\n|---|---|---|---|---|\n", name)
	for _, r := range c.rows() {
		var peer, ratio string
		switch r.Setting {
		case "":
		case settings[0].name:
			peer = significant(r.Peer)
		default:
			peer = significant(r.Peer) + ", " + r.Setting
		}
		if r.Ratio > 0 {
			ratio = fmt.Sprintf("%.2f", r.Ratio)
		}
		fmt.Fprintf(out, "| %s | %d | %s | %s | %s |\n", r.Figure, r.Threads, significant(r.Ours), peer, ratio)
	}
}

// significant has three digits, or all those before the point.
func significant(v float64) string {
	digits := 0
	for limit := 100.0; v < limit && digits < 2; limit /= 10 {
		digits++
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}
