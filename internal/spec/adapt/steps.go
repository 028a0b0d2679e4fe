package adapt

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Steps knows how long a step of the target takes by the number of rows that
// decode in it and the context that they read. It is profiled at start and
// refreshed by every step that only decodes.
//
// How far the logarithm of a time is from that of the profile is learned by a
// Kalman filter. It is the sum of what is off at the profile's own numbers of
// rows, between which it is interpolated, and of what is off for that number
// alone. As a machine is shared, all times move together; those of like numbers of
// rows are off alike, as the profile's noise and the arithmetic's speed are; and a
// tile that is full or begun shows in one number only.
type Steps struct {
	Attention Attention // what contexts add to the profile

	rows  []int     // points, rising: every number of rows where few are, then those of the profile
	index []uint16  // of a number of rows up to the last: the point at or before it
	base  []float64 // of each point: its seconds by the profile
	knot  []int     // the profile's number of rows at or before it
	share []float64 // and how far from there to the next one it is, from 0 to 1
	took  []float64 // seconds; see time
	hope  []float64 // seconds less hope deviations
	fresh []uint64  // seen, when took and hope were computed
	seen  uint64    // steps, and one; more as contexts change
	last  int       // point that was seen last

	reads attended // by attention, in the step at hand

	// The state is what is off at each knot and then, of each point that was seen,
	// its own. The own of all others is apart from the rest.
	off    []float64
	cov    [][]float64 // of the state
	before []float64   // that of the knots after a profile: forgetting draws it back there
	knots  int
	place  []int     // of each point's own in the state; 0: it was not seen
	own    []float64 // variance of each point's own before it is
	with   []float64 // covariance of the state with what is off at the point that was seen last
	miss   float64   // mean size of the error of a prediction's logarithm
}

const (
	commonVariance = 0.2 * 0.2   // of logarithms, after the profile: of all times together
	likeVariance   = 0.05 * 0.05 // of like numbers of rows
	like           = 0.7         // distance of logarithms of rows at which they are no longer alike
	ownVariance    = 0.04 * 0.04 // of a number of rows alone, if the profile has it
	tileVariance   = 0.08 * 0.08 // and at most if it lies between two of the profile's, where
	tileRows       = 2.5         // is the deviation, in rows: a tile that is begun takes as long whatever is in it
	anyVariance    = 4 * 4       // of all times together, if none was measured
	wander         = 3e-5        // variance that all times together gain from step to step,
	wanderNoise    = 0.01        // and this share of the noise's
	likeWander     = 2e-6        // and those of like numbers of rows: what is not visited is hoped for again, in the end more than at first
	forget         = 3e-4        // of what was seen, from step to step
	leastMiss      = 0.005       // no step is as exact
	hope           = 1           // deviations that a number of rows is given for being tried
	dense          = 128         // rows up to which every number is a point, as tiles make steps anywhere
	mostRows       = 1 << 15
)

// Grid returns the numbers of rows to profile, up to most: close where a tile
// more or less shows, then farther apart.
func Grid(most int) (rows []int) {
	for r := 1; r < most; {
		rows = append(rows, r)
		switch {
		case r < 8:
			r++
		case r < 32:
			r += 4
		case r < 128:
			r += 16
		default:
			r += r / 4
		}
	}
	return append(rows, most)
}

// NewSteps returns the table of a profile: took[i] is the time of a step of
// rows[i] rows, which rise. Where more rows took less time, that was noise, and
// both are taken to need their mean.
func NewSteps(rows []int, took []time.Duration) (*Steps, error) {
	if len(rows) == 0 || len(rows) != len(took) {
		return nil, fmt.Errorf("profile of steps has %d times for %d numbers of rows, expected as many, at least one", len(took), len(rows))
	}
	profile := make([]float64, len(rows))
	least := 1
	for i, r := range rows {
		if r < least || r > mostRows {
			return nil, fmt.Errorf("profile of steps has %d rows at %d, expected %d to %d", r, i, least, mostRows)
		}
		if took[i] <= 0 {
			return nil, fmt.Errorf("profile of steps has a time of %v for %d rows, expected more than none", took[i], r)
		}
		profile[i] = took[i].Seconds()
		least = r + 1
	}
	level(profile)
	s := &Steps{knots: len(rows), miss: 0.05}
	s.points(rows, profile)
	for _, a := range rows {
		row := make([]float64, 0, 2*s.knots)
		for _, b := range rows {
			apart := math.Abs(math.Log(float64(a) / float64(b)))
			row = append(row, commonVariance+likeVariance*math.Exp(-apart/like))
		}
		s.before = append(s.before, row...)
		s.cov = append(s.cov, row)
	}
	s.off, s.with = make([]float64, s.knots), make([]float64, s.knots)
	s.place = make([]int, len(s.rows))
	s.took, s.hope, s.fresh = make([]float64, len(s.rows)), make([]float64, len(s.rows)), make([]uint64, len(s.rows))
	s.join(0)
	s.saw(0)
	return s, nil
}

