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
