package engine

import (
	"fmt"
	"slices"

	"github.com/foretoken/foretoken/internal/kvcache"
)

// A Speculation says how tokens are drafted ahead of the model. The zero value
// drafts nothing. Whatever it says, answers are the model's own.
type Speculation struct {
	// Method is what drafts: ngram (prompt lookup), suffix (a suffix automaton over
	// prompts and answers), draft_model, mtp (the model's own modules of multi-token
	// prediction), or auto, which has suffix and, if there is one, a model; "": nothing.
	Method string
	// Model is what draft_model drafts with: the path of a model with the same
	// tokenizer, self:q4, self:q4_1 or self:q8, the model's own weights rounded, or
	// self:layers=0-5,8, its own layers without the others.
	Model string
	// Tokens is the most that are drafted one after another; 0: what suits the method.
	Tokens int
	// TopK makes the draft of a model a tree: each of the most probable paths goes
	// on with so many tokens (EAGLE-2). 0 and 1: a chain.
	TopK int
	// Nodes is the most tokens of a tree, by default Tokens times TopK.
	Nodes int
	// Tree is the form of a tree: dynamic (""), or static, EAGLE-1's 25 tokens.
	Tree string
	// Verify is the rule: coupled (""), which gives the text that there is without
	// speculation, or rejection or block, which accept more and keep the law of the
	// text. At temperature 0 they are the same.
	Verify string
	// Fixed drafts and verifies Tokens in every step, whether that pays or not.
	Fixed bool
	// Async bounds what is verified by what was best two steps ago.
	Async bool
	// An n-gram that is looked up has LookupMin to LookupMax tokens; 0: 2 and 5.
	LookupMin, LookupMax int
	// Floor is the share of drafted tokens that a model has to get accepted when the
	// engine opens; if it does not, that is logged. 0: 0.1.
	Floor float64

	// Simulate accepts drafts of no meaning with these probabilities, each if those
	// before it are accepted, to measure what speculation would gain: what comes out
	// is not the model's text. SimulateCost is the time of drafting in plain steps
	// of the sequences that are drafted for.
	Simulate     []float64
	SimulateCost float64
}

// The rules of verification.
const (
	coupled   = "coupled"
	rejection = "rejection"
	block     = "block"
)

// mostDrafted bounds the drafted tokens of a sequence in a step: rings can be
// rewound by no more.
const mostDrafted = kvcache.Slack - 1

// check completes o and returns what cannot be meant.
func (o *Speculation) check() error {
	switch {
	case o.Method == "" && len(o.Simulate) > 0:
		o.Method = simulated
	case len(o.Simulate) > 0:
		return fmt.Errorf("simulated acceptances beside speculative method %q: expected either", o.Method)
	case o.Method != "" && !slices.Contains(SpeculationMethods, o.Method):
		return fmt.Errorf("speculative method %q: expected %s, %s, %s, %s or %s", o.Method, ngram, suffix, draftModel, mtp, auto)
	case o.Method == draftModel && o.Model == "":
		return fmt.Errorf("speculative method %s: expected a model, by path or as self:q4 or self:layers=0-5", draftModel)
	case o.Model != "" && o.Method != draftModel && o.Method != auto:
		return fmt.Errorf("speculative model %q: method %q drafts without one", o.Model, o.Method)
	}
	if o.Verify == "" {
		o.Verify = coupled
	}
	if !slices.Contains([]string{coupled, rejection, block}, o.Verify) {
		return fmt.Errorf("speculative verification %q: expected %s, %s or %s", o.Verify, coupled, rejection, block)
	}
	if o.LookupMin == 0 && o.LookupMax == 0 {
		o.LookupMin, o.LookupMax = 2, 5
	}
	o.LookupMin = max(o.LookupMin, 1)
	o.LookupMax = max(o.LookupMax, o.LookupMin)
	for _, f := range []struct {
		name      string
		value     int
		low, high int
	}{
		{"num_speculative_tokens", o.Tokens, 0, mostDrafted},
		{"prompt_lookup_min", o.LookupMin, 1, 64},
		{"prompt_lookup_max", o.LookupMax, 1, 64},
		{"topk", o.TopK, 0, mostDrafted},
		{"tree nodes", o.Nodes, 0, mostDrafted},
		{"simulated acceptances", len(o.Simulate), 0, mostDrafted},
	} {
		if f.value < f.low || f.value > f.high {
			return fmt.Errorf("speculative %s: %d, expected %d to %d", f.name, f.value, f.low, f.high)
		}
	}
	for i, a := range o.Simulate {
		if !(a >= 0 && a <= 1) {
			return fmt.Errorf("simulated acceptance %d is %v, expected 0 to 1", i+1, a)
		}
	}
	if !(o.SimulateCost >= 0 && o.SimulateCost <= 100) {
		return fmt.Errorf("simulated draft cost %v: expected 0 to 100 decoding steps", o.SimulateCost)
	}
	if !(o.Floor >= 0 && o.Floor <= 1) {
		return fmt.Errorf("floor of acceptance %v: expected 0 to 1", o.Floor)
	}
	if o.Floor == 0 {
		o.Floor = 0.1
	}
	return o.checkTree()
}

