package server

import (
	"net/http"
	"path"
)

// A handler answers a request. An error that it returns before it has written
// anything becomes the response.
type handler func(s *Server, w http.ResponseWriter, r *http.Request) error

// A route is what the server answers.
type route struct {
	method, pattern string
	handle          handler
	key             bool // needs a key, if there are keys
	model           bool // needs the model: is refused until it is loaded
	work            bool // is work: counts as one of Limits.Concurrent, and is refused while the server drains
}

// routes are all there are. Probes and metrics need no key: what asks for them
// has none, and they tell nothing of what clients say.
var routes = []route{
	{method: "GET", pattern: "/health", handle: (*Server).health},
	{method: "GET", pattern: "/ready", handle: (*Server).ready},
	{method: "GET", pattern: "/version", handle: (*Server).version},
	{method: "GET", pattern: "/metrics", handle: (*Server).scrape},
	{method: "GET", pattern: "/debug/requests", handle: (*Server).debugRequests, key: true, model: true},

	{method: "GET", pattern: "/openapi.yaml", handle: (*Server).openAPI},

	{method: "GET", pattern: "/v1/models", handle: (*Server).models, key: true, model: true},
	{method: "GET", pattern: "/v1/models/{id...}", handle: (*Server).model, key: true, model: true},
	{method: "POST", pattern: "/v1/completions", handle: (*Server).completions, key: true, model: true, work: true},
	{method: "POST", pattern: "/v1/chat/completions", handle: (*Server).chatCompletions, key: true, model: true, work: true},
	{method: "POST", pattern: "/v1/responses", handle: (*Server).responses, key: true, model: true, work: true},
	{method: "POST", pattern: "/v1/embeddings", handle: (*Server).embeddings, key: true, model: true, work: true},
	{method: "POST", pattern: "/tokenize", handle: (*Server).tokenize, key: true, model: true, work: true},
	{method: "POST", pattern: "/detokenize", handle: (*Server).detokenize, key: true, model: true, work: true},
	{method: "GET", pattern: "/tokenizer_info", handle: (*Server).tokenizerInfo, key: true, model: true},
}

// mux serves the routes; what is none of them has the answer that says so.
func (s *Server) mux() http.Handler {
	mux := http.NewServeMux()
	methods := map[string]string{}
	for _, rt := range routes {
		mux.Handle(rt.method+" "+rt.pattern, s.handle(rt))
		if methods[rt.pattern] != "" {
			methods[rt.pattern] += ", "
		}
		methods[rt.pattern] += rt.method
	}
	for pattern, allowed := range methods {
		mux.Handle(pattern, s.handle(route{pattern: pattern, handle: func(_ *Server, w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Allow", allowed)
			return &Error{
				Status: http.StatusMethodNotAllowed, Type: "invalid_request_error", Code: "method_not_allowed",
				Message: quote(r.Method) + " is no method of this address, expected " + allowed,
			}
		}}))
	}
	unknown := s.handle(route{pattern: "unknown", handle: func(_ *Server, _ http.ResponseWriter, r *http.Request) error {
		return notFound(r)
	}})
	mux.Handle("/", unknown)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := r.URL.EscapedPath(); p != path.Clean("/"+p) { // the library would send most to another address, past ids and log
			unknown(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func notFound(r *http.Request) *Error {
	return &Error{
		Status: http.StatusNotFound, Type: "not_found_error", Code: "not_found",
		Message: "this server has nothing at " + quote(r.URL.Path),
	}
}
