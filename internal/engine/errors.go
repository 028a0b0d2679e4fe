package engine

import (
	"errors"
	"fmt"

	"github.com/foretoken/foretoken/internal/sched"
)

// ErrClosed ends the requests of an engine that was closed.
var ErrClosed = errors.New("the engine is closed")

// Unservable reports a request that the cache could not hold even if nothing
// else ran.
type Unservable = sched.Unservable

// QueueFull reports that as many requests wait as may.
type QueueFull struct{ Limit int }

func (e *QueueFull) Error() string {
	return fmt.Sprintf("%d requests are waiting already", e.Limit)
}
