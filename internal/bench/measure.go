package bench

import (
	"time"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
)

// fill computes what precedes the measurements of a context.
func (b *bench) fill(s *sequences) error {
	for i := range s.tables {
		if err := b.reserve(&s.tables[i], 0, s.context+b.grows()); err != nil {
			return err
		}
		if _, err := b.prompt(&s.tables[i], s.context); err != nil {
			return err
		}
	}
	return nil
}

// rewind makes s as fill left it.
func (b *bench) rewind(s *sequences) error {
	for i := range s.tables {
		if err := b.reserve(&s.tables[i], s.context, s.context+b.grows()); err != nil {
			return err
		}
	}
	return nil
}

// release gives all memory of the cache back.
func (b *bench) release() {
	for _, s := range b.contexts {
		for i := range s.tables {
			b.cache.Release(&s.tables[i])
		}
	}
}

// since is how long ago start was, never nothing.
func (b *bench) since(start time.Time) time.Duration { return max(b.now().Sub(start), 1) }

// prefill runs one prompt from an empty cache to the logits of its last token.
type prefill struct {
	*bench
	tokens  int
	samples []float64 // tokens/s
}

func (p *prefill) warm() error {
	_, err := p.time(min(p.tokens, p.stepRows))
	return err
}

func (p *prefill) sample() error {
	took, err := p.time(p.tokens)
	p.samples = append(p.samples, float64(p.tokens)/took.Seconds())
	return err
}

func (p *prefill) time(tokens int) (time.Duration, error) {
	var table kvcache.Table
	defer p.cache.Release(&table)
	if err := p.reserve(&table, 0, tokens); err != nil {
		return 0, err
	}
	start := p.now()
	last, err := p.prompt(&table, tokens)
	if err != nil {
		return 0, err
	}
	p.runner.Logits([]int{last - 1})
	return p.since(start), nil
}

// decode generates tokens after a context: steps of one row for each
// sequence, with logits and the best token of each.
type decode struct {
	*bench
	from  *sequences
	batch int

	speeds []float64 // tokens/s, of all sequences together
	probes []float64 // GB/s
	limits []float64 // share of the probe
}

func (d *decode) warm() error {
	_, err := d.time(min(2, d.Decode))
	return err
}

func (d *decode) sample() error {
	gbs := d.probe()
	took, err := d.time(d.Decode)
	if err != nil {
		return err
	}
	seconds := took.Seconds() / float64(d.Decode) // of a step
	d.speeds = append(d.speeds, float64(d.batch)/seconds)
	d.probes = append(d.probes, gbs)
	d.limits = append(d.limits, float64(d.bytes())/seconds/(gbs*1e9))
	return nil
}

// bytes is what an average step reads: weights once, of a mixture of experts those
// that so many rows choose on average, and the cache of each sequence, which is
// half-way through the tokens.
func (d *decode) bytes() int64 {
	return d.traffic.weights(d.batch) + int64(d.batch)*d.traffic.cache(d.from.context+d.Decode/2)
}

func (d *decode) time(tokens int) (time.Duration, error) {
	if err := d.rewind(d.from); err != nil {
		return 0, err
	}
	start := d.now()
	for i := range tokens {
		logits, err := d.follow(d.from.tables[:d.batch], d.from.context+i, 1)
		if err != nil {
			return 0, err
		}
		for ; len(logits) > 0; logits = logits[d.vocab:] {
			kernel.Argmax(logits[:d.vocab])
		}
	}
	return d.since(start), nil
}

// verify runs forwards of several rows of one sequence, with the logits of all
// of them, as the verification of drafts does. The sizes take turns.
type verify struct {
	*bench
	from *sequences
	ks   []int       // rows; the first is 1
	ms   [][]float64 // [len(ks)], samples
}

// verifyForwards is how many forwards of each size a run has.
const verifyForwards = 8

func newVerify(b *bench, s *sequences, ks []int) *verify {
	v := &verify{bench: b, from: s, ks: []int{1}}
	for _, k := range ks {
		if k != 1 {
			v.ks = append(v.ks, k)
		}
	}
	v.ms = make([][]float64, len(v.ks))
	return v
}

func (v *verify) warm() error {
	for _, k := range v.ks {
		if _, err := v.time(k); err != nil {
			return err
		}
	}
	return nil
}

func (v *verify) sample() error {
	for range verifyForwards {
		for i, k := range v.ks {
			took, err := v.time(k)
			if err != nil {
				return err
			}
			v.ms[i] = append(v.ms[i], took.Seconds()*1e3)
		}
	}
	return nil
}

func (v *verify) time(k int) (time.Duration, error) {
	if err := v.rewind(v.from); err != nil {
		return 0, err
	}
	start := v.now()
	_, err := v.follow(v.from.tables[:1], v.from.context, k)
	return v.since(start), err
}
