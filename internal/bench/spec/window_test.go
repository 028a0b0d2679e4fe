package spec

import (
	"testing"
	"time"
)

// Speed is that of the time in which all requests run that are to.
func TestWindow(t *testing.T) {
	w := window{requests: 2}
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	w.add(1, true, at(1))
	w.add(5, false, at(2)) // the other one has not begun
	w.add(2, true, at(3))
	w.add(4, false, at(4))
	w.add(3, true, at(5)) // of one that follows
	w.close(at(6))
	w.add(9, false, at(7))
	w.close(at(8))
	if w.generated != 7 || w.took != 3*time.Second {
		t.Errorf("%d tokens in %v, expected 7 in 3s", w.generated, w.took)
	}
}
