package adapt

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

func profiled(t *testing.T, rows []int, took ...time.Duration) *Steps {
	t.Helper()
	s, err := NewSteps(rows, took)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStepsBetweenAndBeyondThePoints(t *testing.T) {
	s := profiled(t, []int{2, 4, 8}, 10*ms, 20*ms, 24*ms)
	for rows, want := range map[int]time.Duration{
		0: 0, 1: 10 * ms, 2: 10 * ms, 3: 15 * ms, 4: 20 * ms, 6: 22 * ms, 8: 24 * ms,
		16: 48 * ms, // in proportion
	} {
		if got := s.Time(rows); (got - want).Abs() > time.Microsecond {
			t.Errorf("%d rows take %v, expected %v", rows, got, want)
		}
	}
}

func TestMoreRowsNeverTakeLessInAProfile(t *testing.T) {
	s := profiled(t, []int{1, 2, 3, 4, 5}, 10*ms, 14*ms, 12*ms, 16*ms, 6*ms)
	// 14 and 12 are 13; then 16 and 6 are 11, with 13 and 13 they are 12.
	for rows, want := range []time.Duration{0, 10 * ms, 12 * ms, 12 * ms, 12 * ms, 12 * ms} {
		if got := s.Time(rows); (got - want).Abs() > time.Microsecond {
			t.Errorf("%d rows take %v, expected %v", rows, got, want)
		}
	}
}

func TestProfilesThatAreNone(t *testing.T) {
	for _, c := range []struct {
		rows []int
		took []time.Duration
		want string
	}{
		{nil, nil, "0 times for 0 numbers of rows"},
		{[]int{1}, nil, "0 times for 1"},
		{[]int{0}, []time.Duration{ms}, "0 rows at 0, expected 1"},
		{[]int{1, 1}, []time.Duration{ms, ms}, "1 rows at 1, expected 2"},
		{[]int{1 << 20}, []time.Duration{ms}, "1048576 rows at 0"},
		{[]int{1, 2}, []time.Duration{ms, 0}, "0s for 2 rows"},
	} {
		if _, err := NewSteps(c.rows, c.took); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, %v: error %v, expected %q", c.rows, c.took, err, c.want)
		}
	}
}

// A machine that is shared makes all steps slower by the same factor, also those of
// which none was seen.
func TestStepsDriftTogether(t *testing.T) {
	s := profiled(t, []int{1, 2, 4, 8}, 10*ms, 11*ms, 12*ms, 20*ms)
	factor := 1.0
	for range 400 {
		factor *= math.Pow(2, 1./400)
		s.Observe(1, time.Duration(factor*float64(10*ms)))
	}
	for rows, want := range map[int]float64{1: 20, 2: 22, 4: 24, 8: 40} {
		if got := s.seconds(rows) * 1000; math.Abs(got/want-1) > 0.05 {
			t.Errorf("%d rows take %.1f ms, expected %.1f", rows, got, want)
		}
	}
}

// Where the profile was wrong, steps of different sizes beside each other say so.
func TestTheShapeIsLearnt(t *testing.T) {
	s := profiled(t, []int{1, 2, 4, 8}, 10*ms, 11*ms, 12*ms, 20*ms)
	for i := range 1000 {
		if i%2 == 0 {
			s.Observe(1, 10*ms)
		} else {
			s.Observe(4, 18*ms)
		}
	}
	for rows, want := range map[int]float64{1: 10, 4: 18} {
		if got := s.seconds(rows) * 1000; math.Abs(got/want-1) > 0.03 {
			t.Errorf("%d rows take %.1f ms, expected %.1f", rows, got, want)
		}
	}
}

// Beyond the profile too steps say what was wrong.
func TestTheShapeIsLearntBeyondTheProfile(t *testing.T) {
	s := profiled(t, []int{1, 8}, 10*ms, 20*ms)
	took := map[int]time.Duration{1: 10 * ms, 8: 20 * ms, 32: 60 * ms} // in proportion the last would be 80
	for range 500 {
		for _, rows := range []int{1, 8, 32} {
			s.Observe(rows, took[rows])
		}
	}
	for rows, want := range took {
		if got := s.seconds(rows); math.Abs(got/want.Seconds()-1) > 0.03 {
			t.Errorf("%d rows take %.1f ms, expected %v", rows, got*1000, want)
		}
	}
}

