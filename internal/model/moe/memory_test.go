package moe

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/tensor"
)

var step nn.Step

// byToken is a layer whose experts are those that a test's table gives a token.
func byToken(t *testing.T, slots int, table ...[]int32) *subject {
	t.Helper()
	c := Config{Experts: 6, Active: len(table[0]), Inner: 32, Scoring: Softmax, Scale: 1, Hash: true, Vocab: len(table)}
	f := newLayer(c)
	f.setTable(slices.Concat(table...))
	size := f.open(t, kernel.Packer{}, 1, 0).memory.Idle(0) / int64(c.Experts)
	return f.open(t, kernel.Packer{}, 1, int64(slots)*size)
}

// Experts are packed when a token first needs them, stay while there is room, and
// the one used longest ago goes first. Of a step, those that are packed work
// before others take their slots.
func TestLeastRecentlyUsed(t *testing.T) {
	s := byToken(t, 3, []int32{0, 1}, []int32{1, 2}, []int32{3, 4}, []int32{0, 5}, []int32{4, 5})
	for i, tc := range []struct {
		tokens []int32
		fills  int // that the step makes
		packed []int
	}{
		{[]int32{0}, 2, []int{0, 1}},
		{[]int32{0, 0, 0}, 0, []int{0, 1}},
		{[]int32{1}, 1, []int{0, 1, 2}},
		{[]int32{0}, 0, []int{0, 1, 2}},
		{[]int32{2}, 2, []int{1, 3, 4}},    // 2 was used longest ago, then 0 or 1
		{[]int32{2, 4}, 1, []int{3, 4, 5}}, // 1 goes
		{[]int32{0, 2, 3}, 2, nil},         // 3, 4, 5 work, then 0 and 1 in a second round
		{[]int32{0}, 0, nil},
		{[]int32{0, 1, 2, 3}, 3, nil}, // six experts, of which three are packed
	} {
		before := s.memory.fills
		x, _ := input(len(tc.tokens), 0)
		s.forward(x, tc.tokens)
		if got := s.memory.fills - before; got != tc.fills {
			t.Errorf("step %d: %d experts packed, want %d", i, got, tc.fills)
		}
		if tc.packed == nil {
			continue
		}
		var packed []int
		for e := range s.experts {
			if s.experts[e].slot != nil {
				packed = append(packed, e)
			}
		}
		if !slices.Equal(packed, tc.packed) {
			t.Errorf("step %d: experts %v are packed, want %v", i, packed, tc.packed)
		}
	}
}

// With room for all, each expert is packed once.
func TestRoomForAll(t *testing.T) {
	s := byToken(t, 6, []int32{0, 1}, []int32{2, 3}, []int32{4, 5})
	for range 3 {
		x, tokens := input(30, 3)
		s.forward(x, tokens)
	}
	if s.memory.fills != 6 {
		t.Errorf("%d experts packed, want 6", s.memory.fills)
	}
}

// Slots are for experts of all layers, in each form in proportion.
func TestSlotsOfForms(t *testing.T) {
	m := NewMemory(&kernel.Packer{Pool: kernel.NewPool(1), Arena: new(kernel.Arena)}, 0)
	defer m.packer.Arena.Free()
	add := func(d tensor.DType, experts int) {
		for range experts {
			e := &expert{}
			for i := range e.matrices {
				e.matrices[i] = &tensor.Matrix{DType: d, Rows: 32, Cols: 256, Data: make([]byte, 32*d.RowBytes(256))}
			}
			m.add(e)
		}
	}
	add(tensor.Q8_0, 12)
	add(tensor.F32, 4)
	add(tensor.Q8_0, 12)
	small, large := int64(3*32*256/32*34), int64(3*32*256*4)
	for _, tc := range []struct {
		limit          int64
		smalls, larges int // slots; 0: too little memory
	}{
		{1, 0, 0},
		{small + large - 1, 0, 0},
		{small + large, 1, 1},
		{(24*small + 4*large) / 2, 10, 2},
		{24*small + 4*large - 1, 23, 3},
		{24*small + 4*large, 24, 4},
		{math.MaxInt64, 24, 4},
	} {
		m.limit = tc.limit
		for _, f := range m.forms {
			f.slots = nil
		}
		err := m.Reserve()
		if tc.smalls == 0 {
			if err == nil || !strings.Contains(err.Error(), "expected at least") {
				t.Errorf("%d bytes: %v, want an error", tc.limit, err)
			}
			continue
		}
		if a, b := len(m.forms[0].slots), len(m.forms[1].slots); err != nil || a != tc.smalls || b != tc.larges {
			t.Errorf("%d bytes: %d and %d slots, %v; want %d and %d", tc.limit, a, b, err, tc.smalls, tc.larges)
		}
		if taken := m.Idle(0); taken > tc.limit {
			t.Errorf("%d bytes: slots of %d", tc.limit, taken)
		}
	}
}

// A step of one row reads Active of Experts; one of many reads nearly all.
func TestIdle(t *testing.T) {
	c := Config{Experts: 16, Active: 4, Inner: 32, Scoring: Softmax, Scale: 1}
	m := newLayer(c).open(t, kernel.Packer{}, 1, 0).memory
	all := m.Idle(0)
	if all == 0 || all != m.forms[0].bytes()*16 {
		t.Errorf("experts take %d bytes, %d each", all, m.forms[0].bytes())
	}
	for rows, want := range map[int]float64{1: 12, 2: 9, 1000: 0} {
		if got := float64(m.Idle(rows)) / float64(all) * 16; math.Abs(got-want) > 0.01 {
			t.Errorf("%d rows leave %v of 16 experts, want %v", rows, got, want)
		}
	}
}

// An expert whose values cannot be rounded ends the step with an error that
// names its tensor, each time, and no other step.
func TestExpertThatCannotBePacked(t *testing.T) {
	c := Config{Experts: 4, Active: 1, Inner: 32, Scoring: Softmax, Scale: 1, Hash: true, Vocab: 4}
	f := newLayer(c)
	f.setTable([]int32{0, 1, 2, 3})
	f.experts[2].up[5] = float32(math.NaN())
	s := f.open(t, kernel.Packer{Quantize: tensor.Q8_0}, 2, 1<<20)
	const good, bad = 1, 2
	x, _ := input(1, 0)
	want := s.forward(x, []int32{good})
	for range 2 {
		s.st = nn.State{Pool: s.st.Pool}
		s.forward(x, []int32{bad})
		if err := s.st.Err(); err == nil || !strings.Contains(err.Error(), "mlp.experts.2.up_proj.weight") {
			t.Errorf("%v, want an error that names the tensor", err)
		}
		if got := s.forward(x, []int32{good}); !slices.Equal(got, want) {
			t.Error("after it another token has other values")
		}
	}
	if _, err := f.load(t, kernel.Packer{Quantize: tensor.Q8_0}, 1, 0); err == nil {
		t.Error("without a limit the layer loads")
	}
}
