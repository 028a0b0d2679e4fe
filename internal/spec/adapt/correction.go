package adapt

import "math"

// A correction is how a request differs from what is usual of an arm: a shift of
// the log-odds that a draft is accepted, the likeliest by its last tokens. It is
// found anew as what is usual becomes known: a request is not to be blamed for
// what all were thought to be.
type correction struct {
	shift    float64
	odds     float64  // e^shift, with the optimism that its variance allows
	tested   []tested // a ring
	next     int
	surprise surprise
	seen     uint64 // the step that it was last verified in
}

// A tested token is the first that a draft has after tokens that were accepted.
type tested struct {
	sign     sign
	depth    int
	accepted bool
}

const (
	optimism   = 0.6  // deviations: what is not known well is tried
	remembered = 64   // tokens of a request: it changes
	anyShift   = 0.5  // variance of shifts before any is known,
	anyShifts  = 1    // which counts as that many requests
	shiftRate  = 0.05 // of what a step says of that variance
)

// of is the correction of a request for an arm.
func (q *Request) of(arm, arms int) *correction {
	if q.arms == nil {
		q.arms = make([]correction, arms)
		for i := range q.arms {
			q.arms[i].fit(nil, anyShift)
		}
	}
	return &q.arms[arm]
}

// fit takes the shift one step of Newton's method nearer to the likeliest, given
// what is usual now, and the variance of shifts. It returns the shift's mean
// square.
func (k *correction) fit(usual *survival, variance float64) (square float64) {
	pull, weight, odds := -k.shift/variance, 1/variance, math.Exp(k.shift)
	for i := range k.tested {
		x := &k.tested[i]
		p := shifted(usual.estimate(x.sign, x.depth, 0), odds)
		if x.accepted {
			pull++
		}
		pull -= p
		weight += p * (1 - p)
	}
	k.shift += min(max(pull/weight, -1), 1)
	k.odds = math.Exp(k.shift + optimism*math.Sqrt(1/weight))
	return k.shift*k.shift + 1/weight
}

// observe learns whether a token was accepted.
func (k *correction) observe(x tested) {
	if len(k.tested) < remembered {
		k.tested = append(k.tested, x)
		return
	}
	k.tested[k.next] = x
	k.next = (k.next + 1) % remembered
}

// check forgets what was learned if a probe says that it is no longer true. p is
// what is expected of its token usually.
func (k *correction) check(p float64, accepted bool) {
	if k.surprise.add(shifted(p, math.Exp(k.shift)), accepted) {
		k.shift, k.tested, k.next = 0, k.tested[:0], 0
		k.fit(nil, anyShift)
	}
}

// A surprise adds up how much likelier outcomes are if tokens are accepted as
// those of a useful drafter than by what was learned (Page's cumulative sum). It
// is for probes: an arm that is off is seen now and then only, and what was
// learned would outweigh what is seen for very long.
type surprise float64

const (
	useful    = 0.75
	doubtful  = 0.4 // what is accepted more often is seen often, and counted
	surprised = 3.0 // two tokens that were expected with 0.15, or five with 0.4
)

// add reports whether what was learned is no longer true.
func (s *surprise) add(p float64, accepted bool) bool {
	if p >= doubtful {
		return false
	}
	ratio := useful / p
	if !accepted {
		ratio = (1 - useful) / (1 - p)
	}
	*s = max(0, *s+surprise(math.Log(ratio)))
	if *s < surprised {
		return false
	}
	*s = 0
	return true
}

// shifted is a probability whose odds are multiplied.
func shifted(p, odds float64) float64 {
	return p * odds / (1 - p + p*odds)
}
