package moe

import (
	"fmt"
	"math"
	"slices"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/tensor"
)

// Memory holds the packed experts of all layers of a model. With a limit it is a
// cache of them: an expert is packed when a token first needs it, into the slot
// that has not been used for the longest time, and again when it is needed after
// it has lost that. Its values are the same wherever it is packed.
type Memory struct {
	packer *kernel.Packer // nil: layers are checked and no more
	limit  int64          // bytes; 0: experts are packed when they are loaded
	forms  []*form
	share  float64 // of a layer's experts, those that work on a token
	round  int     // counts the products that experts are held for
	fills  int     // counts experts that were packed into slots
}

// NewMemory is for a model whose packed experts take at most limit bytes; 0: as
// many as there are.
func NewMemory(packer *kernel.Packer, limit int64) *Memory {
	return &Memory{packer: packer, limit: limit}
}

// An expert is a gated network in the file: its gate, up and down projections.
type expert struct {
	matrices [3]*tensor.Matrix
	form     *form
	slot     *slot // nil: it is not packed
}

// units are those of the segments of an expert's matrices: tensor parallelism
// may split the inner dimension, over which the down projection sums.
var units = [3]int{0, 0, 1}

// A slot is the memory of one packed expert.
type slot struct {
	weights [3]*kernel.Weight
	owner   *expert // nil: nobody
	round   int     // in which it was held last
}

// A form is how the matrices of an expert are stored: experts of one form fit
// into each other's slots. A file of mixed types has several.
type form struct {
	matrices [3]*tensor.Matrix // of the first expert
	experts  int               // in all layers
	slots    []*slot
}

// load packs an expert, or leaves it in the file until it is needed.
func (m *Memory) load(w *nn.Loader, e *expert) {
	m.add(e)
	if m.packer != nil && m.limit == 0 {
		e.slot = &slot{owner: e}
		e.form.slots = append(e.form.slots, e.slot)
	}
	for i, matrix := range e.matrices {
		if e.slot != nil {
			e.slot.weights[i] = w.Pack(matrix, units[i])
		} else {
			w.Leave(matrix)
		}
	}
}

// add counts an expert as one of its form.
func (m *Memory) add(e *expert) {
	i := slices.IndexFunc(m.forms, func(f *form) bool { return alike(f.matrices, e.matrices) })
	if i < 0 {
		i = len(m.forms)
		m.forms = append(m.forms, &form{matrices: e.matrices})
	}
	e.form = m.forms[i]
	e.form.experts++
}

// alike reports whether the matrices of two experts are packed alike.
func alike(a, b [3]*tensor.Matrix) bool {
	for i := range a {
		x, y := *a[i], *b[i]
		if (x.Scales == nil) != (y.Scales == nil) {
			return false
		}
		if s, t := x.Scales, y.Scales; s != nil && (s.DType != t.DType || s.BlockRows != t.BlockRows || s.BlockCols != t.BlockCols) {
			return false
		}
		if x.DType != y.DType || x.Rows != y.Rows || x.Cols != y.Cols {
			return false
		}
	}
	return true
}

// A MemoryError reports memory that does not hold one packed expert of each form,
// which takes Least bytes.
type MemoryError struct{ Bytes, Least int64 }

func (e *MemoryError) Error() string {
	return fmt.Sprintf("memory for experts: %d bytes, expected at least %d, which hold one of each form", e.Bytes, e.Least)
}

// Reserve takes the memory of slots, once all layers are loaded. Errors: the
// limit is too low, or the system has not so much memory.
func (m *Memory) Reserve() error {
	if m.packer == nil || m.limit == 0 {
		return nil
	}
	var least, all int64 // one slot of each form there must be
	for _, f := range m.forms {
		if err := m.reserve(f, 1); err != nil {
			return err
		}
		least += f.bytes()
		all += f.bytes() * int64(f.experts)
	}
	if least > m.limit {
		return &MemoryError{m.limit, least}
	}
	// What is left is shared out so that the same part of each form is packed.
	for _, f := range m.forms {
		n := min(m.limit, all) - least
		if err := m.reserve(f, int(n*int64(f.experts-1)/max(1, all-least))); err != nil {
			return err
		}
	}
	return nil
}

// reserve adds n slots to f.
func (m *Memory) reserve(f *form, n int) error {
	for range n {
		s := new(slot)
		for i, matrix := range f.matrices {
			var err error
			if s.weights[i], err = m.packer.Reserve(matrix, units[i]); err != nil {
				return err
			}
		}
		f.slots = append(f.slots, s)
	}
	return nil
}

// bytes is the size of a packed expert.
func (f *form) bytes() (n int64) {
	if len(f.slots) > 0 {
		for _, w := range f.slots[0].weights {
			n += int64(w.Bytes())
		}
	}
	return n
}

// next ends a round: what was held may lose its slot.
func (m *Memory) next() { m.round++ }

// hold sees to it that e is packed until the round ends. It returns false if
// every slot is held by another.
func (m *Memory) hold(e *expert) (bool, error) {
	if e.slot == nil {
		s := slices.MinFunc(e.form.slots, func(a, b *slot) int { return a.round - b.round })
		if s.round == m.round {
			return false, nil
		}
		if err := m.fill(s, e); err != nil {
			return false, err
		}
	}
	e.slot.round = m.round
	return true, nil
}

// fill packs e into s, which is nobody's until that has succeeded: values may be
// such as cannot be rounded, and the file may go away.
func (m *Memory) fill(s *slot, e *expert) error {
	if s.owner != nil {
		s.owner.slot, s.owner = nil, nil
	}
	for i, matrix := range e.matrices {
		if err := m.packer.Repack(s.weights[i], matrix); err != nil {
			return err
		}
	}
	s.owner, e.slot = e, s
	m.fills++
	return nil
}

// Idle is how many bytes of packed experts a step of the given number of rows
// leaves unread, if any expert is as likely to be chosen as any other.
func (m *Memory) Idle(rows int) (n int64) {
	read := 1 - math.Pow(1-m.share, float64(rows))
	for _, f := range m.forms {
		n += int64(float64(f.bytes()) * (float64(len(f.slots)) - read*float64(f.experts)))
	}
	return n
}
