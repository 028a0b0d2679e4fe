package engine

import (
	"math"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, x := range []struct {
		samples     []float64
		median, off float64
	}{
		{[]float64{2, 2, 2, 2, 2}, 2, 0},
		{[]float64{5, 1, 3, 2, 9}, 3, 3 / math.Sqrt(5)},          // 2 and 5 are the quartiles
		{[]float64{8, 1, 2, 4, 3, 7, 5, 6}, 5, 3 / math.Sqrt(8)}, // 3 and 6
	} {
		if m, off := median(x.samples); m != x.median || math.Abs(off-x.off) > 1e-12 {
			t.Errorf("of %v the median is %v ± %v, expected %v ± %v", x.samples, m, off, x.median, x.off)
		}
	}
}

// What a position adds to eight rows more than to one is the rows', as far as it is
// beyond the errors of both; the rest is the sequence's.
func TestSplit(t *testing.T) {
	for _, x := range []struct {
		one, oneErr, more, moreErr float64
		sequence, row              float64
	}{
		{5, 0, 12, 0, 4, 1},
		{5, 1, 12, 0, 4 - 6.0/7, 6.0 / 7},
		{5, 0, 12, 2, 5 - 5.0/7, 5.0 / 7},
		{5, 0, 40, 0, 0, 5}, // rows alone: as much as one of them has
		{1, 0.5, 1, 0.1, 0.5, 0},
		{-1, 0, 3, 0, 0, 0},
		{3, 0, 2, 0, 3, 0},
		{0, 0, 0, 0, 0, 0}, // too few were run
	} {
		a := split(x.one, x.oneErr, x.more, x.moreErr)
		if math.Abs(a.Sequence-x.sequence) > 1e-12 || math.Abs(a.Row-x.row) > 1e-12 {
			t.Errorf("%+v: a sequence has %v and a row %v, expected %v and %v", x, a.Sequence, a.Row, x.sequence, x.row)
		}
	}
}
