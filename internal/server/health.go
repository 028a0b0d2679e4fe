package server

import "net/http"

// health is GET /health: the process lives.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) error {
	w.WriteHeader(http.StatusOK)
	return nil
}

// ready is GET /ready: the model is here, and requests are taken.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) error {
	switch {
	case s.gate.isClosed():
		return errDraining
	case !s.loaded.Load():
		return errLoading
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// version is GET /version.
func (s *Server) version(w http.ResponseWriter, _ *http.Request) error {
	return respond(w, versionBody{s.Version})
}

type versionBody struct {
	Version string `json:"version"`
}
