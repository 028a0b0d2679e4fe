package bench

import (
	"math"
	"slices"
)

// A Report has the figures of a model: medians of the runs, with their standard
// deviation and the best of them, which is what a busy machine falsifies least.
type Report struct {
	Prefill []Prefill `json:"prefill"`
	Decode  []Decode  `json:"decode"`
	Verify  []Verify  `json:"verify"`

	CPU     string `json:"cpu"` // the processor, and the instructions that kernels use
	Threads int    `json:"threads"`
	Model   string `json:"model"` // as the user named it

	Runs         int   `json:"runs"`
	WeightsBytes int64 `json:"weights_bytes"` // that a decode step of one sequence reads, as prepared for products
	KVBytes      int64 `json:"kv_bytes"`      // of one token in the cache
}

// Prefill is the speed of a prompt.
type Prefill struct {
	Tokens int     `json:"tokens"`
	TokS   float64 `json:"tok_s"`
	SD     float64 `json:"sd"`
	Best   float64 `json:"best"`
}

// Decode is the speed of generation after a context.
type Decode struct {
	Context int     `json:"context"`
	Batch   int     `json:"batch,omitempty"` // sequences, where there are several
	TokS    float64 `json:"tok_s"`           // of all sequences together
	SD      float64 `json:"sd"`
	Best    float64 `json:"best"`
	Probe   float64 `json:"probe_gb_s"` // what reading memory does with as many threads
	OfLimit float64 `json:"of_limit"`   // bytes a step reads, per second, as a share of the probe of the same run
}

// Verify is the time of one forward of K rows after a context.
type Verify struct {
	Context int     `json:"context"`
	K       int     `json:"k"`
	MS      float64 `json:"ms"`
	SD      float64 `json:"sd"`
	Best    float64 `json:"best"`
	Ratio   float64 `json:"ratio"` // to one row
}

func (b *bench) report() *Report {
	r := &Report{
		Prefill: []Prefill{}, Decode: []Decode{}, Verify: []Verify{},
		Runs: b.Runs, KVBytes: b.traffic.token,
	}
	for _, p := range b.prefills {
		r.Prefill = append(r.Prefill, Prefill{Tokens: p.tokens, TokS: Median(p.samples), SD: deviation(p.samples), Best: slices.Max(p.samples)})
	}
	for _, d := range b.decodes {
		figure := Decode{
			Context: d.from.context, TokS: Median(d.speeds), SD: deviation(d.speeds), Best: slices.Max(d.speeds),
			Probe: Median(d.probes), OfLimit: Median(d.limits),
		}
		if d.batch > 1 {
			figure.Batch = d.batch
		}
		r.Decode = append(r.Decode, figure)
	}
	for _, v := range b.verifies {
		one := Median(v.ms[0])
		for i, k := range v.ks {
			ms := Median(v.ms[i])
			r.Verify = append(r.Verify, Verify{
				Context: v.from.context, K: k, MS: ms, SD: deviation(v.ms[i]), Best: slices.Min(v.ms[i]), Ratio: ms / one,
			})
		}
	}
	return r
}

// Median is the middle value, or the mean of the two in the middle.
func Median(samples []float64) float64 {
	s := slices.Sorted(slices.Values(samples))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// deviation is the standard deviation of a sample, 0 of a single value.
func deviation(samples []float64) float64 {
	if len(samples) < 2 {
		return 0
	}
	var mean, sum float64
	for _, v := range samples {
		mean += v / float64(len(samples))
	}
	for _, v := range samples {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / float64(len(samples)-1))
}