// join takes a point's own into the state.
func (s *Steps) join(point int) {
	if s.place[point] > 0 {
		return
	}
	s.place[point] = len(s.off)
	s.off, s.with = append(s.off, 0), append(s.with, 0)
	for i := range s.cov {
		s.cov[i] = append(s.cov[i], 0)
	}
	row := make([]float64, len(s.off), 2*len(s.off))
	row[len(row)-1] = s.own[point]
	s.cov = append(s.cov, row)
}

// points sets the points, by the seconds of a profile.
func (s *Steps) points(rows []int, profile []float64) {
	last := len(rows) - 1
	for r := 1; r <= max(rows[last], dense); r++ {
		k, found := slices.BinarySearch(rows, r)
		share, seconds := 0.0, profile[min(k, last)]
		variance := min(tileVariance, tileRows/float64(r)*tileRows/float64(r))
		switch {
		case found:
			variance = ownVariance
		case r > dense:
			continue
		case k > last:
			k, seconds = last, profile[last]*float64(r)/float64(rows[last])
		case k > 0:
			k--
			share = float64(r-rows[k]) / float64(rows[k+1]-rows[k])
			seconds = profile[k] + share*(profile[k+1]-profile[k])
		}
		s.rows, s.base = append(s.rows, r), append(s.base, seconds)
		s.knot, s.share = append(s.knot, k), append(s.share, share)
		s.own = append(s.own, variance)
	}
	for r := range s.rows[len(s.rows)-1] + 1 {
		at, found := slices.BinarySearch(s.rows, r)
		if !found {
			at = max(at-1, 0)
		}
		s.index = append(s.index, uint16(at))
	}
}

// of reads what is off at a point, or its covariance with something, from the
// state's.
func (s *Steps) of(x []float64, point int) float64 {
	k, b := s.knot[point], s.share[point]
	y := x[k]
	if b > 0 {
		y += b * (x[k+1] - x[k])
	}
	if at := s.place[point]; at > 0 {
		y += x[at]
	}
	return y
}

// variance returns that of what is off at a point.
func (s *Steps) variance(point int) float64 {
	k, b := s.knot[point], s.share[point]
	v := s.of(s.cov[k], point)
	if b > 0 {
		v += b * (s.of(s.cov[k+1], point) - v)
	}
	if at := s.place[point]; at > 0 {
		return v + s.of(s.cov[at], point)
	}
	return v + s.own[point]
}

// covariance sets s.with to that of the state with what is off at a point that
// has joined it.
func (s *Steps) covariance(point int) {
	for i, row := range s.cov {
		s.with[i] = s.of(row, point)
	}
}

// time computes the times of a point, if they are not those of what was seen
// last.
func (s *Steps) time(point int) {
	if s.fresh[point] == s.seen {
		return
	}
	s.fresh[point] = s.seen
	t := s.profiled(point) * math.Exp(s.of(s.off, point))
	apart := s.variance(point) + s.of(s.with, s.last) - 2*s.of(s.with, point)
	s.took[point], s.hope[point] = t, t*math.Exp(-hope*math.Sqrt(max(apart, 0)))
}

// profiled is what the step at hand takes with a point's rows, by the profile.
func (s *Steps) profiled(point int) float64 {
	return s.base[point] + s.reads.step + float64(s.rows[point])*s.reads.row
}

// saw is called when the state has changed by what was seen at a point.
func (s *Steps) saw(point int) {
	s.last = point
	s.seen++
	s.covariance(point)
}

// level makes times the nearest that never fall: runs that do get their mean.
func level(t []float64) {
	for end := range t {
		sum, start := t[end], end
		for start > 0 && t[start-1] > sum/float64(end-start+1) {
			start--
			sum += t[start]
		}
		for i := start; i <= end; i++ {
			t[i] = sum / float64(end-start+1)
		}
	}
}

