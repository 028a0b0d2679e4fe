package server

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/foretoken/foretoken/internal/chat/value"
	"github.com/foretoken/foretoken/internal/engine"
)

// speculationField says how tokens are drafted ahead of the model for a request: "off",
// or settings. nil: as for all.
type speculationField struct{ *engine.RequestSpeculation }

// speculationSettings are the settings of a speculationField.
type speculationSettings struct {
	Enabled *bool   `json:"enabled"`
	Method  *string `json:"method"`
	Tokens  *int    `json:"num_speculative_tokens"`
}

func (f *speculationField) read(path string, v value.Value) error {
	if v == "off" {
		f.RequestSpeculation = &engine.RequestSpeculation{Off: true}
		return nil
	}
	o, ok := v.(*value.Object)
	if !ok {
		return badRequest(path, `%s is %s, expected "off" or an object, such as {"enabled": false}`, path, kindOf(v))
	}
	var s speculationSettings
	if err := fillStruct(path, o, reflect.ValueOf(&s).Elem()); err != nil {
		return err
	}
	if s == (speculationSettings{}) {
		return nil
	}
	r := &engine.RequestSpeculation{Off: s.Enabled != nil && !*s.Enabled}
	switch {
	case r.Off && (s.Method != nil || s.Tokens != nil):
		return badRequest(path, "%s has a method or a number of tokens, and enabled is false: one will do", path)
	case s.Tokens != nil && *s.Tokens < 1:
		return badRequest(path+".num_speculative_tokens", "%s.num_speculative_tokens is %d, expected 1 or more", path, *s.Tokens)
	}
	set(&r.Method, s.Method)
	set(&r.Tokens, s.Tokens)
	f.RequestSpeculation = r
	return nil
}

// checkSpeculation refuses what asks a server to draft that does not, or by a method
// that it does not have.
func (s *Server) checkSpeculation(f speculationField) error {
	if f.RequestSpeculation == nil || f.Off {
		return nil
	}
	methods := s.engine.Stats().Speculation
	if len(methods) == 0 {
		return badRequest("speculation", `this server does not speculate (--speculative-config); expected "off", or no field speculation`)
	}
	if _, has := methods[f.Method]; f.Method != "" && f.Method != "auto" && !has {
		return badRequest("speculation.method", "speculation.method is %s, expected one that this server drafts with: %s",
			quote(f.Method), strings.Join(slices.Sorted(maps.Keys(methods)), ", "))
	}
	return nil
}

// speculationUsage is what was drafted for a request.
type speculationUsage struct {
	Rounds     uint64    `json:"rounds"`   // in which something was verified
	Drafted    uint64    `json:"drafted"`  // tokens that were verified
	Accepted   uint64    `json:"accepted"` // of them
	Tokens     uint64    `json:"tokens"`   // of the answers that came of rounds, the model's own with them
	Acceptance []float64 `json:"acceptance_per_position"`
	Tau        float64   `json:"tau"` // Tokens of a round
}

// speculationOf is nil where nothing was drafted.
func speculationOf(s *engine.SpeculationStats) *speculationUsage {
	if s.Rounds == 0 {
		return nil
	}
	return &speculationUsage{
		Rounds: s.Rounds, Drafted: s.Drafted, Accepted: s.Accepted, Tokens: s.Tokens, Acceptance: s.Acceptance(), Tau: s.Tau(),
	}
}
