package draft

import (
	"errors"
	"fmt"
	"slices"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// mtp drafts with the model's own modules of multi-token prediction (DeepSeek-V3,
// section 2.2). Module k makes, at position i, of the state of module k-1 there
// and of token i+k a state of its own, which predicts token i+k+1; module 0 is
// the target. Behind the anchor, token n, module k gives the draft of depth k
// from its row n-1. Depths that have no module of their own are drafted by the
// last one, which is fed with its own state, a position further each time.
//
// A module's keys and values are layers of the target's cache. A row is true
// when all the tokens in it are committed ones: rows run as soon as these are
// known, in Observe, so that what the pages hold of a module is always as far as
// the target's. What drafting writes lies at or behind the first row that is
// not true, and is written again when that is.
//
// Of a prefix that is shared, the modules' part was made by another sequence:
// the same but for the last k positions of module k, which are made with
// tokens behind the prefix, and those need not be this sequence's. The last
// positions of module k are also written in pages that have become shared since.
// Either costs drafts, never text.
type mtp struct {
	modules       []*model.MTP
	width, hidden int // values of a state, and of what the head reads

	st        nn.State
	step      nn.Step
	sequences map[uint64]*mtpSequence

	batch  []mtpEntry
	inputs []float32 // states that a pass reads, [rows, width]
	states []float32 // that the last pass made, of the rows that entries name
	heads  []float32 // what the head reads, [entries, hidden]
	rows   []int
	draws  mtpDraws
}

// mtpRows bounds the rows of a pass over prompts, and with them its memory.
const mtpRows = 512

// mtpSequence is what is kept of a sequence beside the cache.
type mtpSequence struct {
	// done is how many positions each module has true rows of: the target first.
	done []int
	// waiting are states of each module that the next one has not read, at positions
	// from done of the next one on: while the sequence decodes, one. Of the last
	// module it is the state of its last true row.
	waiting [][]float32
	head    []float32 // what predicts the token behind the anchor, of the first module
}

// mtpEntry is a sequence in a pass, or in a row of passes.
type mtpEntry struct {
	*Sequence
	kept     *mtpSequence
	ask      *Ask // nil in Observe
	from, to int  // rows of states
}

// NewMTP returns a drafter that uses the modules of multi-token prediction of m,
// whose sequences cache holds.
func NewMTP(m model.Model, pool *kernel.Pool, cache *kvcache.Pool) (Drafter, error) {
	if len(m.MTP()) == 0 {
		return nil, errors.New("the checkpoint has no modules of multi-token prediction; expected num_nextn_predict_layers of 1 or more")
	}
	return &mtp{
		modules: m.MTP(), width: m.StateWidth(), hidden: m.Config().Hidden,
		st: nn.State{Pool: pool, Cache: cache}, sequences: map[uint64]*mtpSequence{},
	}, nil
}

// Observe implements Drafter: it runs the modules on the rows.
func (m *mtp) Observe(target Target, rows []Observed) error {
	m.batch, m.states = m.batch[:0], m.states[:0]
	for _, o := range rows {
		kept := m.sequence(o)
		for left := o.Rows; len(left) > 0; {
			from := len(m.states) / m.width
			n := min(len(left), mtpRows-from)
			m.states = append(m.states, target.States(left[:n])...)
			m.batch = append(m.batch, mtpEntry{Sequence: o.Sequence, kept: kept, from: from, to: from + n})
			kept.done[0] += n
			if left = left[n:]; from+n == mtpRows {
				if err := m.advance(); err != nil {
					return err
				}
				m.batch, m.states = m.batch[:0], m.states[:0]
			}
		}
	}
	return m.advance()
}

// sequence returns what is kept of a sequence. One of which rows were missed
// starts again, as one does whose first positions were shared.
func (m *mtp) sequence(o Observed) *mtpSequence {
	s := m.sequences[o.ID]
	if s == nil || s.done[0] != o.From {
		s = &mtpSequence{done: slices.Repeat([]int{o.From}, len(m.modules)+1), waiting: make([][]float32, len(m.modules)+1)}
		m.sequences[o.ID] = s
	}
	return s
}

// advance runs each module on the rows of the batch that have become true, given
// the target's new states. Sequences of which some fail start again.
func (m *mtp) advance() error {
	for k := range m.modules {
		if err := m.advanceModule(k + 1); err != nil {
			for _, e := range m.batch {
				delete(m.sequences, e.ID)
			}
			return err
		}
	}
	return nil
}

func (m *mtp) advanceModule(k int) error {
	m.begin()
	for i := range m.batch {
		e := &m.batch[i]
		s := e.kept
		at := len(m.inputs)
		m.inputs = append(m.inputs, s.waiting[k-1]...)
		m.inputs = append(m.inputs, m.states[e.from*m.width:e.to*m.width]...)
		end := max(s.done[k], min(s.done[k-1], len(e.Tokens)-k))
		n := end - s.done[k]
		s.waiting[k-1] = append(s.waiting[k-1][:0], m.inputs[at+n*m.width:]...)
		m.inputs = m.inputs[:at+n*m.width]
		e.from, e.to = m.step.Rows(), m.step.Rows()+n
		if n > 0 {
			m.step.Add(e.Table, s.done[k], e.Tokens[s.done[k]+k:end+k])
		}
		s.done[k] = end
	}
	if m.step.Rows() == 0 {
		m.states = m.states[:0]
		return nil
	}
	if err := m.forward(k); err != nil {
		return err
	}
	for _, e := range m.batch {
		if e.to == e.from {
			continue
		}
		if k == 1 {
			e.kept.head = resize(e.kept.head, m.hidden)
			m.modules[0].Hidden(&m.st, []int{e.to - 1}, e.kept.head)
		}
		if k == len(m.modules) {
			e.kept.waiting[k] = append(e.kept.waiting[k][:0], m.states[(e.to-1)*m.width:e.to*m.width]...)
		}
	}
	return nil
}

// begin empties step and inputs.
func (m *mtp) begin() {
	m.step.Reset()
	m.inputs = m.inputs[:0]
}

// forward runs module k on the step and its inputs, and takes its states.
func (m *mtp) forward(k int) error {
	module := m.modules[k-1]
	if err := module.Forward(&m.step, &m.st, m.inputs); err != nil {
		return fmt.Errorf("module %d of multi-token prediction: %w", k, err)
	}
	m.rows = m.rows[:0]
	for row := range m.step.Rows() {
		m.rows = append(m.rows, row)
	}
	m.states = resize(m.states, len(m.rows)*m.width)
	module.States(&m.st, m.rows, m.states)
	return nil
}

// Propose implements Drafter. Drafts are chains. The first module has run behind the anchor when its
// row was observed: the first depth costs no more than the head.
func (m *mtp) Propose(asks []Ask, more func(depth int) bool) error {
	m.batch, m.states = m.batch[:0], m.states[:0]
	for i := range asks {
		a := &asks[i]
		a.Draft.ResetChain()
		if s := m.sequences[a.ID]; s != nil && s.done[0] == len(a.Tokens)-1 {
			m.batch = append(m.batch, mtpEntry{Sequence: a.Sequence, kept: s, ask: a})
		}
	}
	if err := m.advance(); err != nil { // of tokens that were not known in Observe
		return err
	}
	for i := range m.batch {
		m.batch[i].from, m.batch[i].to = 0, 0
	}
	for depth := 1; ; depth++ {
		m.batch = slices.DeleteFunc(m.batch, func(e mtpEntry) bool { return !e.ask.wants(depth) })
		if len(m.batch) == 0 || more != nil && !more(depth) {
			return nil
		}
		if err := m.pass(depth); err != nil {
			return err
		}
		m.draw()
	}
}

// pass makes heads for tokens of a depth of the batch, whose drafts are one less
// deep.
func (m *mtp) pass(depth int) error {
	m.heads = resize(m.heads, len(m.batch)*m.hidden)
	if depth == 1 {
		for i, e := range m.batch {
			copy(m.heads[i*m.hidden:], e.kept.head)
		}
		return nil
	}
	m.begin()
	k := min(depth, len(m.modules))
	for i := range m.batch {
		e := &m.batch[i]
		anchor, from, n := len(e.Tokens)-1, 0, 1
		if depth <= len(m.modules) {
			// The rows whose tokens are drafts, all but the last of which the module
			// before has at shallower depths.
			from = e.kept.done[k]
			n = anchor - from
		} else {
			from = anchor - 1 + depth - k
		}
		if depth == 2 || depth <= len(m.modules) {
			m.inputs = append(m.inputs, e.kept.waiting[depth-1]...)
		}
		m.inputs = append(m.inputs, m.states[e.from*m.width:e.to*m.width]...)
		e.from, e.to = m.step.Rows(), m.step.Rows()+n
		m.step.Add(e.Table, from, e.ask.Draft.Tokens[depth-1-n:])
	}
	if err := m.forward(k); err != nil {
		return err
	}
	m.rows = m.rows[:0]
	for i := range m.batch {
		e := &m.batch[i]
		m.rows = append(m.rows, e.to-1)
		if depth >= len(m.modules) {
			e.from = e.to - 1 // the next depth is fed with the last state alone
		}
	}
	m.modules[k-1].Hidden(&m.st, m.rows, m.heads)
	return nil
}

// mtpLogits bounds how many rows of logits are computed at once.
const mtpLogits = 64

// draw adds a token to each draft of the batch.
func (m *mtp) draw() {
	vocab := m.modules[0].Config().Vocab
	for from := 0; from < len(m.batch); from += mtpLogits {
		entries := m.batch[from:min(from+mtpLogits, len(m.batch))]
		mark := m.st.Mark()
		logits := m.st.Take(len(entries) * vocab)
		m.modules[0].Logits(&m.st, m.heads[from*m.hidden:(from+len(entries))*m.hidden], logits)
		for i, e := range entries {
			m.draws.extend(e.ask, logits[i*vocab:(i+1)*vocab])
		}
		m.st.Release(mark)
	}
}

// Ended implements Drafter.
func (m *mtp) Ended(*Sequence) {}

// Forget implements Drafter.
func (m *mtp) Forget(id uint64) { delete(m.sequences, id) }

func resize(s []float32, n int) []float32 { return slices.Grow(s[:0], n)[:n] }
