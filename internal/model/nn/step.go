// Package nn has the parts that all model families are built from: the step
// and its state, linear layers, norms, rotary embeddings and the weight
// loader. Families and attention designs sit above it.
package nn

import (
	"slices"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
)

// A block of attention is a page of the cache.
var _ [kernel.KVBlock]struct{} = [kvcache.PageSize]struct{}{}

// A Step is one forward of the model: a ragged list of rows, the rows of a
// span belonging to one sequence. Prefill, a chunk of it and decoding are all
// steps that differ in the number of rows.
type Step struct {
	Tokens    []int32 // [rows]
	Positions []int32 // [rows]
	Seqs      []int32 // [rows], index of the row's span
	Spans     []Span
}

// A Span is the rows [From, To) of one sequence, at consecutive positions.
// Table has memory for all of them.
type Span struct {
	From, To int
	Table    *kvcache.Table
}

// Reset empties s and keeps its memory.
func (s *Step) Reset() {
	s.Tokens, s.Positions, s.Seqs, s.Spans = s.Tokens[:0], s.Positions[:0], s.Seqs[:0], s.Spans[:0]
}

// Add appends a span of tokens whose first has position pos.
func (s *Step) Add(t *kvcache.Table, pos int, tokens []int32) {
	from := len(s.Tokens)
	for i, token := range tokens {
		s.Tokens = append(s.Tokens, token)
		s.Positions = append(s.Positions, int32(pos+i))
		s.Seqs = append(s.Seqs, int32(len(s.Spans)))
	}
	s.Spans = append(s.Spans, Span{From: from, To: len(s.Tokens), Table: t})
}

// Rows is the number of rows.
func (s *Step) Rows() int { return len(s.Tokens) }

// State is what one rank carries through a step: the residual stream, the
// workers, the cache and a workspace.
type State struct {
	X     []float32 // [rows, hidden], the residual stream
	Pool  *kernel.Pool
	Cache *kvcache.Pool

	view  kvcache.View
	ropes []angles
	arena []float32
	used  int
}

// angles returns the place of r's angles.
func (st *State) angles(r *Rope) *angles {
	i := slices.IndexFunc(st.ropes, func(a angles) bool { return a.rope == r })
	if i < 0 {
		i = len(st.ropes)
		st.ropes = append(st.ropes, angles{rope: r})
	}
	return &st.ropes[i]
}

// Begin readies st for step.
func (st *State) Begin(step *Step, hidden int) {
	st.used = 0
	st.X = st.Take(step.Rows() * hidden)
	st.view.Pool, st.view.Tables = st.Cache, st.view.Tables[:0]
	for _, s := range step.Spans {
		st.view.Tables = append(st.view.Tables, s.Table)
	}
}

// Layer returns the view of the cache that layer's attention reads, valid
// until the next call.
func (st *State) Layer(layer int) *kvcache.View {
	st.view.Layer = layer
	return &st.view
}

// Take returns n values of workspace, with arbitrary contents. They are valid
// until Release is called with a mark that was made before.
func (st *State) Take(n int) []float32 {
	if st.used+n > len(st.arena) {
		// What was taken before stays alive in the old arena until it is released.
		st.arena, st.used = make([]float32, max(2*len(st.arena), n)), 0
	}
	s := st.arena[st.used : st.used+n : st.used+n]
	st.used += n
	return s
}

// Mark notes what is taken now.
func (st *State) Mark() int { return st.used }

// Release gives back all that was taken since mark.
func (st *State) Release(mark int) { st.used = min(st.used, mark) }
