package server

import (
	"io"
	"net/http"
	"time"
)

// maxWrite is how much of an answer has to be taken by the client before the
// next deadline.
const maxWrite = 64 << 10

// A response lets go of a client that does not read: each piece of the answer
// has to be taken within stall. Between two pieces there is no deadline.
type response struct {
	http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
	status  int // 0: nothing has been written
}

// Unwrap is for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader notes the status.
func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a piece at a time.
func (w *response) Write(p []byte) (n int, err error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	for {
		piece := p[n:min(n+maxWrite, len(p))]
		w.extend()
		written, err := w.ResponseWriter.Write(piece)
		if n += written; err != nil {
			return n, err
		}
		w.relax()
		if n == len(p) {
			return n, nil
		}
	}
}

// FlushError sends what the library has buffered.
func (w *response) FlushError() error {
	w.extend()
	if err := w.control.Flush(); err != nil {
		return err
	}
	w.relax()
	return nil
}

// Not every http.ResponseWriter has deadlines, those of tests have none: then
// there are none.
func (w *response) extend() { _ = w.control.SetWriteDeadline(time.Now().Add(w.stall)) }
func (w *response) relax()  { _ = w.control.SetWriteDeadline(time.Time{}) }

// finish is called before the library sends what is left. It first reads some of
// a body that nobody has read, which has stall of its own.
func (w *response) finish() { _ = w.control.SetWriteDeadline(time.Now().Add(2 * w.stall)) }

// A body lets go of a client that does not send: some of it has to come within
// stall.
type body struct {
	io.ReadCloser
	control *http.ResponseController
	stall   time.Duration

	large   *gate // for those that are
	n       int   // bytes read
	isLarge bool
}

// Bodies of more than largeBody bytes take many times their size while they are
// read: so many of them are read and answered at a time.
const (
	largeBody   = 1 << 20
	largeBodies = 16
)

// Read reads what has come. At the end there is no deadline any more: from then
// on the library reads to find out when the client leaves.
func (b *body) Read(p []byte) (int, error) {
	b.extend()
	n, err := b.ReadCloser.Read(p)
	if b.n += n; b.n > largeBody && !b.isLarge {
		if b.large.enter() != nil {
			return 0, errLarge
		}
		b.isLarge = true
	}
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// release makes room for another one, if b is large.
func (b *body) release() {
	if b != nil && b.isLarge {
		b.large.leave()
	}
}

func (b *body) extend() { _ = b.control.SetReadDeadline(time.Now().Add(b.stall)) }
