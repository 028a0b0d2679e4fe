package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/foretoken/foretoken/internal/bench"
)

// samples of one way to run an engine, a value a round.
type samples map[figure][]float64

func (s samples) add(round speeds) {
	for f, v := range round {
		s[f] = append(s[f], v)
	}
}

// A comparison has all that was measured with one model.
type comparison struct {
	model    string
	ours     samples
	peer     map[string]samples   // by setting
	probes   map[figure][]float64 // GB/s, beside our decoding
	limits   map[figure][]float64 // share of it
	features string               // llama.cpp's
	machine  string               // as we see it
}

// round lets both engines do the work once; who is first alternates, so that
// what warms up or slows down over time meets both.
func (c *comparison) round(ctx context.Context, l llama, binary string, args []string, w work, number int) error {
	turns := []func() error{
		func() error { return c.measureOurs(ctx, binary, args, w) },
		func() error { return c.measurePeer(ctx, l, w) },
	}
	if number%2 == 1 {
		slices.Reverse(turns)
	}
	for _, turn := range turns {
		if err := turn(); err != nil {
			return err
		}
	}
	return nil
}

func (c *comparison) measureOurs(ctx context.Context, binary string, args []string, w work) error {
	got, report, err := foretoken(ctx, binary, args, w)
	if err != nil {
		return err
	}
	c.ours.add(got)
	for _, d := range report.Decode {
		f := figure{w.threads, "decode", w.decode, d.Context}
		c.probes[f] = append(c.probes[f], d.Probe)
		c.limits[f] = append(c.limits[f], d.OfLimit)
	}
	c.machine = report.CPU
	return nil
}

func (c *comparison) measurePeer(ctx context.Context, l llama, w work) error {
	for _, s := range settings {
		got, err := llamaBench(ctx, l, s, w)
		if err != nil {
			return err
		}
		forwards, features, err := llamaVerify(ctx, l, s, w)
		if err != nil {
			return err
		}
		maps.Copy(got, forwards)
		c.peer[s.name].add(got)
		c.features = features
	}
	return nil
}

// A row compares one figure: medians of all rounds.
type row struct {
	figure
	Ours    float64 `json:"foretoken"` // speed
	Peer    float64 `json:"llama.cpp"` // of its better setting
	Setting string  `json:"setting"`
	Ratio   float64 `json:"ratio"` // of speeds

	OursToOne float64 `json:"foretoken_to_1,omitempty"` // verify: the time of a forward to that of one token
	PeerToOne float64 `json:"llama.cpp_to_1,omitempty"`

	Probe   float64 `json:"probe_gb_s,omitempty"` // decode
	OfLimit float64 `json:"of_limit,omitempty"`

	Samples     []float64 `json:"samples"`
	PeerSamples []float64 `json:"llama.cpp_samples"`
}

// rows are in the order of threads, kind and size.
func (c *comparison) rows() []row {
	var rows []row
	for f, values := range c.ours {
		r := row{figure: f, Ours: bench.Median(values), Samples: values}
		for _, s := range settings {
			if v := c.peer[s.name][f]; len(v) > 0 && bench.Median(v) > r.Peer {
				r.Peer, r.Setting, r.PeerSamples = bench.Median(v), s.name, v
			}
		}
		if r.Peer == 0 {
			continue // the peer was not asked, as for the one token that others are compared with
		}
		r.Ratio = r.Ours / r.Peer
		if f.Kind == "decode" {
			r.Probe, r.OfLimit = bench.Median(c.probes[f]), bench.Median(c.limits[f])
		}
		rows = append(rows, r)
	}
	kinds := []string{"prefill", "decode", "verify"}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(a.Threads-b.Threads, slices.Index(kinds, a.Kind)-slices.Index(kinds, b.Kind), a.Context-b.Context, a.Tokens-b.Tokens)
	})
	for i, r := range rows {
		// The forward of one token comes first.
		one := slices.IndexFunc(rows, func(o row) bool {
			return o.Kind == "verify" && o.Tokens == 1 && o.Threads == r.Threads
		})
		if r.Kind == "verify" && one >= 0 {
			rows[i].OursToOne, rows[i].PeerToOne = rows[one].Ours/r.Ours, rows[one].Peer/r.Peer
		}
	}
	return rows
}

// write prints the rows as a table in Markdown.
func (c *comparison) write(out io.Writer) {
	name := strings.TrimSuffix(filepath.Base(c.model), ".gguf")
	fmt.Fprintf(out, "| %s | threads | foretoken | llama.cpp | ratio | memory limit |\n|---|---|---|---|---|---|\n", name)
	for _, r := range c.rows() {
		var what, ours, peer, limit string
		switch r.Kind {
		case "prefill":
			what = fmt.Sprintf("prefill %d, tokens/s", r.Tokens)
			ours, peer = fmt.Sprintf("%.1f", r.Ours), fmt.Sprintf("%.1f", r.Peer)
		case "decode":
			what = fmt.Sprintf("decode after %d, tokens/s", r.Context)
			ours, peer = fmt.Sprintf("%.1f", r.Ours), fmt.Sprintf("%.1f", r.Peer)
			limit = fmt.Sprintf("%.0f %% of %.1f GB/s", 100*r.OfLimit, r.Probe)
		case "verify":
			what = fmt.Sprintf("verify %d after %d, ms (to 1)", r.Tokens, r.Context)
			ours = fmt.Sprintf("%.1f (%.2f)", 1e3/r.Ours, r.OursToOne)
			peer = fmt.Sprintf("%.1f (%.2f)", 1e3/r.Peer, r.PeerToOne)
		}
		if r.Setting != settings[0].name {
			peer += ", " + r.Setting
		}
		fmt.Fprintf(out, "| %s | %d | %s | %s | %.2f | %s |\n", what, r.Threads, ours, peer, r.Ratio, limit)
	}
}
