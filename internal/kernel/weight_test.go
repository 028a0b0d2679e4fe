package kernel

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
)

// A weight that is repacked is what packing makes, in the memory of the old.
func TestRepack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, d := range storage {
		for _, unit := range []int{0, 8} {
			s := newSubject(t, 2, false)
			const out = 70
			in := max(520/d.BlockLen(), 3) * d.BlockLen()
			w := s.pack(weights(d, out, in, r), unit)
			m := weights(d, out, in, r)
			memory, used := &w.data[0], s.Arena.Bytes()
			if err := s.Repack(w, m); err != nil {
				t.Fatalf("%v: %v", d, err)
			}
			if &w.data[0] != memory || s.Arena.Bytes() != used {
				t.Errorf("%v took other memory", d)
			}
			if want := s.pack(m, unit); !bytes.Equal(w.data, want.data) {
				t.Errorf("%v, unit %d: not what packing makes", d, unit)
			}
		}
	}
}

func TestRepackQuantizes(t *testing.T) {
	s := newSubject(t, 1, false)
	s.Quantize = tensor.Q4_0
	w := s.pack(matrix(t, tensor.F32, 40, 64, random(1, 40*64)), 0)
	values := random(2, 40*64)
	m := matrix(t, tensor.BF16, 40, 64, values)
	if err := s.Repack(w, m); err != nil {
		t.Fatal(err)
	}
	if want := s.pack(m, 0); !bytes.Equal(w.data, want.data) {
		t.Error("not what packing makes")
	}
	values[70] = float32(math.NaN())
	if err := s.Repack(w, matrix(t, tensor.F32, 40, 64, values)); err == nil {
		t.Error("a NaN was quantised")
	}
	// What is left of it does no harm to the next.
	if err := s.Repack(w, m); err != nil {
		t.Fatal(err)
	}
	if want := s.pack(m, 0); !bytes.Equal(w.data, want.data) {
		t.Error("after an error: not what packing makes")
	}
}

// With Again, blocks of any type are rounded to what their values are rounded
// to, unless that is no smaller than what they are; floats are, as ever.
func TestPackQuantizesAgain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const out, in = 70, 512
	for _, d := range storage {
		for _, to := range []tensor.DType{tensor.Q8_0, tensor.Q4_0, tensor.Q4_1} {
			m := weights(d, out, in, r)
			values := make([]float32, out*in)
			for i := range out {
				m.Row(values[i*in:(i+1)*in], i)
			}
			for _, unit := range []int{0, 8} {
				plain := newSubject(t, 2, false)
				kept, rounded := plain.pack(m, unit), plain.pack(matrix(t, to, out, in, values), unit)
				want := rounded
				if d == to || d.BlockLen() > 2 && kept.Bytes() <= rounded.Bytes() {
					want = kept
				}
				s := newSubject(t, 2, false)
				s.Quantize, s.Again = to, true
				got := s.pack(m, unit)
				if got.kind != want.kind || !bytes.Equal(got.data, want.data) {
					t.Errorf("%v to %v, unit %d: packed as %s, expected %s with the values of the encoder", d, to, unit, got.kind.Name, want.kind.Name)
				}
				if err := s.Repack(got, m); err != nil || !bytes.Equal(got.data, want.data) {
					t.Errorf("%v to %v, unit %d: packed again otherwise, %v", d, to, unit, err)
				}
			}
		}
	}
	s := newSubject(t, 1, false)
	s.Quantize, s.Again = tensor.Q4_0, true
	if w := s.pack(weights(tensor.Q6_K, out, in, r), 0); w.kind.Name != "Q4" {
		t.Errorf("Q6_K is packed as %s, expected Q4", w.kind.Name)
	}
	if w := s.pack(weights(tensor.Q2_K, out, in, r), 0); w.kind.Name != "Q2K" {
		t.Errorf("Q2_K is packed as %s, expected Q2K", w.kind.Name)
	}
}

// What does not fit leaves the weight as it is.
func TestRepackRefusesOtherWeights(t *testing.T) {
	const out, in = 40, 640
	r := rand.New(rand.NewPCG(1, 2))
	scaled := weights(tensor.F8E4M3, out, in, r)
	scaled.Scales = &tensor.Scales{DType: tensor.F32, BlockRows: 1, BlockCols: 64, Data: make([]byte, 4*out*in/64)}
	for _, tc := range []struct {
		name     string
		old, new *tensor.Matrix
		exact    bool
		err      string
	}{
		{"rows", weights(tensor.Q8_0, out, in, r), weights(tensor.Q8_0, out+1, in, r), false, "shape [41, 640], expected that of the weight it replaces, [40, 640]"},
		{"columns", weights(tensor.Q8_0, out, in, r), weights(tensor.Q8_0, out, in-32, r), false, "shape [40, 608]"},
		{"kind", weights(tensor.Q8_0, out, in, r), weights(tensor.Q4_0, out, in, r), false, "packed as Q4, expected the kind of the weight it replaces, Q8"},
		{"segments", weights(tensor.F8E4M3, out, in, r), scaled, false, "segments [{0 64} {64 128}"},
		{"activations", weights(tensor.Q8_0, out, in, r), weights(tensor.Q8_0, out, in, r), true, "other activations"},
	} {
		s := newSubject(t, 1, false)
		w := s.pack(tc.old, 8)
		if w.input == inFloat && tc.exact { // on this CPU all activations are
			continue
		}
		before := bytes.Clone(w.data)
		s.Exact = tc.exact
		err := s.Repack(w, tc.new)
		if err == nil || !strings.HasPrefix(err.Error(), "w: ") || !strings.Contains(err.Error(), tc.err) {
			t.Errorf("other %s: error %v, want one with %q", tc.name, err, tc.err)
		}
		if !bytes.Equal(w.data, before) {
			t.Errorf("other %s: the weight is changed", tc.name)
		}
	}
}
