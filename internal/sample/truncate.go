package sample

import (
	"math"
	"math/bits"
	"slices"

	"github.com/foretoken/foretoken/internal/kernel"
)

// Truncations keep the first tokens of an order: by logit (min-p, top-k,
// top-p) or by typicality. Ties go to the lower token id. Nothing is sorted:
// a radix selection finds where the order is cut in time linear in the
// vocabulary, whatever the values.

// truncate applies the truncations of p to a whole row. The candidates left
// are in s.
func (s *Sampler) truncate(d Dist, p *Params) Dist {
	if p.MinP > 0 {
		// p(t)/p(best) >= min-p, as logits.
		d = s.gather(d, s.atLeast(d, float32Above(float64(d.Max)+math.Log(float64(p.MinP)))))
	}
	if p.TopK > 0 && p.TopK < len(d.X) {
		d = s.topK(d, p.TopK)
	}
	if p.TopP < 1 {
		d = s.topP(d, float64(p.TopP))
	}
	if p.TypicalP < 1 {
		total := s.masses(d)
		s.keysByTypicality(d, total)
		d = s.keep(d, s.prefix(s.mass, float64(p.TypicalP)*total))
	}
	return d
}

// topK keeps the first k candidates, fewer than there are.
func (s *Sampler) topK(d Dist, k int) Dist {
	if d.IDs == nil && k <= len(d.X)/kernel.PeakGroup {
		n := s.atLeast(d, s.peakFloor(d, k))
		if d = s.gather(d, n); n == k {
			return d
		}
	}
	s.keysByLogit(d)
	return s.keep(d, s.prefix(nil, float64(k)))
}

// peakFloor returns the k-th greatest peak of a whole row's groups. It is not
// above the k-th greatest logit, and not far below it.
func (s *Sampler) peakFloor(d Dist, k int) float32 {
	s.peaks = resize(s.peaks, (len(d.X)+kernel.PeakGroup-1)/kernel.PeakGroup)
	kernel.Peaks(s.peaks, d.X)
	s.keysByLogit(Dist{X: s.peaks})
	return s.peaks[slices.Index(s.keys, s.prefix(nil, float64(k)).key)]
}

// topP keeps the fewest candidates that hold a share p of the mass.
func (s *Sampler) topP(d Dist, p float64) Dist {
	if d.IDs == nil {
		if nucleus, ok := s.nucleus(d, p); ok {
			return nucleus
		}
	}
	s.keysByLogit(d)
	total := s.masses(d)
	return s.keep(d, s.prefix(s.mass, p*total))
}

// massError bounds the relative error of kernel.ExpSum over a row: a term
// exp(u) with u > -25 has one below 25·2⁻²⁴ + 2e-7, the others hold no mass to
// speak of.
const massError = 2e-6

// nucleus is topP for a whole row, where its result is the same for every mass
// that the row may have, by what ExpSum says of it, and is within few tokens.
func (s *Sampler) nucleus(d Dist, p float64) (Dist, bool) {
	total := kernel.ExpSum(d.X, d.Max)
	least, most := p*total*(1-massError), p*total*(1+massError)
	// The peaks of an eighth of the groups usually reach down far enough. Tokens
	// below the second floor surely have at most half of the mass beyond p.
	floors := [...]float32{
		s.peakFloor(d, 1+len(d.X)/kernel.PeakGroup/8),
		float32(float64(d.Max) + math.Log((1-p)*total/float64(2*len(d.X)))),
	}
	for _, floor := range floors {
		n := s.atLeast(d, floor)
		if n > len(d.X)/8 {
			continue
		}
		few := s.gather(d, n)
		if s.masses(few) < most {
			continue
		}
		s.keysByLogit(few)
		c := s.prefix(s.mass, least)
		if c != s.prefix(s.mass, most) {
			break
		}
		return s.keep(few, c), true
	}
	return Dist{}, false
}

// atLeast sets s.set to the tokens of a whole row whose logits are not below
// floor, and returns how many they are.
func (s *Sampler) atLeast(d Dist, floor float32) (n int) {
	s.set = resize(s.set, (len(d.X)+63)/64)
	kernel.AtLeast(s.set, d.X, floor)
	for _, word := range s.set {
		n += bits.OnesCount64(word)
	}
	return n
}

// gather moves the n tokens in s.set to s.
func (s *Sampler) gather(d Dist, n int) Dist {
	s.ids, s.x = resize(s.ids, n), resize(s.x, n)
	at := 0
	for w, word := range s.set {
		for ; word != 0; word &= word - 1 {
			i := 64*w + bits.TrailingZeros64(word)
			s.ids[at], s.x[at] = int32(i), d.X[i]
			at++
		}
	}
	return Dist{IDs: s.ids, X: s.x, Max: d.Max}
}

