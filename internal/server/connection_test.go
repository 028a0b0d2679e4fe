package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// deadlines is a connection that remembers the deadlines it has.
type deadlines struct {
	http.ResponseWriter
	read, write time.Time
	atWrite     []time.Time // what write was at each write
	wrote       []int
}

func (d *deadlines) SetReadDeadline(t time.Time) error  { d.read = t; return nil }
func (d *deadlines) SetWriteDeadline(t time.Time) error { d.write = t; return nil }

func (d *deadlines) Write(p []byte) (int, error) {
	d.atWrite, d.wrote = append(d.atWrite, d.write), append(d.wrote, len(p))
	return len(p), nil
}

// While a client has nothing to send or to take, it has all the time there is:
// a deadline that is left would end a request that waits for its turn.
func TestDeadlinesOfConnections(t *testing.T) {
	d := &deadlines{ResponseWriter: httptest.NewRecorder()}
	control := http.NewResponseController(d)
	b := &body{ReadCloser: io.NopCloser(strings.NewReader("a body")), control: control, stall: time.Minute}
	p := make([]byte, 6)
	if _, err := b.Read(p); err != nil || d.read.IsZero() {
		t.Errorf("within the body: %v, deadline %v, want one", err, d.read)
	}
	if _, err := b.Read(p); err != io.EOF || !d.read.IsZero() {
		t.Errorf("behind the body: %v, deadline %v, want none", err, d.read)
	}

	w := &response{ResponseWriter: d, control: control, stall: time.Minute}
	if n, err := w.Write(make([]byte, 2*maxWrite+1)); n != 2*maxWrite+1 || err != nil {
		t.Errorf("Write: %d, %v", n, err)
	}
	if len(d.wrote) != 3 || d.wrote[0] != maxWrite || d.wrote[2] != 1 {
		t.Errorf("wrote pieces of %v bytes", d.wrote)
	}
	for i, at := range d.atWrite {
		if at.IsZero() || i > 0 && !at.After(d.atWrite[i-1]) {
			t.Errorf("piece %d has the deadline %v after %v, want one of its own", i, at, d.atWrite[max(i-1, 0)])
		}
	}
	if !d.write.IsZero() {
		t.Errorf("after a write the deadline is %v, want none", d.write)
	}
	if w.finish(); d.write.IsZero() {
		t.Error("the library has no deadline for what is left")
	}
}
