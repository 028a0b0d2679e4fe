package draft

import (
	"errors"
	"fmt"

	"github.com/foretoken/foretoken/internal/exec"
	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/spec"
)

// ModelOptions are a model that drafts, and the form of its drafts: chains, if
// neither TopK nor Template is set.
type ModelOptions struct {
	Model model.Model
	Pool  *kernel.Pool
	// Cache has the target's layers and, from First on, those of Model.
	Cache *kvcache.Pool
	First int
	Vocab *Vocab // nil: the target's own
	// Shared says that Model is made of the target's layers and reads what the
	// target has computed, First being 0. What it writes is at positions that
	// the target has not computed and will write itself. It never lags behind.
	Shared bool

	TopK     int            // above 1: trees of EAGLE-2, every node with so many children to choose from
	Template *spec.Template // trees of this form
	// CatchUp is how many rows one Propose computes of sequences that lag behind
	// by more than a draft, all together. 0: 128.
	CatchUp int
}

// Model drafts with a model that has keys and values of its own for every
// sequence, or the target's. All sequences' rows are computed in one pass for
// each depth.
type Model struct {
	o       ModelOptions
	runner  *exec.Runner
	shape   shape
	sampler sample.Sampler
	ran     map[uint64]*ran

	step     nn.Step
	works    []work
	rows     []int // of step, whose logits are read
	tokens   []int32
	path     []int32
	scatter  []float32 // logits by the target's ids
	params   sample.Params
	siblings []int32
	rest     spec.Row
	seen     []seen
}

// A seen is a sequence of which a step computes positions up to to.
type seen struct {
	table *kvcache.Table
	to    int
}

// A ran is the tree of drafts that the model has computed behind an anchor.
// Which of them are committed is known after the target's next step.
type ran struct {
	spec.Tree
	anchor int // position
}

// A shape says by which nodes a draft grows.
type shape interface {
	// start makes a draft empty.
	start(d *spec.Draft)
	// frontier appends to w.frontier the nodes whose rows must be computed before
	// nodes of a depth, from 2, can be added.
	frontier(w *work, depth int)
	// wanted is how many tokens after a node may be added.
	wanted(w *work, node int) int
	// grow adds nodes of a depth from w.tops, which are of the frontier's nodes.
	grow(w *work, depth int)
	// node returns the token and the parent of a node.
	node(w *work, node int) (token int32, parent int)
	// drawn reports whether siblings may be drawn.
	drawn() bool
}

// A work is one ask while its draft grows.
type work struct {
	*Ask
	anchor   int // position
	from, to int // positions that the first pass computes
	slots    int // places behind the anchor
	done     bool

	frontier []int32            // nodes whose rows the pass computes, -1 for the anchor
	first    int                // of Model.rows: that of the frontier's first
	tops     [][]spec.Candidate // after each node of the frontier
	peaks    []float64          // of each node of the frontier: the probability of the likeliest token after it

	tree  ran     // what was computed
	place []int32 // of a node in it, by node

	template []int32 // static: the node of the template, by node
	dynamic  spec.Dynamic
	heights  []float64 // dynamic: peaks after each node, that of the anchor first
	lined    [][]spec.Candidate
}

// NewModel returns a drafter of a model, or an error if it cannot draft so.
func NewModel(o ModelOptions) (*Model, error) {
	m := &Model{o: o, ran: map[uint64]*ran{}}
	if m.o.CatchUp <= 0 {
		m.o.CatchUp = 128
	}
	switch {
	case o.Template != nil:
		m.shape = static{o.Template}
	case o.TopK > 1:
		m.shape = dynamic{o.TopK}
	default:
		m.shape = chain{}
	}
	if _, chained := m.shape.(chain); !chained {
		if err := o.Model.Config().Trees(); err != nil {
			return nil, fmt.Errorf("the draft model: %w", err)
		}
	}
	for _, l := range o.Model.Cache() {
		for _, s := range l {
			if !o.Shared && s.Ring > 0 {
				// Nobody marks what of a ring is computed.
				return nil, errors.New("the draft model keeps rings of its last positions, expected one that keeps all")
			}
		}
	}
	m.runner = exec.NewRunner(o.Model, o.Pool, o.Cache, o.First)
	return m, nil
}

// Propose implements Drafter.
func (m *Model) Propose(asks []Ask, more func(depth int) bool) error {
	m.begin(asks)
	for depth := 1; ; depth++ {
		if !m.plan(depth) || more != nil && !more(depth) {
			return nil
		}
		if err := m.pass(depth); err != nil {
			return err
		}
	}
}

