package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// keys are digests of the API keys. What is compared is of one length, and all
// are, so that time tells nothing.
type keys [][sha256.Size]byte

func newKeys(texts []string) (k keys) {
	for _, text := range texts {
		k = append(k, sha256.Sum256([]byte(text)))
	}
	return k
}

// check names the key of a request by its number: the key itself is for no
// log. Without keys, everybody is nobody.
func (k keys) check(r *http.Request) (name string, err error) {
	if len(k) == 0 {
		return "", nil
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	digest := sha256.Sum256([]byte(strings.TrimSpace(token)))
	found := 0
	for i := range k {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(digest[:], k[i][:]), i+1, found)
	}
	switch {
	case token == "" || !strings.EqualFold(scheme, "Bearer"):
		err = unauthorized("this server needs a key: send the header Authorization: Bearer KEY")
	case found == 0:
		err = unauthorized("the key is none of this server's")
	default:
		return fmt.Sprintf("key %d", found), nil
	}
	return "", err
}

func unauthorized(message string) *Error {
	return &Error{Status: http.StatusUnauthorized, Type: "authentication_error", Code: "invalid_api_key", Message: message}
}

// crossOrigin lets pages of the allowed origins read answers (the Fetch
// standard, §3.2). It reports whether that was all there was to answer.
//
// Browsers send simple requests of any page without asking. So that no page of
// the web makes a server work that listens on its reader's own machine, those
// that change something are refused.
func (s *Server) crossOrigin(w http.ResponseWriter, r *http.Request) (answered bool) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	if !slices.Contains(s.Origins, origin) && !slices.Contains(s.Origins, "*") {
		if http.NewCrossOriginProtection().Check(r) == nil {
			return false // a page of this server's own, or a harmless method
		}
		out := &response{ResponseWriter: w, control: http.NewResponseController(w), stall: s.Limits.Stall}
		_, _ = s.limitBody(out, r) // it is refused either way
		s.refuse(out, &Error{
			Status: http.StatusForbidden, Type: "invalid_request_error", Code: "origin_not_allowed",
			Message: "pages of " + quote(origin) + " may not use this server",
		})
		out.finish()
		return true
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "X-Request-Id, Retry-After")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked) // clients send headers of their own, such as X-Stainless-Lang
	}
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}