func (o *Speculation) checkTree() error {
	switch o.Tree {
	case "":
		if o.TopK > 1 {
			o.Tree = dynamicTree
		}
	case dynamicTree:
		o.TopK = max(o.TopK, 2)
	case staticTree:
	default:
		return fmt.Errorf("tree of drafts %q: expected %s or %s", o.Tree, dynamicTree, staticTree)
	}
	if o.Tree == "" {
		return nil
	}
	if o.Model == "" {
		return fmt.Errorf("tree of drafts: expected a draft model, method %q proposes chains", o.Method)
	}
	if o.Verify == block {
		return fmt.Errorf("tree of drafts: block verification takes chains, expected %s or %s", coupled, rejection)
	}
	return nil
}

// The forms of trees.
const (
	dynamicTree = "dynamic"
	staticTree  = "static"
)

// A RequestSpeculation changes for a request what the engine does.
type RequestSpeculation struct {
	Off    bool
	Method string // one of those that the engine has; "" and auto: any
	Tokens int    // the most that are drafted one after another; 0: as the engine does
}

// SpeculationStats count drafts. A round is a step in which at least one drafted
// token of a sequence was verified.
type SpeculationStats struct {
	Rounds   uint64
	Drafted  uint64   // tokens that were verified
	Accepted uint64   // of them
	Tokens   uint64   // that rounds committed: those accepted and, unless the text ended with them, the model's own one after them
	Drafts   []uint64 // rounds that had a draft of at least 1, 2, 3, … tokens one after another
	Accepts  []uint64 // rounds of which so many were accepted, at least
}

// Add adds what t counts.
func (s *SpeculationStats) Add(t SpeculationStats) {
	s.Rounds += t.Rounds
	s.Drafted += t.Drafted
	s.Accepted += t.Accepted
	s.Tokens += t.Tokens
	s.deepen(len(t.Drafts))
	for i := range t.Drafts {
		s.Drafts[i] += t.Drafts[i]
		s.Accepts[i] += t.Accepts[i]
	}
}

// Tau is the mean number of tokens that a round committed, the model's own one
// included; 0 without a round.
func (s *SpeculationStats) Tau() float64 {
	if s.Rounds == 0 {
		return 0
	}
	return float64(s.Tokens) / float64(s.Rounds)
}

// Acceptance is, for the first, second, third … token of a draft, the share of
// rounds in which it was accepted, of those whose draft went so far.
func (s *SpeculationStats) Acceptance() (shares []float64) {
	for i, n := range s.Drafts {
		shares = append(shares, float64(s.Accepts[i])/float64(n))
	}
	return shares
}

// round counts a round that verified nodes drafted tokens, depth of them one after
// another, accepted some and committed so many.
func (s *SpeculationStats) round(nodes, depth, accepted, tokens int) {
	s.Rounds++
	s.Drafted += uint64(nodes)
	s.Accepted += uint64(accepted)
	s.Tokens += uint64(tokens)
	s.deepen(depth)
	for i := range depth {
		s.Drafts[i]++
		if i < accepted {
			s.Accepts[i]++
		}
	}
}

// deepen makes room for drafts of so many tokens one after another.
func (s *SpeculationStats) deepen(depth int) {
	for len(s.Drafts) < depth {
		s.Drafts, s.Accepts = append(s.Drafts, 0), append(s.Accepts, 0)
	}
}

// copy makes s a copy of t, in its own memory.
func (s *SpeculationStats) copy(t *SpeculationStats) {
	drafts, accepts := append(s.Drafts[:0], t.Drafts...), append(s.Accepts[:0], t.Accepts...)
	*s = *t
	s.Drafts, s.Accepts = drafts, accepts
}

// clone returns a copy with memory of its own.
func (s *SpeculationStats) clone() SpeculationStats {
	c := *s
	c.Drafts, c.Accepts = slices.Clone(s.Drafts), slices.Clone(s.Accepts)
	return c
}