// begin readies the works for asks.
func (m *Model) begin(asks []Ask) {
	m.works = m.works[:cap(m.works)]
	for len(m.works) < len(asks) {
		m.works = append(m.works, work{})
	}
	m.works = m.works[:len(asks)]
	spare := m.o.CatchUp
	for i := range asks {
		a, w := &asks[i], &m.works[i]
		m.shape.start(a.Draft)
		w.Ask, w.anchor, w.done = a, len(a.Tokens)-1, false
		w.tree.Reset()
		w.tree.anchor = w.anchor
		w.place, w.template = w.place[:0], w.template[:0]
		w.slots = min(a.Nodes, m.o.Cache.Held(a.Table)-w.anchor-1)
		w.from, w.to = w.anchor, w.anchor+1
		if m.o.Shared {
			continue
		}
		w.from = min(m.o.Cache.Marked(a.Table), w.anchor)
		if n := w.to - w.from; n > a.Depth+1 {
			n = min(n, spare)
			spare -= n
			w.to = w.from + n
		}
	}
}

// plan makes the step of a pass, and reports whether it has rows.
func (m *Model) plan(depth int) bool {
	m.step.Reset()
	m.rows = m.rows[:0]
	for i := range m.works {
		w := &m.works[i]
		w.frontier = w.frontier[:0]
		switch {
		case w.done:
		case depth == 1:
			m.planFirst(w)
		case depth > w.Depth:
			w.done = true
		default:
			m.planNext(w, depth)
		}
	}
	return m.step.Rows() > 0
}

// planFirst adds the rows up to the anchor, as many as may be.
func (m *Model) planFirst(w *work) {
	if w.slots < 0 || w.from < m.o.Cache.Shared(w.Table) && m.sharing(w) {
		w.to = w.from // the anchor has no place, or others are at it
	}
	m.tokens = m.o.Vocab.tokens(m.tokens[:0], w.Tokens[w.from:w.to])
	w.to = w.from + len(m.tokens)
	if len(m.tokens) > 0 {
		m.step.Add(w.Table, w.from, m.tokens)
	}
	if w.done = len(m.tokens) == 0 || w.to <= w.anchor; !w.done {
		w.first = len(m.rows)
		w.frontier = append(w.frontier, -1)
		m.rows = append(m.rows, m.step.Rows()-1)
	}
}

// sharing reports whether what w lacks is computed for another sequence in the
// same step: w waits for it.
func (m *Model) sharing(w *work) bool {
	for i := range m.works {
		before := &m.works[i]
		if before == w {
			break
		}
		if before.to > before.from && m.o.Cache.SharePage(before.Table, w.Table, w.from) {
			return true
		}
	}
	return false
}

// planNext adds the rows of the frontier.
func (m *Model) planNext(w *work, depth int) {
	m.shape.frontier(w, depth)
	w.frontier = w.frontier[:min(len(w.frontier), w.slots-w.tree.Len())]
	if w.done = len(w.frontier) == 0; w.done {
		return
	}
	m.tokens, w.first = m.tokens[:0], len(m.rows)
	for _, node := range w.frontier {
		token, parent := m.shape.node(w, int(node))
		if parent >= 0 {
			parent = int(w.place[parent])
		}
		for len(w.place) <= int(node) {
			w.place = append(w.place, -1)
		}
		w.place[node] = int32(w.tree.Add(token, parent))
		m.tokens = append(m.tokens, m.o.Vocab.token(token))
		m.rows = append(m.rows, m.step.Rows()+len(m.tokens)-1)
	}
	m.step.Add(w.Table, w.anchor+1, nil)
	m.step.Draft(w.tree.Parents, m.tokens)
}

// pass runs the step and lets drafts grow by what it says.
func (m *Model) pass(depth int) error {
	if err := m.runner.Run(&m.step, nil); err != nil {
		return fmt.Errorf("draft model: %w", err)
	}
	if depth == 1 && !m.o.Shared {
		for i := range m.works {
			m.o.Cache.Mark(m.works[i].Table, m.works[i].to)
		}
	}
	if len(m.rows) == 0 {
		return nil
	}
	logits := m.runner.Logits(m.rows)
	size := len(logits) / len(m.rows)
	for i := range m.works {
		w := &m.works[i]
		if w.done {
			continue
		}
		for len(w.tops) < len(w.frontier) {
			w.tops = append(w.tops, nil)
		}
		w.peaks = w.peaks[:0]
		for k, node := range w.frontier {
			row := logits[(w.first+k)*size:][:size]
			w.peaks = append(w.peaks, m.follow(w, &w.tops[k], int(node), depth, row))
		}
		m.shape.grow(w, depth)
		m.remember(w)
	}
	return nil
}

// remember notes what was computed behind the anchor.
func (m *Model) remember(w *work) {
	if m.o.Shared || w.tree.Len() == 0 {
		return
	}
	r := m.ran[w.ID]
	if r == nil {
		r = new(ran)
		m.ran[w.ID] = r
	}
	r.Tokens, r.Parents = append(r.Tokens[:0], w.tree.Tokens...), append(r.Parents[:0], w.tree.Parents...)
	r.anchor = w.anchor
}

// Ended implements Drafter.
func (m *Model) Ended(*Sequence) {}

// Forget implements Drafter.
func (m *Model) Forget(id uint64) { delete(m.ran, id) }
