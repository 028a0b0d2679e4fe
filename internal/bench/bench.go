// Package bench measures a model on this machine: prefill, decoding beside the
// speed of memory, and what verifying drafts costs.
package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/exec"
	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
)

// Options say what is measured. All lengths are in tokens.
type Options struct {
	Prefill  []int // lengths of prompts
	Decode   int   // tokens of a run; 0: decoding is not measured
	Contexts []int // what precedes decoding and verification
	Batches  []int // sequences that decode together
	Verify   []int // rows of a forward; empty: verification is not measured
	Runs     int   // samples of each figure

	// Progress, where it is set, is told how far the work has come.
	Progress func(done, total int)

	now   func() time.Time // nil: the clock
	probe prober           // nil: reads memory
}

// Run measures. The engine has nothing else to do meanwhile.
//
// Figures are medians over o.Runs runs; in each run every measurement has its
// turn, so that what else the machine does meets all of them. What is measured
// ran once before it counts.
func Run(ctx context.Context, e *engine.Engine, o Options) (report *Report, err error) {
	if o.Decode == 0 && len(o.Verify) == 0 {
		o.Contexts = nil // nothing follows them
	}
	if err := o.Fits(e); err != nil {
		return nil, err
	}
	if o.now == nil {
		o.now = time.Now
	}
	var arena kernel.Arena
	defer func() { err = errors.Join(err, arena.Free()) }()
	if o.probe == nil && o.Decode > 0 {
		if o.probe, err = newMemory(&arena, probeBytes, e.Threads()); err != nil {
			return nil, err
		}
	}
	err = e.Exclusive(ctx, func(r *exec.Runner, cache *kvcache.Pool) error {
		b := &bench{forwarder: newForwarder(ctx, r, cache, e), Options: o, traffic: trafficOf(e)}
		defer b.release()
		if err := b.measure(); err != nil {
			return err
		}
		report = b.report()
		report.WeightsBytes = b.traffic.weights(1)
		report.CPU, report.Threads = fmt.Sprintf("%s, %v", Processor(), kernel.ThisCPU()), e.Threads()
		return nil
	})
	return report, err
}

// Fits reports what cannot be measured with the sequences and the cache that e
// has.
func (o *Options) Fits(e *engine.Engine) error {
	limit := e.MaxModelLen()
	if n := o.grows(); n > limit {
		return fmt.Errorf("%d tokens to generate or verify: expected at most %d, as long as sequences of this model are", n, limit)
	}
	for _, list := range []struct {
		what   string
		values []int
		least  int
		most   int
	}{
		{"prompt", o.Prefill, 1, limit},
		{"context", o.Contexts, 0, limit - o.grows()},
		{"batch", o.Batches, 1, 1 << 12},
		{"forward to verify", o.Verify, 1, limit},
	} {
		for _, n := range list.values {
			if n < list.least || n > list.most {
				return fmt.Errorf("%s of %d: expected %d to %d (sequences of this model have up to %d tokens)",
					list.what, n, list.least, list.most, limit)
			}
		}
	}
	if o.Runs < 1 || o.Decode < 0 {
		return fmt.Errorf("%d runs of %d tokens: expected at least 1 run, and no negative number of tokens", o.Runs, o.Decode)
	}
	// All contexts take turns, and so stay in the cache, beside the longest
	// prompt.
	roundUp := func(n int) int { page := e.CachePageSize(); return (n + page - 1) / page * page }
	want := roundUp(slices.Max(append([]int{0}, o.Prefill...)))
	for _, n := range o.Contexts {
		want += o.together() * roundUp(n+o.grows())
	}
	if have := roundUp(limit); want > have {
		return fmt.Errorf("contexts and prompt take %d tokens together, and the cache holds %d: measure fewer at a time", want, have)
	}
	return nil
}

// grows is the most tokens that follow a context.
func (o *Options) grows() int { return max(o.Decode, slices.Max(append([]int{0}, o.Verify...))) }

// bench is one call of Run.
type bench struct {
	*forwarder
	Options
	traffic traffic

	contexts []*sequences // of Options.Contexts
	prefills []*prefill
	decodes  []*decode
	verifies []*verify
}

// A measurement takes one sample at a time.
type measurement interface {
	warm() error   // runs what sample will time, once
	sample() error // adds one to the samples
}

func (b *bench) measure() error {
	b.plan()
	var all []measurement
	for _, m := range b.prefills {
		all = append(all, m)
	}
	for _, m := range b.decodes {
		all = append(all, m)
	}
	for _, m := range b.verifies {
		all = append(all, m)
	}

	done, total := 0, len(b.contexts)+(1+b.Runs)*len(all)
	step := func(err error) error {
		done++
		if b.Progress != nil {
			b.Progress(done, total)
		}
		return err
	}
	for _, s := range b.contexts {
		if err := step(b.fill(s)); err != nil {
			return err
		}
	}
	for _, m := range all {
		if err := step(m.warm()); err != nil {
			return err
		}
	}
	for range b.Runs {
		for _, m := range all {
			if err := step(m.sample()); err != nil {
				return err
			}
		}
	}
	return nil
}

// plan lists the measurements.
func (b *bench) plan() {
	for _, n := range b.Prefill {
		b.prefills = append(b.prefills, &prefill{bench: b, tokens: n})
	}
	for _, n := range b.Contexts {
		s := &sequences{context: n, tables: make([]kvcache.Table, b.together())}
		b.contexts = append(b.contexts, s)
		if b.Decode > 0 {
			for _, batch := range b.Batches {
				b.decodes = append(b.decodes, &decode{bench: b, from: s, batch: batch})
			}
		}
		if len(b.Verify) > 0 {
			b.verifies = append(b.verifies, newVerify(b, s, b.Verify))
		}
	}
}

// together is how many sequences of a context are kept.
func (o *Options) together() int {
	if o.Decode == 0 {
		return 1
	}
	return slices.Max(append([]int{1}, o.Batches...))
}
