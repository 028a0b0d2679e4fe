package server

import (
	"net/http"
	"sync"
	"time"
)

// A gate counts the requests for the model, lets in no more than there may be,
// and none once it is closed.
type gate struct {
	most   int
	closed chan struct{} // is closed when the gate is
	empty  chan struct{} // is closed when nobody is inside, and nobody will be

	mu     sync.Mutex
	inside int
}

func newGate(most int) *gate {
	return &gate{most: most, closed: make(chan struct{}), empty: make(chan struct{})}
}

// enter counts a request, until it calls leave, or refuses it.
func (g *gate) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.isClosed():
		return errDraining
	case g.inside >= g.most:
		return errBusy
	}
	g.inside++
	return nil
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside--; g.inside == 0 && g.isClosed() {
		close(g.empty)
	}
}

// close refuses all from now on.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isClosed() {
		return
	}
	close(g.closed)
	if g.inside == 0 {
		close(g.empty)
	}
}

func (g *gate) isClosed() bool {
	select {
	case <-g.closed:
		return true
	default:
		return false
	}
}

func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inside
}

// Why a request for the model is not let in.
var (
	errLoading = &Error{
		Status: http.StatusServiceUnavailable, Type: "server_error", Code: "loading",
		Message: "the model is being loaded", RetryAfter: 5 * time.Second,
	}
	errDraining = &Error{
		Status: http.StatusServiceUnavailable, Type: "server_error", Code: "shutting_down",
		Message: "the server is shutting down", RetryAfter: 5 * time.Second,
	}
	errBusy = &Error{
		Status: http.StatusTooManyRequests, Type: "rate_limit_error", Code: "too_many_requests",
		Message: "as many requests are being served as this server takes at a time", RetryAfter: time.Second,
	}
	errLarge = &Error{
		Status: http.StatusTooManyRequests, Type: "rate_limit_error", Code: "too_many_requests",
		Message: "as many requests of more than 1 MiB are being served as this server takes at a time", RetryAfter: time.Second,
	}
)
