package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/sched"
	"github.com/foretoken/foretoken/internal/tensor"
)

// What Options leave open.
const (
	// defaultStepRows bounds the rows of one step, and so its workspace: decoding
	// sequences have one row each, prompts fill the rest in chunks.
	defaultStepRows = 128
	defaultMaxSeqs  = 64
	// defaultSlowdown is how many times as long as without prompt rows a step may
	// take while sequences decode.
	defaultSlowdown = 2
	defaultWatchdog = 300 * time.Second
	// defaultCacheTokens is the size of the cache where longer sequences do not
	// need more. Its memory is taken as it is used.
	defaultCacheTokens = 32 << 10
)

// openCache makes the cache and, unless o or the model forbids it, the tree of
// shared prefixes.
func (e *Engine) openCache(o Options, d tensor.DType) (err error) {
	layers, tokens := e.layers(), max(e.maxLen, min(defaultCacheTokens, 4*e.maxLen))
	switch {
	case o.KVCacheMemory < 0:
		return fmt.Errorf("kv-cache-memory %d: expected a positive number of bytes", o.KVCacheMemory)
	case o.KVCacheMemory > 0:
		b := kvcache.Budget{Bytes: o.KVCacheMemory, Sequences: e.maxSeqs}
		if tokens, err = b.Tokens(layers, d, o.PageSize); err != nil {
			return fmt.Errorf("kv-cache-memory: %w", err)
		}
		if tokens < e.maxLen {
			return fmt.Errorf("kv-cache-memory %d: holds %d tokens, expected the %d of the longest sequence: give more, or a smaller max-model-len", o.KVCacheMemory, tokens, e.maxLen)
		}
	}
	if e.cache, err = kvcache.NewPool(layers, d, tokens, o.PageSize); err != nil {
		return err
	}
	options := kvcache.TreeOptions{}
	if o.EvictionPolicy != "" {
		if err := options.Policy.UnmarshalText([]byte(o.EvictionPolicy)); err != nil {
			return err
		}
	}
	if o.NoPrefixCache {
		e.unshared = errors.New("switched off")
		return nil
	}
	e.tree, e.unshared = kvcache.NewTree(e.cache, options)
	return nil
}

// openScheduler makes the scheduler and a first guess of what steps cost.
func (e *Engine) openScheduler(o Options) (err error) {
	c := sched.Config{
		Pages: e.cache.Capacity() / e.cache.PageSize(), PageSize: e.cache.PageSize(),
		MaxRows: e.stepRows, MaxSeqs: e.maxSeqs, Chunk: o.ChunkSize, MaxPartial: o.MaxPartial,
		Policy: sched.Policy(o.Policy), Separate: o.SeparatePrefill, Conservativeness: o.Conservativeness, ITLTarget: o.ITLTarget,
	}
	if e.speculator != nil {
		c.MaxDraft = e.speculator.mostNodes()
	}
	// A sequence with rings needs one, and there are as many as pages.
	c.MaxSeqs = min(c.MaxSeqs, c.Pages)
	c.MaxPartial = min(c.MaxPartial, c.MaxSeqs)
	if o.ITLTarget == 0 {
		c.Slowdown, c.MinChunk = defaultSlowdown, 1 // behind 32k tokens even a few rows are long
	}
	e.loop.sched, err = sched.New(c)
	// Memory of 10 GB/s, and a row of a batch at a tenth of a step: the estimator
	// learns what is true here.
	step := float64(e.WeightBytes(1)+1<<16) / 10e9
	position := float64(e.CacheBytesPerToken()+1) / 10e9
	e.loop.cost = sched.NewEstimator(sched.Curve{Step: step, Decode: step / 10, Prefill: step / 10, DecodeContext: position, PrefillContext: position / 10})
	return err
}

// sizes checks and completes the numbers of o that bound a step.
func (e *Engine) sizes(o Options) error {
	e.stepRows, e.maxSeqs, e.maxQueued, e.watchdog = o.MaxBatchedTokens, o.MaxSeqs, o.MaxQueued, o.WatchdogTimeout
	for _, f := range []struct {
		name  string
		value int
	}{
		{"max-num-batched-tokens", o.MaxBatchedTokens},
		{"max-num-seqs", o.MaxSeqs},
		{"max-queued-requests", o.MaxQueued},
		{"chunked-prefill-size", o.ChunkSize},
		{"max-partial-prompts", o.MaxPartial},
		{"page-size", o.PageSize},
		{"itl-target-ms", int(o.ITLTarget)},
		{"watchdog-timeout", int(o.WatchdogTimeout)},
	} {
		if f.value < 0 {
			return fmt.Errorf("%s %d: expected a positive number", f.name, f.value)
		}
	}
	if e.stepRows == 0 {
		e.stepRows = max(defaultStepRows, o.MaxSeqs)
	}
	if e.maxSeqs == 0 {
		e.maxSeqs = min(defaultMaxSeqs, e.stepRows)
	}
	if e.maxSeqs > e.stepRows {
		return fmt.Errorf("max-num-seqs %d: expected at most the %d of max-num-batched-tokens, since each has a row in a step", e.maxSeqs, e.stepRows)
	}
	if e.watchdog == 0 {
		e.watchdog = defaultWatchdog
	}
	return nil
}

// PrefixCache returns why requests cannot share the prefixes of their prompts,
// nil if they do.
func (e *Engine) PrefixCache() error { return e.unshared }

// MaxSeqs is how many sequences run at once.
func (e *Engine) MaxSeqs() int { return e.maxSeqs }
