package spec

import "time"

// A window is the time that speed is taken in, in which as many requests run as are
// to: from when so many have begun until one ends that no other follows. Before and
// after it there are fewer, which are slower, or gain more, than what is measured, and
// prompts that nothing decodes beside.
type window struct {
	requests  int // that run at a time
	begun     int
	from      time.Time
	generated int // tokens
	took      time.Duration
	closed    bool
}

// add counts tokens of a request that come then, the first ones or others.
func (w *window) add(tokens int, first bool, then time.Time) {
	switch {
	case w.closed:
	case w.begun >= w.requests:
		w.generated += tokens
	case first:
		if w.begun++; w.begun == w.requests {
			w.from = then
		}
	}
}

// close ends the window, the first time that it is called.
func (w *window) close(then time.Time) {
	if !w.closed {
		w.took, w.closed = then.Sub(w.from), true
	}
}
