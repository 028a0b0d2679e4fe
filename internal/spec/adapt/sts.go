package adapt

import "math"

// A calibration corrects a drafter's confidences by sequential temperature
// scaling (DSpark): position k has a temperature that its confidence's log-odds
// are divided by, found from the first position on so that the expected
// calibration error of the running product is least. It is fitted to the last
// rounds, one position at a time, because a round waits for it.
type calibration struct {
	inverse [stsDepth]float64 // 1/T of each position; 0: none was fitted
	rounds  []stsRound        // a ring
	next    int               // in rounds
	since   int               // rounds since a position was fitted
	fitted  int               // the position that comes next
	product []float64         // of each round before the position that is fitted
}

const (
	stsDepth  = 16   // positions
	stsRounds = 1024 // remembered
	stsEvery  = 64   // rounds between fits
	stsLeast  = 128  // rounds of a position, for a fit
	stsBins   = 10   // of the calibration error: with more of them, it would be noise
)

// A stsRound is a chain that was verified.
type stsRound struct {
	logit    [stsDepth]float32
	verified int8
	accepted int8
}

// The grid of temperatures, by logarithm: coarse from half to four, then fine
// around the best.
const (
	stsCoarse, stsFine = 0.3, 0.05
	stsLow, stsHigh    = -0.9, 1.5
)

// apply returns the confidence of a depth, calibrated.
func (k *calibration) apply(depth int, confidence float64) float64 {
	if k.rounds == nil || depth > stsDepth || k.inverse[depth-1] == 0 {
		return confidence
	}
	return logistic(logit(confidence) * k.inverse[depth-1])
}

func logit(p float64) float64 {
	p = min(max(p, 1e-6), 1-1e-6)
	return math.Log(p / (1 - p))
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// add remembers a round, and now and then fits a position.
func (k *calibration) add(confidence []float64, accepted int) {
	if k.rounds == nil {
		k.rounds = make([]stsRound, 0, stsRounds)
		k.product = make([]float64, stsRounds)
	}
	r := stsRound{verified: int8(min(len(confidence), stsDepth)), accepted: int8(min(accepted, stsDepth))}
	for i := range r.verified {
		r.logit[i] = float32(logit(confidence[i]))
	}
	if len(k.rounds) < stsRounds {
		k.rounds = append(k.rounds, r)
	} else {
		k.rounds[k.next] = r
		k.next = (k.next + 1) % stsRounds
	}
	if k.since++; k.since >= stsEvery {
		k.since = 0
		if !k.fit(k.fitted) {
			k.fitted = -1 // those behind it have fewer rounds still
		}
		k.fitted = (k.fitted + 1) % stsDepth
	}
}

// fit finds the temperature of a position, from 0, given those before it. It
// returns false if too few rounds verified it. Which rounds did was decided by
// confidences, so what they say of confidences is true of all.
func (k *calibration) fit(position int) bool {
	n := 0
	for i := range k.rounds {
		r := &k.rounds[i]
		if int(r.verified) <= position {
			continue
		}
		n++
		k.product[i] = 1
		for j := range position {
			k.product[i] *= logistic(float64(r.logit[j]) * k.scale(j))
		}
	}
	if n < stsLeast {
		return false
	}
	best, least := 0.0, k.miss(position, 1) // the logarithm of a temperature
	try := func(from, to, by float64) {
		for t := from; t <= to; t += by {
			if e := k.miss(position, math.Exp(-t)); e < least {
				best, least = t, e
			}
		}
	}
	try(stsLow, stsHigh, stsCoarse)
	try(best-stsCoarse+stsFine, best+stsCoarse-stsFine/2, stsFine)
	k.inverse[position] = math.Exp(-best)
	return true
}

func (k *calibration) scale(position int) float64 {
	if k.inverse[position] == 0 {
		return 1
	}
	return k.inverse[position]
}

// miss is the expected calibration error of the probability that a position and
// all before it are accepted, if the position's log-odds are scaled.
func (k *calibration) miss(position int, scale float64) (e float64) {
	var sum, hits [stsBins]float64
	n := 0.0
	for i := range k.rounds {
		r := &k.rounds[i]
		if int(r.verified) <= position {
			continue
		}
		p := k.product[i] * logistic(float64(r.logit[position])*scale)
		b := min(int(p*stsBins), stsBins-1)
		sum[b] += p
		if int(r.accepted) > position {
			hits[b]++
		}
		n++
	}
	for b := range sum {
		e += math.Abs(sum[b] - hits[b])
	}
	return e / n
}