// A number of rows that was not seen beside those that were is hoped to take
// less than is expected; once it was, both are the same.
func TestWhatIsNotKnownIsHopedFor(t *testing.T) {
	s := profiled(t, []int{1, 16, 32}, 10*ms, 12*ms, 20*ms)
	for range 100 {
		s.Observe(16, 12*ms)
	}
	less := func(rows int) float64 { return 1 - s.hoped(rows)/s.seconds(rows) }
	if a, b := less(16), less(32); a > 1e-6 || b < 0.04 || b > 0.15 {
		t.Errorf("known is %d rows, hoped to take %.4f less; of %d rows %.4f, expected 0.04 to 0.15", 16, a, 32, b)
	}
	for range 30 {
		s.Observe(32, 20*ms)
		s.Observe(16, 12*ms)
	}
	if b := less(32); b > 0.01 {
		t.Errorf("%d rows were seen 30 times and are hoped to take %.4f less", 32, b)
	}
}

// What a tile takes that the profile has not measured is soon known, and changes
// little of what others take.
func TestTilesAreLearnt(t *testing.T) {
	s := profiled(t, []int{8, 12}, 64*ms, 76*ms)
	for range 30 {
		s.Observe(8, 64*ms)
		s.Observe(9, 76*ms)
	}
	for rows, want := range map[int]time.Duration{8: 64 * ms, 9: 76 * ms, 12: 76 * ms} {
		if got := s.Time(rows); math.Abs(got.Seconds()/want.Seconds()-1) > 0.04 {
			t.Errorf("%d rows take %v, expected %v", rows, got, want)
		}
	}
}

// A machine that does something else now and then changes little; one that has
// become slower is believed.
func TestOutliersSayLittle(t *testing.T) {
	s := profiled(t, []int{1, 4}, 10*ms, 12*ms)
	for i := range 200 {
		took := 10 * ms
		if i%20 == 19 {
			took = 100 * ms
		}
		s.Observe(1, took)
		if got := s.seconds(1) * 1000; got > 10.6 {
			t.Fatalf("step %d: a step takes %.2f ms, expected about 10", i, got)
		}
	}
	for range 60 {
		s.Observe(1, 30*ms)
	}
	if got := s.seconds(1) * 1000; math.Abs(got-30) > 1.5 {
		t.Errorf("a step takes %.1f ms, expected 30", got)
	}
}

// What a pass of a drafter takes is known from the first.
func TestPassesAreMeasured(t *testing.T) {
	p := profiled(t, []int{1, 4}, 10*ms, 20*ms).unmeasured(0.1)
	if got := p.Time(4); got != 2*ms {
		t.Errorf("a pass is taken to need %v, expected 2ms", got)
	}
	p.Observe(1, 5*ms)
	if got := p.Time(4); (got - 10*ms).Abs() > 10*time.Microsecond {
		t.Errorf("a pass of four sequences is taken to need %v after one of 5ms for one, expected 10ms", got)
	}
	for range 100 {
		p.Observe(4, 4*ms)
		p.Observe(1, 4*ms)
	}
	for rows, off := range map[int]time.Duration{1: 100 * time.Microsecond, 2: ms / 2, 3: ms / 2, 4: 100 * time.Microsecond} {
		if got := p.Time(rows); (got - 4*ms).Abs() > off {
			t.Errorf("a pass of %d sequences is taken to need %v, expected 4ms", rows, got)
		}
	}
}

func TestGrid(t *testing.T) {
	if got, want := Grid(100), []int{1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 28, 32, 48, 64, 80, 96, 100}; !slices.Equal(got, want) {
		t.Errorf("rows to profile are %v, expected %v", got, want)
	}
	if got := Grid(1); !slices.Equal(got, []int{1}) {
		t.Errorf("rows to profile are %v, expected 1", got)
	}
}

// A number of rows that the profile does not have may begin a tile, which is the less
// of a step the more rows it has.
func TestTilesWeighLessInManyRows(t *testing.T) {
	s := profiled(t, []int{1, 128}, 10*ms, 137*ms)
	for rows, deviation := range map[int]float64{2: 0.08, 31: 0.08, 50: 0.05, 100: 0.025, 128: 0.04} {
		point, _ := s.at(rows)
		if got := math.Sqrt(s.own[point]); math.Abs(got-deviation) > 1e-9 {
			t.Errorf("of %d rows alone the deviation is %v, expected %v", rows, got, deviation)
		}
	}
}
