package kernel

import (
	"runtime"
	"time"
)

const (
	// spinTime has to cover what a decode step does between two jobs and, a
	// little, what it takes to wake a sleeper: a pool that was once asleep
	// finds together only if those awake still spin when the others come.
	spinTime = 100 * time.Microsecond
	// pausesPerLook is how many pauses, of 10 to 50 ns each, lie between two
	// looks at the clock.
	pausesPerLook = 16
	// After vainSpins spins in vain, 2 waits do not spin, then 4 and so on
	// up to 64, until one succeeds.
	vainSpins  = 3
	maxDoubled = 6
)

// A spinner is one party's way of waiting for the others: it spins for a short
// time, and less and less often when that is in vain. It is in vain on a
// machine that others use too, where spinning may even hold up what it waits
// for, since both want the same processor.
type spinner struct {
	parties int
	crowded bool // there are fewer processors than parties: spinning would keep them from some
	vain    int  // spins in vain, in a row
	skip    int  // waits that will not spin
}

func newSpinner(parties int) spinner {
	return spinner{parties: parties, crowded: runtime.GOMAXPROCS(0) < parties}
}

// until returns true when ready does, or false when the caller had better
// sleep.
func (s *spinner) until(ready func() bool) bool {
	if ready() {
		return true
	}
	switch {
	case s.crowded:
	case s.skip > 0:
		s.skip--
	case spin(ready):
		s.vain = 0
		return true
	default:
		s.vain++
		if s.vain >= vainSpins {
			s.skip = 1 << min(s.vain-vainSpins+1, maxDoubled)
		}
	}
	// Those who sleep have the time to ask.
	s.crowded = runtime.GOMAXPROCS(0) < s.parties
	return false
}

// spin returns true when ready does, or false after spinTime.
func spin(ready func() bool) bool {
	for start := time.Duration(-1); ; {
		for range pausesPerLook {
			pause()
			if ready() {
				return true
			}
		}
		now := time.Since(started)
		if start < 0 {
			start = now
		}
		if now-start >= spinTime {
			return false
		}
	}
}

// started is the zero of the clock that spins read: time.Since reads the
// monotonic clock alone.
var started = time.Now()
