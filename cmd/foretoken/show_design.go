package main

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/checkpoint/pull"
	"github.com/foretoken/foretoken/internal/model"
)

// A row prints a line of the table: its name and a formatted text.
type row func(name, format string, args ...any)

// printDesign says how layers are built.
func (d *description) printDesign(row row) {
	row("architecture", "%s: %d layers of width %d", d.Architecture, d.Layers, d.Hidden)
	printAttention(row, &d.Attention, d.Layers)
	printFeedForward(row, &d.FeedForward, d.Layers)
	if r := d.Residual; r.Streams > 1 {
		row("residual", "%s: %d streams, %d iterations of Sinkhorn–Knopp", r.Design, r.Streams, r.Iterations)
	}
	if d.MTPLayers > 0 {
		row("prediction", "modules of multi-token prediction: %d", d.MTPLayers)
	}
	name := "equations"
	for _, line := range d.Equations {
		row(name, "%s", line)
		name = ""
	}
}

func printAttention(row row, a *model.AttentionDescription, layers int) {
	heads := fmt.Sprintf("%d heads of %d", a.Heads, a.KeyDim)
	if a.RotaryDim != a.KeyDim {
		heads += fmt.Sprintf(", of which rotary embeddings turn %d", a.RotaryDim)
	}
	switch {
	case a.LatentDim > 0:
		row("attention", "%s: %s; values of %d", a.Design, heads, a.ValueDim)
		row("", "one latent vector of %d for all keys and values%s", a.LatentDim, rank(", queries", a.QueryRank))
	case a.OutputGroups > 0:
		row("attention", "%s: %s", a.Design, heads)
		row("", "one vector of a position is key and value%s", rank(", queries", a.QueryRank))
		row("", "output in %d groups of rank %d", a.OutputGroups, a.OutputRank)
	default:
		row("attention", "%s: %s, %d of keys and values", a.Design, heads, a.KVHeads)
	}
	if a.Window > 0 {
		row("", "a window of %d tokens in %s", a.Window, share(a.WindowLayers, layers))
	}
	if a.UnrotatedLayers > 0 {
		row("", "no rotary embedding in %s", share(a.UnrotatedLayers, layers))
	}
	if b := a.Blocks; b != nil {
		row("", "compressed blocks of %d tokens, one every %d", b.Compressed, b.Stride)
		row("", "%d selected blocks of %d tokens, of which %d are the first and the last ones", b.Count, b.Selected, b.Forced)
	}
	for _, c := range a.Compressed {
		which := "all"
		if c.Indexed {
			which = fmt.Sprintf("the %d best", a.Index.TopK)
		}
		row("", "entries of %d positions in %s: rows read %s", c.Positions, share(c.Layers, layers), which)
	}
	if x := a.Index; x != nil {
		what := "positions"
		if len(a.Compressed) > 0 {
			what = "entries"
		}
		row("", "an indexer chooses %d %s: %d heads of %d", x.TopK, what, x.Heads, x.Dim)
	}
}

func printFeedForward(row row, f *model.FeedForwardDescription, layers int) {
	name := "feed-forward"
	if f.DenseLayers > 0 {
		row(name, "width %d in %s", f.Width, share(f.DenseLayers, layers))
		name = ""
	}
	e := f.Experts
	if e == nil {
		return
	}
	shared := ""
	if e.SharedWidth > 0 {
		shared = fmt.Sprintf(", and one of width %d that always does", e.SharedWidth)
	}
	row(name, "%d experts of width %d in %s: %d work on a token%s", e.Count, e.Width, share(e.Layers, layers), e.Active, shared)
	text := "chosen by " + e.Scoring
	if e.Bias {
		text += " + bias"
	}
	if e.Groups > 0 {
		text += fmt.Sprintf(" in %d of %d groups (those with the greatest %s)", e.ActiveGroups, e.Groups, []string{"score", "two scores"}[e.GroupTop-1])
	}
	if e.HashLayers > 0 {
		text += fmt.Sprintf(", by token in the first %d layers", e.HashLayers)
	}
	if text += "; weights"; e.Normalized {
		text += " sum to"
	} else {
		text += " are scores times"
	}
	row("", "%s %g", text, e.Scale)
}

// printCache says what a sequence keeps.
func (d *description) printCache(row row) {
	rings := ""
	if d.CachePerSequence > 0 {
		rings = fmt.Sprintf("; %s a sequence", pull.ByteSize(int64(d.CachePerSequence)))
	}
	half := ""
	if d.roundable {
		half = ", about half in q8_0"
	}
	row("cache", "%s a token in 16 bits, twice that in f32%s%s", pull.ByteSize(int64(d.CachePerToken)), half, rings)
	for _, s := range d.Cache {
		size := fmt.Sprintf("%.5g B a token", s.BytesPerToken)
		if s.BytesPerSequence > 0 {
			size = pull.ByteSize(int64(s.BytesPerSequence)) + " a sequence"
		}
		entry := fmt.Sprintf("%d B", s.EntryBytes)
		if s.TokensPerEntry > 1 {
			entry += fmt.Sprintf(" for %d tokens", s.TokensPerEntry)
		}
		row("", "%s\t%s\t%s in %s", s.Kind, size, entry, share(s.Layers, d.Layers))
	}
}

// rank is what low-rank projections add to a line.
func rank(of string, n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s of rank %d", of, n)
}

// share says in how many layers something is.
func share(some, all int) string {
	switch some {
	case all:
		return "all layers"
	case 1:
		return "one layer"
	}
	return fmt.Sprintf("%d layers", some)
}
