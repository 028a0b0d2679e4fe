// Package draft has the drafters: what proposes tokens ahead of the target, in
// one form, so that the step loop does not know one from another. A drafter
// decides nothing of what is committed.
package draft

import (
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/spec"
)

// A Sequence is what a drafter may read of a sequence that decodes.
type Sequence struct {
	ID        uint64         // its own until Forget
	Namespace string         // what is learned of one namespace serves no other
	Tokens    []int32        // prompt and output; the last is the anchor, whose row the target has not computed
	Prompt    int            // how many of them are the prompt
	Table     *kvcache.Table // with memory for the anchor and the nodes of a draft behind it
	Row       sample.Row     // of the token after the anchor
}

// An Ask asks for a draft of a sequence.
type Ask struct {
	*Sequence
	Depth int // most tokens of a path, at least 1
	Nodes int // most tokens; Depth for a chain
	// Drawn says that the draft is to be verified by rejection: tokens are drawn
	// with the noise that spec.DraftNoise gives for the key of Row, and
	// Draft.Q is set. Otherwise a token is the sample under the key of its own
	// position, as the target's will be, and at temperature 0 the likeliest.
	Drawn bool
	Draft *spec.Draft // to be filled, in the asker's memory
}

// A Drafter proposes for all sequences of a step at once. It is used by one
// goroutine at a time.
type Drafter interface {
	// Propose fills the drafts of asks; one that stays empty is an answer. more,
	// which may be nil, is asked before each pass over a model, with the depth
	// that the pass drafts, from 1: the drafts then hold what came before. On an
	// error the drafts are of no use.
	Propose(asks []Ask, more func(depth int) bool) error
	// Observe is told of the committed rows of every step of the target, after
	// the tokens that follow them are known.
	Observe(target Target, rows []Observed) error
	// Ended is told of a sequence that has come to its end: what was generated may
	// serve others of its namespace.
	Ended(s *Sequence)
	// Forget drops what is kept of a sequence that has ended or has lost its
	// memory.
	Forget(id uint64)
}

// A Target tells what its last step left of rows.
type Target interface {
	// States is what modules of multi-token prediction read, [len(rows), width],
	// valid until the next call.
	States(rows []int) []float32
}

// Observed are committed rows of the target's last step.
type Observed struct {
	*Sequence
	From int   // position of the first
	Rows []int // of the step, in order of position
}