// descending maps floats (not NaN) to integers in the opposite order.
func descending(x float32) uint32 {
	b := math.Float32bits(x)
	if x == 0 { // -0 and 0 are a tie
		b = 0
	}
	// Positive: flip all but the sign bit. Negative: they descend already.
	return b ^ (^uint32(int32(b)>>31) &^ (1 << 31))
}

// float32Above returns the least float32 that is not below x.
func float32Above(x float64) float32 {
	f := float32(x)
	if float64(f) < x {
		f = math.Nextafter32(f, float32(math.Inf(1)))
	}
	return f
}

func (s *Sampler) keysByLogit(d Dist) {
	s.keys = resize(s.keys, len(d.X))
	for i, v := range d.X {
		s.keys[i] = descending(v)
	}
}

// keysByTypicality orders by |surprise - entropy| (Meister et al. 2023, eq. 10):
// the tokens whose information is nearest to what the distribution lets expect.
// masses must hold those of d, which sum to total.
func (s *Sampler) keysByTypicality(d Dist, total float64) {
	logTotal := math.Log(total)
	surprise := func(v float32) float64 { return logTotal - (float64(v) - float64(d.Max)) }
	var entropy float64
	for i, m := range s.mass {
		if m > 0 {
			entropy += float64(m / total * surprise(d.X[i]))
		}
	}
	s.keys = resize(s.keys, len(d.X))
	for i, v := range d.X {
		s.keys[i] = math.Float32bits(float32(math.Abs(surprise(v) - entropy)))
	}
}

// faint is the distance from the greatest logit at which a probability (below
// 1e-304) is taken as zero.
const faint = -700

// masses sets s.mass to exp(x - max) and returns the sum.
func (s *Sampler) masses(d Dist) (total float64) {
	s.mass = resize(s.mass, len(d.X))
	return d.Weights(s.mass)
}

// A cut keeps keys below key, and the first ties of those that equal it.
type cut struct {
	key  uint32
	ties int
}

// keep moves the candidates that c keeps to s. d may be the whole row or the
// candidates in s already.
func (s *Sampler) keep(d Dist, c cut) Dist {
	ids, x := s.ids[:0], s.x[:0]
	if d.IDs == nil { // the row is the source and stays as it is
		s.ids, s.x = resize(s.ids, len(d.X)), resize(s.x, len(d.X))
		ids, x = s.ids[:0], s.x[:0]
	}
	for i, k := range s.keys {
		if k > c.key {
			continue
		}
		if k == c.key {
			if c.ties == 0 {
				continue
			}
			c.ties--
		}
		ids, x = append(ids, d.token(i)), append(x, d.X[i])
	}
	s.ids, s.x = ids, x
	return Dist{IDs: ids, X: x, Max: slices.Max(x)}
}

// prefix returns the cut after the fewest candidates, in the order of (key,
// index), whose masses sum to target; with nil masses each counts one. It is a
// radix selection over the three digits of a key, from the top: candidates with
// a digit below the crossing one are in, those with the crossing one are refined.
func (s *Sampler) prefix(mass []float64, target float64) cut {
	var sums [1 << 11]float64
	if mass == nil {
		for _, k := range s.keys {
			sums[k>>21]++
		}
	} else {
		for i, k := range s.keys {
			sums[k>>21] += mass[i]
		}
	}
	high, target := crossing(&sums, target)
	tied := s.tied[:0]
	for i, k := range s.keys {
		if k>>21 == high {
			tied = append(tied, int32(i))
		}
	}
	s.tied = tied

	of := func(i int32) float64 {
		if mass == nil {
			return 1
		}
		return mass[i]
	}
	for _, digit := range [...]struct{ shift, bits int }{{10, 11}, {0, 10}} {
		clear(sums[:])
		for _, i := range tied {
			sums[s.keys[i]>>digit.shift&(1<<digit.bits-1)] += of(i)
		}
		var low uint32
		low, target = crossing(&sums, target)
		high = high<<digit.bits | low
		tied = slices.DeleteFunc(tied, func(i int32) bool { return s.keys[i]>>digit.shift != high })
	}
	c := cut{key: high}
	for sum := 0.0; c.ties < len(tied) && sum < target; c.ties++ {
		sum += of(tied[c.ties])
	}
	return c
}

// crossing returns the digit at which the running sum reaches target, and what
// of target is left for it. Rounding may put target just above the sum of all:
// then it is the last digit with any mass.
func crossing(sums *[1 << 11]float64, target float64) (digit uint32, rest float64) {
	sum := 0.0
	for d, m := range sums {
		if m > 0 {
			digit, rest = uint32(d), target-sum
		}
		if sum += m; sum >= target {
			break
		}
	}
	return digit, rest
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
