package adapt

// An Option is a number of tokens to draft, and what it gives.
type Option struct {
	Gamma   int
	Tokens  float64 // committed in a step of a sequence, in expectation
	Speedup float64 // over decoding without drafts
}

// Plan says what every fixed number of drafted tokens, from none to most, gives
// that many sequences at once. alpha[i] is the probability that draft i is
// accepted if those before it are; the last holds for those behind. c is the
// time of a pass of the drafter in steps of the target without drafts; block
// says that one pass drafts all (DFlash: the time of a token is
// (draft + verify)/τ), else each token is a pass (Leviathan et al. 2211.17192,
// theorem 3.8, with the measured time of a step in place of a constant one).
func Plan(alpha []float64, c float64, block bool, steps *Steps, concurrency, most int) []Option {
	options := make([]Option, 0, most+1)
	reach, tokens := 1.0, 1.0
	plain := steps.seconds(concurrency)
	for gamma := range most + 1 {
		passes := gamma
		if block {
			passes = min(gamma, 1)
		}
		if gamma > 0 {
			if len(alpha) > 0 {
				reach *= alpha[min(gamma, len(alpha))-1]
			} else {
				reach = 0
			}
			tokens += reach
		}
		time := steps.seconds(concurrency*(1+gamma))/plain + float64(passes)*c
		options = append(options, Option{gamma, tokens, tokens / time})
	}
	return options
}

// BestOption is the one with the greatest speed-up; of equal ones that which
// drafts less.
func BestOption(options []Option) (best Option) {
	for _, o := range options {
		if o.Speedup > best.Speedup {
			best = o
		}
	}
	return best
}
