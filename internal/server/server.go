// Package server serves a model over HTTP as OpenAI's API: what clients of
// that API send, it answers or refuses with the reason, and drops nothing
// silently.
package server

import (
	"github.com/foretoken/foretoken/internal/engine"
)

// A Server answers the requests of one model.
type Server struct {
	engine *engine.Engine
}
