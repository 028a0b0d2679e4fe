// Package spec drafts tokens ahead of the target model and verifies them
// without loss: the text, or its law, is what the target alone would give.
//
// A verification rule is a pure function of a draft, of the target's rows and
// of a source of draws. [Verifier.Match] follows the tokens that the target
// itself would take: greedy decoding, coupled sampling and deterministic trees.
// [Verifier.Rejection] and [Verifier.Block] accept drafts that were sampled, and
// keep the law. Every rule is proved by enumeration: the tests run this same
// code on weights that float64 holds exactly, with a source of draws that
// walks every outcome and adds up its probability as a fraction.
//
// Rows are numbered as in a forward pass that verifies: row 0 is the anchor,
// the last committed token, and row i+1 is node i of the draft. A row's
// distribution is that of the token after it.
package spec

import (
	"fmt"
	"slices"
)

// A Draft is a tree of proposed tokens. Its memory is the drafter's: it is
// valid until the drafter proposes again.
type Draft struct {
	Tree
	// Q[r] is the distribution that the children of row r were drawn from: a
	// chain's token i from Q[i]. Siblings were drawn one after another, in the
	// order of the nodes; a token drawn twice counts once. Where Q has no row r,
	// or one without mass, the children were chosen, not drawn: the choice must
	// then not depend on noise that the verification uses.
	Q []Row
	// Confidence[i] estimates how likely node i is to be accepted if its parent
	// is; nil: not known. It must not depend on the token of node i itself
	// where that was drawn (DSpark: c_k reads x_{k-1}, never x_k), because what
	// is cut by a confidence is cut by what it depends on.
	Confidence []float64
	// Peak[i] is the probability of the likeliest token of the distribution, at
	// temperature 1, that node i was taken from; empty: not known. How often
	// drafts are accepted is learned by it, of the distribution and never of the
	// token.
	Peak []float64
}

// Check returns an error if the draft is not well formed, for a target of that
// many tokens.
func (d *Draft) Check(vocab int) error {
	if err := d.Tree.Check(vocab); err != nil {
		return err
	}
	if len(d.Q) > d.Len()+1 {
		return fmt.Errorf("draft has %d distributions, expected one for each of %d rows at most", len(d.Q), d.Len()+1)
	}
	if c := len(d.Confidence); d.Confidence != nil && c != d.Len() {
		return fmt.Errorf("draft has %d confidences, expected one for each of %d tokens", c, d.Len())
	}
	if c := len(d.Peak); c > 0 && c != d.Len() {
		return fmt.Errorf("draft has %d peaks, expected one for each of %d tokens", c, d.Len())
	}
	for i, p := range d.Confidence {
		if !(p >= 0 && p <= 1) {
			return fmt.Errorf("confidence of draft token %d is %v, expected 0 to 1", i, p)
		}
	}
	for i, p := range d.Peak {
		if !(p >= 0 && p <= 1) {
			return fmt.Errorf("peak of draft token %d is %v, expected 0 to 1", i, p)
		}
	}
	return nil
}

// Truncate keeps the first n nodes.
func (d *Draft) Truncate(n int) {
	d.Tree.Truncate(n)
	d.Q = d.Q[:min(len(d.Q), n+1)]
	if d.Confidence != nil {
		d.Confidence = d.Confidence[:min(len(d.Confidence), n)]
	}
	d.Peak = d.Peak[:min(len(d.Peak), n)]
}

// Keep drops the nodes that are not to be kept. A node that is has its parent
// kept, so that of a chain it is the first ones.
func (d *Draft) Keep(keep []bool) {
	n, kept := d.Len(), 0
	if d.Parents == nil {
		for kept < n && keep[kept] {
			kept++
		}
		d.Truncate(kept)
		return
	}
	var memory [64]int32
	moved := append(memory[:0], make([]int32, n)...) // new number of each node
	for i := range n {
		if !keep[i] {
			continue
		}
		moved[i] = int32(kept)
		d.Tokens[kept] = d.Tokens[i]
		if d.Parents[kept] = d.Parents[i]; d.Parents[kept] >= 0 {
			d.Parents[kept] = moved[d.Parents[kept]]
		}
		if len(d.Confidence) > 0 {
			d.Confidence[kept] = d.Confidence[i]
		}
		if len(d.Peak) > 0 {
			d.Peak[kept] = d.Peak[i]
		}
		// Rows change places, as their memory is the drafter's.
		switch {
		case i+1 < len(d.Q):
			d.Q[kept+1], d.Q[i+1] = d.Q[i+1], d.Q[kept+1]
		case kept+1 < len(d.Q):
			d.Q[kept+1].Total = 0
		}
		kept++
	}
	d.Truncate(kept)
}

// Reset makes the draft an empty tree, chosen, with confidences to come. It
// keeps the memory.
func (d *Draft) Reset() {
	d.Tree.Reset()
	d.Q = d.Q[:0]
	d.Confidence = d.Confidence[:0]
	if d.Confidence == nil {
		d.Confidence = []float64{}
	}
	d.Peak = d.Peak[:0]
}

// Drawn reports whether any token was drawn, not chosen.
func (d *Draft) Drawn() bool {
	return slices.ContainsFunc(d.Q, func(q Row) bool { return q.Total > 0 })
}

// ResetChain is Reset for a chain.
func (d *Draft) ResetChain() {
	d.Reset()
	d.Parents = nil
}

// drawn returns what the children of a row were drawn from, or false if they
// were chosen.
func (d *Draft) drawn(row int) (Row, bool) {
	if row >= len(d.Q) || d.Q[row].Total == 0 {
		return Row{}, false
	}
	return d.Q[row], true
}

// A Target gives the target's distribution after a row, with temperature,
// truncation, penalties and grammar as they are after the row's own path. A
// rule asks for a row at most once, parents first; what it got must stay valid
// until the rule returns.
type Target func(row int) (Row, error)

// A Verdict is what a rule decided.
type Verdict struct {
	Path []int32 // accepted nodes, from the root; valid until the verifier is used again
	Next int32   // the token after them, the target's own
}

// A Verifier holds the working memory of the rules: three rows of its own. It may be used
// for any drafts in any order, by one goroutine at a time.
type Verifier struct {
	path  []int32
	left  [2]Row // what is left of p after a rejection, and after the one before
	rest  Row    // q without the siblings tried
	ratio []ratio
	p     []Row
}
