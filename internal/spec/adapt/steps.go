package adapt

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Steps knows how long a step of the target takes by the number of rows that
// decode in it. It is profiled at start and refreshed by every step that only
// decodes. As a context grows, or as a machine is shared, all times move
// together: a common scale is learned quickly, and the shape, which says whether
// drafts pay, slowly and only where numbers of rows are seen side by side.
type Steps struct {
	rows  []int     // points, rising: every number of rows where few are, then those of the profile
	shape []float64 // seconds at each of rows if scale is 1, never falling
	index []uint16  // of a number of rows up to the last: the point at or before it
	scale float64
	miss  float64 // mean size of the error of a prediction's logarithm
	usual float64 // mean of the rows of late
	seen  int     // observations, up to settled
}

const (
	scaleRate = 0.1  // of an error's logarithm that the scale takes on
	shapeRate = 0.04 // that the points beside it take on
	settled   = 10   // observations after which these rates hold
	dense     = 128  // rows up to which every number is a point, as tiles make steps anywhere
	mostRows  = 1 << 15
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
	s := &Steps{rows: rows, scale: 1, miss: 0.05, usual: float64(rows[0]), seen: settled}
	least := 1
	for i, r := range rows {
		if r < least || r > mostRows {
			return nil, fmt.Errorf("profile of steps has %d rows at %d, expected %d to %d", r, i, least, mostRows)
		}
		if took[i] <= 0 {
			return nil, fmt.Errorf("profile of steps has a time of %v for %d rows, expected more than none", took[i], r)
		}
		s.shape = append(s.shape, took[i].Seconds())
		least = r + 1
	}
	level(s.shape)
	s.number()
	points, shape := []int(nil), []float64(nil)
	for r := range max(rows[len(rows)-1], dense) + 1 {
		if _, found := slices.BinarySearch(rows, r); found || r > 0 && r <= dense {
			points, shape = append(points, r), append(shape, s.seconds(r))
		}
	}
	s.rows, s.shape = points, shape
	s.number()
	return s, nil
}

// number fills in the index of points.
func (s *Steps) number() {
	s.index = s.index[:0]
	for r := range s.rows[len(s.rows)-1] + 1 {
		at, found := slices.BinarySearch(s.rows, r)
		if !found {
			at = max(at-1, 0)
		}
		s.index = append(s.index, uint16(at))
	}
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
	c.shape = slices.Clone(s.shape)
	c.scale *= share
	c.seen = 0
	return &c
}

// Time returns how long a step of that many rows takes; none takes none.
func (s *Steps) Time(rows int) time.Duration {
	return time.Duration(s.seconds(rows) * float64(time.Second))
}

func (s *Steps) seconds(rows int) float64 {
	if rows <= 0 {
		return 0
	}
	i, share := s.at(rows)
	if i+1 == len(s.rows) {
		return s.scale * s.shape[i] * (1 + share)
	}
	return s.scale * (s.shape[i] + share*(s.shape[i+1]-s.shape[i]))
}

// at returns the point at or before a number of rows, and where between it and
// the next one, from 0 to 1, that number is. Beyond the last point time is
// proportional to rows, and the share is what is added to it; before the first
// it is that of the first.
func (s *Steps) at(rows int) (i int, share float64) {
	if rows >= len(s.index) {
		last := s.rows[len(s.rows)-1]
		return len(s.rows) - 1, float64(rows-last) / float64(last)
	}
	i = int(s.index[rows])
	if rows <= s.rows[i] {
		return i, 0
	}
	return i, float64(rows-s.rows[i]) / float64(s.rows[i+1]-s.rows[i])
}

// Observe learns from a step. A time far from what was expected counts as one
// at the edge of what is usual: a machine that does something else for a moment
// says little. If it goes on, the edge moves out.
func (s *Steps) Observe(rows int, took time.Duration) {
	if rows <= 0 || took <= 0 {
		return
	}
	e := math.Log(took.Seconds() / s.seconds(rows))
	rate := scaleRate
	if s.seen < settled {
		// The first passes are all that is known of the scale.
		s.seen++
		rate = max(rate, 1/float64(s.seen))
		s.miss = max(s.miss, 0.2)
	} else {
		edge := 3*s.miss + 0.02
		s.miss += 0.05 * (min(math.Abs(e), 2*edge) - s.miss)
		e = min(max(e, -edge), edge)
	}
	s.scale *= math.Exp(rate * e)
	apart := float64(rows) - s.usual
	s.usual += scaleRate * apart
	s.bend(rows, shapeRate*min(math.Abs(apart), 1)*e)
}

// bend moves the points beside a number of rows by a share of their time's
// logarithm, and others where the times would fall.
func (s *Steps) bend(rows int, by float64) {
	i, share := s.at(rows)
	s.shape[i] *= math.Exp(by * (1 - min(share, 1)))
	if i+1 < len(s.rows) {
		s.shape[i+1] *= math.Exp(by * share)
	}
	for j := i - 1; j >= 0; j-- {
		s.shape[j] = min(s.shape[j], s.shape[j+1])
	}
	for j := i + 1; j < len(s.rows); j++ {
		s.shape[j] = max(s.shape[j], s.shape[j-1])
	}
}
