package kernel

import (
	"runtime"
	"testing"
)

func TestSpinnerSeesWhatComes(t *testing.T) {
	s := newSpinner(1)
	for _, after := range []int{0, 1, 10} {
		n := 0
		if !s.until(func() bool { n++; return n > after }) {
			t.Errorf("gave up on what came at look %d", after+1)
		}
	}
}

// Spins end, and when they end in vain again and again, they become rare;
// one success restores them.
func TestSpinnerGivesUp(t *testing.T) {
	s := newSpinner(1)
	spins := func(waits int) (n int) {
		for range waits {
			looks := 0
			if s.until(func() bool { looks++; return false }) {
				t.Fatal("saw what never came")
			}
			if looks > 1 {
				n++
			}
		}
		return n
	}
	if got := spins(3); got != 3 {
		t.Errorf("%d of the first 3 waits spun, want all", got)
	}
	if got := spins(1000); got < 10 || got > 30 {
		t.Errorf("%d of 1000 waits in vain spun, want about one in 65", got)
	}
	for s.skip > 0 {
		spins(1)
	}
	looks := 0
	if !s.until(func() bool { looks++; return looks > 5 }) {
		t.Error("did not spin when its turn had come")
	}
	if got := spins(3); got != 3 {
		t.Errorf("after a success %d of 3 waits spun, want all", got)
	}
}

// More parties than processors take turns: one that spins keeps another from
// what it waits for.
func TestSpinnerLeavesProcessorsToTheOthers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for parties, want := range map[int]int{2: 2, 3: 1} {
		s := newSpinner(parties)
		looks := 0
		s.until(func() bool { looks++; return looks == 2 })
		if looks != want {
			t.Errorf("%d parties on 2 processors looked %d times, want %d", parties, looks, want)
		}
	}
	s := newSpinner(3)
	runtime.GOMAXPROCS(3)
	s.until(func() bool { return false })
	looks := 0
	if s.until(func() bool { looks++; return looks == 2 }); looks != 2 {
		t.Error("does not notice that there are enough processors now")
	}
}