// unmeasured returns a table for passes over another model: of the shape of s
// and that share of its time, until the first pass says what they take.
func (s *Steps) unmeasured(share float64) *Steps {
	c := *s
	c.Attention, c.reads = Attention{}, attended{}
	c.base = slices.Clone(s.base)
	for i := range c.base {
		c.base[i] *= share
	}
	c.off, c.cov, c.place = slices.Clone(s.off), slices.Clone(s.cov), slices.Clone(s.place)
	for i, row := range s.cov {
		c.cov[i] = slices.Clone(row)
		if i < c.knots {
			for j := range c.knots {
				c.cov[i][j] += anyVariance
			}
		}
	}
	c.took, c.hope, c.fresh, c.with = slices.Clone(s.took), slices.Clone(s.hope), slices.Clone(s.fresh), slices.Clone(s.with)
	c.saw(0)
	return &c
}

// Time returns how long a step of that many rows takes; none takes none. Like all
// methods it is for one goroutine at a time: times are computed as they are asked
// for.
func (s *Steps) Time(rows int) time.Duration {
	return time.Duration(s.seconds(rows) * float64(time.Second))
}

func (s *Steps) seconds(rows int) float64 { return s.between(s.took, rows) }

// hoped is less than seconds for numbers of rows that are not known well: they
// are worth a try.
func (s *Steps) hoped(rows int) float64 { return s.between(s.hope, rows) }

// between reads the times of points.
func (s *Steps) between(times []float64, rows int) float64 {
	if rows <= 0 {
		return 0
	}
	i, share := s.at(rows)
	s.time(i)
	switch {
	case i+1 == len(s.rows):
		// Rows add in proportion, but nothing to what sequences read.
		return times[i] * (1 + share*(1-s.reads.step/s.profiled(i)))
	case share > 0:
		s.time(i + 1)
		return times[i] + share*(times[i+1]-times[i])
	}
	return times[i]
}

// at returns the point at or before a number of rows, and where between it and
// the next one, from 0 to 1, that number is. Beyond the last point time is
// proportional to rows, and the share is what is added to it.
func (s *Steps) at(rows int) (i int, share float64) {
	if rows >= len(s.index) {
		last := s.rows[len(s.rows)-1]
		return len(s.rows) - 1, float64(rows-last) / float64(last)
	}
	i = int(s.index[rows])
	if rows == s.rows[i] {
		return i, 0
	}
	return i, float64(rows-s.rows[i]) / float64(s.rows[i+1]-s.rows[i])
}

// Observe learns from a step. A time far from what was expected counts as one
// at the edge of what is usual: a machine that does something else for a moment
// says little. If it goes on, the edge moves out. Beyond the last point the table
// is a guess, and what is wrong with it says nothing of the points.
func (s *Steps) Observe(rows int, took time.Duration) {
	if rows <= 0 || took <= 0 || rows > s.rows[len(s.rows)-1] {
		return
	}
	point, share := s.at(rows)
	expected := s.profiled(point)
	if share > 0 {
		expected += share * (s.profiled(point+1) - expected)
		if share > 0.5 {
			point++
		}
	}
	s.join(point)
	s.covariance(point)
	variance := s.of(s.with, point)
	e := math.Log(took.Seconds()/expected) - s.of(s.off, point)
	noise := 1.5 * s.miss * s.miss
	edge := 3 * math.Sqrt(variance+noise)
	// What an error says of the noise is the noise's share of it.
	size := min(math.Abs(e), 2*edge) * math.Sqrt(noise/(variance+noise))
	s.miss = max(s.miss+0.05*(size-s.miss), leastMiss)
	e = min(max(e, -edge), edge)

	all := variance + noise
	for i, row := range s.cov {
		gain := s.with[i] / all
		s.off[i] += gain * e
		for j, w := range s.with {
			row[j] -= gain * w
		}
	}
	// What is a number's own is its tiles', which stay: knots alone forget.
	for i, row := range s.cov[:s.knots] {
		before := s.before[i*s.knots:]
		for j := range s.knots {
			alike := (before[j] - commonVariance) / likeVariance
			row[j] += forget*(before[j]-row[j]) + wander + wanderNoise*noise + likeWander*alike
		}
	}
	s.saw(point)
}
