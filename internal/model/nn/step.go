// Package nn has the parts that all model families are built from: the step
// and its state, linear layers, norms, rotary embeddings and the weight
// loader. Families and attention designs sit above it.
package nn

import (
	"iter"
	"slices"
	"unsafe"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
)

// Attention reduces over the blocks that the cache is made of.
var _ [kernel.KVBlock]struct{} = [kvcache.BlockSize]struct{}{}

// A Step is one forward of the model: a ragged list of rows, the rows of a
// span belonging to one sequence. Prefill, a chunk of it, decoding and the
// verification of drafts are all steps that differ in the number of rows.
type Step struct {
	Tokens    []int32 // [rows]
	Positions []int32 // [rows]
	Seqs      []int32 // [rows], index of the row's span
	Spans     []Span

	// Where rows lie and what they read, as kernel.Attention has it. Both are nil
	// unless a row is of a tree of drafts, whose slots are not its positions.
	Slots []int32   // [rows]
	Paths [][]int32 // [rows]; nil where slots are positions

	behind int       // position behind the tokens that Add added last
	slots  []int32   // Slots, and the memory of them
	paths  [][]int32 // Paths, likewise
	nodes  []int32   // memory of each path
}

// A Span is the rows [From, To) of one sequence: at consecutive positions, and
// behind them drafts. Table has memory for all of them.
type Span struct {
	From, To int
	Table    *kvcache.Table
}

// Reset empties s and keeps its memory.
func (s *Step) Reset() {
	s.Tokens, s.Positions, s.Seqs, s.Spans = s.Tokens[:0], s.Positions[:0], s.Seqs[:0], s.Spans[:0]
	s.Slots, s.Paths, s.slots, s.paths, s.nodes = nil, nil, s.slots[:0], s.paths[:0], s.nodes[:0]
}

// Add appends a span of tokens whose first has position pos.
func (s *Step) Add(t *kvcache.Table, pos int, tokens []int32) {
	from := len(s.Tokens)
	s.Spans = append(s.Spans, Span{From: from, To: from, Table: t})
	for i, token := range tokens {
		s.add(token, pos+i, pos+i, nil)
	}
	s.behind = pos + len(tokens)
}

// add appends a row to the last span.
func (s *Step) add(token int32, pos, slot int, path []int32) {
	last := len(s.Spans) - 1
	s.Tokens = append(s.Tokens, token)
	s.Positions = append(s.Positions, int32(pos))
	s.Seqs = append(s.Seqs, int32(last))
	s.Spans[last].To = len(s.Tokens)
	s.slots, s.paths = append(s.slots, int32(slot)), append(s.paths, path)
	if path != nil || s.Slots != nil {
		s.Slots, s.Paths = s.slots, s.paths
	}
}

// Pieces yields ranges of rows that together are all, in order, each with at
// most most rows of a sequence.
func (s *Step) Pieces(most int) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		from, inSpan := 0, 0
		for row := range s.Rows() {
			if row > 0 && s.Seqs[row] != s.Seqs[row-1] {
				inSpan = 0
			}
			if inSpan == most {
				if !yield(from, row) {
					return
				}
				from, inSpan = row, 0
			}
			inSpan++
		}
		if from < s.Rows() {
			yield(from, s.Rows())
		}
	}
}

// Rows is the number of rows.
func (s *Step) Rows() int { return len(s.Tokens) }

// State is what one rank carries through a step: the residual stream, the
// workers, the cache and a workspace.
type State struct {
	X     []float32 // [rows, hidden], the residual stream, or [rows, streams, hidden]
	Pool  *kernel.Pool
	Cache *kvcache.Pool
	First int // layer of Cache that is the model's first: others' may come before

	tables []*kvcache.Table // of the step's sequences
	views  [][]kvcache.View // [layers][stores]
	ropes  []angles
	arena  []float32
	used   int
	err    error

	products []kernel.Product // of one call; the memory is used again
	rows     []int32          // 0, 1, 2, …
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

// Begin readies st for step, whose rows have width values in the residual
// stream.
func (st *State) Begin(step *Step, width int) {
	st.used, st.err = 0, nil
	st.X = st.Take(step.Rows() * width)
	st.openViews()
	st.tables = st.tables[:0]
	for _, s := range step.Spans {
		st.tables = append(st.tables, s.Table)
	}
}

// openViews makes the views of the model's stores.
func (st *State) openViews() {
	if st.views == nil {
		st.views = st.Cache.Views(&st.tables)[st.First:]
	}
}

// Store returns one of the stores of a layer, for the sequences of the step.
func (st *State) Store(layer, store int) *kvcache.View { return &st.views[layer][store] }

// Fail ends the step with an error, if it is the first: what layers compute
// from now on is of no use.
func (st *State) Fail(err error) {
	if st.err == nil {
		st.err = err
	}
}

// Err returns what a layer failed with.
func (st *State) Err() error { return st.err }

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

// TakeInts is Take for n integers.
func (st *State) TakeInts(n int) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(st.Take(n)))), n)
}

// Mark notes what is taken now.
func (st *State) Mark() int { return st.used }

// Release gives back all that was taken since mark.
func (st *State) Release(mark int) { st.used = min(st.used, mark) }
