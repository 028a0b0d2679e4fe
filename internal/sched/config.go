package sched

import (
	"fmt"
	"time"
)

// A Policy orders the requests of a key in the queue.
type Policy string

// The policies, by the names of their flag.
const (
	FCFS      Policy = "fcfs"       // first come, first served
	LPM       Policy = "lpm"        // the longest cached prefix first
	DFSWeight Policy = "dfs-weight" // the prefix tree depth first, where most requests wait first
	Priority  Policy = "priority"   // the highest Request.Priority first
)

// Config says what a scheduler may hand out. Pages, PageSize and MaxRows are
// required; other fields have a default when zero.
type Config struct {
	Pages    int // in the pool
	PageSize int // tokens in a page
	MaxRows  int // of a step: the size of its workspace

	MaxSeqs int // sequences that run at once, at most MaxRows; default MaxRows
	Policy  Policy

	// Prefill is the most prompt rows of a step, Chunk those of one prompt.
	// Default MaxRows and Prefill.
	Prefill, Chunk int
	// MaxPartial is how many sequences may be in the middle of their prompt.
	// With more than one, a long prompt leaves a share of each step to the
	// prompts that came after it. Default 1.
	MaxPartial int

	// ITLTarget is the inter-token latency to keep: a step that decodes takes
	// so many prompt rows as the cost curve says fit. Without it, Slowdown is
	// how many times as long as without prompt rows such a step may take.
	// Default no limit.
	ITLTarget time.Duration
	Slowdown  float64
	// MinChunk is how many prompt rows a step has whatever the target, so that
	// prompts come to an end. Default 16.
	MinChunk int
	// Separate gives prompts and decoding steps of their own, turn about.
	Separate bool

	MaxDraft int // draft rows of a sequence, if there is room: γmax

	// Patience is how long a request waits before it goes ahead of all that
	// policy would put first. Default 30 s.
	Patience time.Duration
	// Conservativeness scales the new-token ratio: 0.3 admits more requests at
	// the risk of retracting some, 1.4 keeps memory for all that they may
	// generate. Default 1.
	Conservativeness float64
}

// complete sets defaults and checks c.
func (c *Config) complete() error {
	orElse := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	orElse(&c.MaxSeqs, c.MaxRows)
	orElse(&c.Prefill, c.MaxRows)
	orElse(&c.Chunk, c.Prefill)
	orElse(&c.MaxPartial, 1)
	orElse(&c.MinChunk, 16)
	if c.Patience == 0 {
		c.Patience = 30 * time.Second
	}
	if c.Conservativeness == 0 {
		c.Conservativeness = 1
	}
	if c.Policy == "" {
		c.Policy = FCFS
	}
	for _, f := range []struct {
		name      string
		value     int
		low, high int
	}{
		{"pages", c.Pages, 1, 1 << 40},
		{"page size", c.PageSize, 1, 1 << 20},
		{"rows", c.MaxRows, 1, 1 << 30},
		{"sequences", c.MaxSeqs, 1, c.MaxRows}, // so that each can have a row in every step
		{"prefill rows", c.Prefill, 1, c.MaxRows},
		{"chunk", c.Chunk, 1, c.Prefill},
		{"partial prompts", c.MaxPartial, 1, c.MaxSeqs},
		{"least chunk", c.MinChunk, 1, 1 << 30},
		{"drafts", c.MaxDraft, 0, 1 << 30},
	} {
		if f.value < f.low || f.value > f.high {
			return fmt.Errorf("%s: %d, expected %d to %d", f.name, f.value, f.low, f.high)
		}
	}
	switch {
	case c.Policy != FCFS && c.Policy != LPM && c.Policy != DFSWeight && c.Policy != Priority:
		return fmt.Errorf("policy %q, expected %s, %s, %s or %s", c.Policy, FCFS, LPM, DFSWeight, Priority)
	case c.ITLTarget < 0 || c.Patience < 0:
		return fmt.Errorf("latency target %v and patience %v, expected none below 0", c.ITLTarget, c.Patience)
	case c.Slowdown != 0 && !(c.Slowdown >= 1):
		return fmt.Errorf("slowdown: %v, expected at least 1", c.Slowdown)
	case !(c.Conservativeness > 0 && c.Conservativeness <= 100):
		return fmt.Errorf("conservativeness: %v, expected above 0 and at most 100", c.Conservativeness)
	}
	return nil
}
