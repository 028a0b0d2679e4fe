package moe

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/tensor"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// layers are mixtures of every kind. Widths are such that segments of down
// projections are of different lengths.
var layers = func() map[string]Config {
	list := map[string]Config{}
	for _, kind := range kinds {
		c := kind.config
		c.Inner = 40
		if c.Groups > 0 {
			c.Shared = 72
		}
		if c.Scoring == SqrtSoftplus {
			c.Shared, c.Limit, c.WeighInner = 40, 0.7, true
		}
		list[kind.name] = c
	}
	list["as many as there are"] = Config{Experts: 3, Active: 3, Inner: 40, Scoring: Softmax, Scale: 1}
	return list
}()

// A layer computes what the reference does, for every row.
func TestForward(t *testing.T) {
	for name, c := range layers {
		f := newLayer(c)
		s := f.open(t, kernel.Packer{Exact: true}, 2, 0)
		x, tokens := input(37, c.Vocab)
		got := s.forward(x, tokens)
		if worst := f.worst(reference{Config: c}, x, tokens, got); !(worst <= 1e-4) {
			t.Errorf("%s: the largest difference is %.2g", name, worst)
		}
		if f.shared != nil && c.Limit > 0 {
			if worst := f.worst(reference{Config: c, mistake: "shared expert not clamped"}, x, tokens, got); worst < 1e-2 {
				t.Errorf("%s: clamping the shared expert makes a difference of %.2g", name, worst)
			}
			c.Limit = 0
			if worst := f.worst(reference{Config: c}, x, tokens, got); worst < 1e-2 {
				t.Errorf("%s: clamping makes a difference of %.2g", name, worst)
			}
		}
	}
}

// worst is the largest difference between y and what the reference makes of x.
func (f *layerFile) worst(r reference, x []float32, tokens []int32, y []float32) (worst float64) {
	for row, token := range tokens {
		in := x[row*hidden : (row+1)*hidden]
		var logits []float32
		for _, v := range product(f.gate, wide(in)) {
			logits = append(logits, float32(v))
		}
		var chosen []int32
		if f.table != nil {
			chosen = f.table[int(token)*f.Active:][:f.Active]
		}
		for i, want := range r.forward(in, r.route(logits, f.bias, chosen), f.experts, f.shared) {
			diff := math.Abs(want - float64(y[row*hidden+i]))
			if !(diff <= worst) {
				worst = diff
			}
		}
	}
	return worst
}

// The bits of a row do not depend on the rows beside it, nor on workers, nor on
// how many experts are packed at a time.
func TestRowsAreIndependent(t *testing.T) {
	for name, c := range layers {
		for precision, packer := range map[string]kernel.Packer{"exact": {Exact: true}, "bf16": {}, "q8_0": {Quantize: tensor.Q8_0}} {
			f := newLayer(c)
			for i := range f.tensors { // bf16 as it is
				if len(f.tensors[i].Shape) == 2 && precision == "bf16" && !strings.Contains(f.tensors[i].Name, "gate.") {
					f.tensors[i].DType, f.tensors[i].Data = tensor.BF16, encode(t, tensor.BF16, f.tensors[i].Values)
				}
			}
			x, tokens := input(50, c.Vocab)
			all := f.open(t, packer, 3, 0)
			want := all.forward(x, tokens)
			size := all.memory.Idle(0) / int64(c.Experts)
			random := rand.New(rand.NewPCG(7, 8))
			for _, experts := range []int64{0, 1, 2, int64(c.Experts - 1)} {
				s := f.open(t, packer, 2, experts*size)
				for _, rows := range []int{1, 2, 9, 50} {
					order := random.Perm(50)[:rows]
					var part []float32
					var ids []int32
					for _, row := range order {
						part, ids = append(part, x[row*hidden:(row+1)*hidden]...), append(ids, tokens[row])
					}
					y := s.forward(part, ids)
					for i, row := range order {
						if !slices.Equal(y[i*hidden:(i+1)*hidden], want[row*hidden:(row+1)*hidden]) {
							t.Fatalf("%s, %s, %d experts packed: row %d of %d differs from what it was among 50", name, precision, experts, i, rows)
						}
					}
				}
			}
		}
	}
}

func encode(t *testing.T, d tensor.DType, values []float32) []byte {
	t.Helper()
	data := make([]byte, d.RowBytes(len(values)))
	if err := tensor.Encode(d, data, values); err != nil {
		t.Fatal(err)
	}
	return data
}

// A row that is not a number, or that chooses by such, is lost alone.
func TestNonFiniteRow(t *testing.T) {
	for name, c := range layers {
		s := newLayer(c).open(t, kernel.Packer{Exact: true}, 2, 0)
		x, tokens := input(5, c.Vocab)
		want := s.forward(x, tokens)
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
			spoilt := slices.Clone(x)
			spoilt[2*hidden+7] = bad
			got := s.forward(spoilt, tokens)
			if !slices.Equal(got[:2*hidden], want[:2*hidden]) || !slices.Equal(got[3*hidden:], want[3*hidden:]) {
				t.Errorf("%s: a row with %v changes others", name, bad)
			}
			if slices.ContainsFunc(got[2*hidden:3*hidden], func(v float32) bool { return v-v == 0 }) {
				t.Errorf("%s: a row with %v has numbers: %v", name, bad, got[2*hidden:3*hidden])
			}
		}
	}
}

// The gate is neither quantised nor given rounded activations: a row whose
// activations are ten times another's goes to the same experts.
func TestGateIsExact(t *testing.T) {
	c := Config{Experts: 64, Active: 8, Inner: 32, Scoring: Softmax, Scale: 1}
	f := newLayer(c)
	x, tokens := input(100, 0)
	chosen := func(p kernel.Packer) []int32 {
		s := f.open(t, p, 2, 0)
		s.forward(x, tokens)
		return slices.Clone(s.plan.chosen)
	}
	want := chosen(kernel.Packer{Exact: true})
	if got := chosen(kernel.Packer{Quantize: tensor.Q4_0}); !slices.Equal(got, want) {
		t.Error("quantised, other experts are chosen")
	}
}

func TestForwardAllocatesNothing(t *testing.T) {
	for name, c := range layers {
		f := newLayer(c)
		all := f.open(t, kernel.Packer{}, 2, 0)
		x, tokens := input(20, c.Vocab)
		forward := func() {
			mark := all.st.Mark()
			all.Forward(&step, &all.st, x)
			all.st.Release(mark)
		}
		step.Tokens = tokens
		forward()
		if n := testing.AllocsPerRun(10, forward); n != 0 {
			t.Errorf("%s: a step allocates %v times", name, n)
		}
	}
}

// Every form in which files have experts gives the same bits.
func TestForms(t *testing.T) {
	c := Config{Experts: 5, Active: 2, Inner: 32, Scoring: Softmax, Scale: 1}
	x, tokens := input(20, 0)
	want := newLayer(c).open(t, kernel.Packer{}, 2, 0).forward(x, tokens)
	join := func(f *layerFile, name string, rows, cols int, parts ...string) {
		whole := testmodel.Tensor{Name: "mlp.experts." + name, Shape: []int{c.Experts, rows, cols}}
		for e := range c.Experts {
			for _, part := range parts {
				i := slices.IndexFunc(f.tensors, func(t testmodel.Tensor) bool { return t.Name == fmt.Sprintf("mlp.experts.%d.%s.weight", e, part) })
				whole.Values = append(whole.Values, f.tensors[i].Values...)
				f.tensors = slices.Delete(f.tensors, i, i+1)
			}
		}
		f.tensors = append(f.tensors, whole)
	}
	for name, edit := range map[string]func(*layerFile){
		"stacks": func(f *layerFile) {
			join(f, "gate_proj.weight", c.Inner, hidden, "gate_proj")
			join(f, "up_proj.weight", c.Inner, hidden, "up_proj")
			join(f, "down_proj.weight", hidden, c.Inner, "down_proj")
		},
		"gates and up projections in one": func(f *layerFile) {
			join(f, "gate_up_proj", 2*c.Inner, hidden, "gate_proj", "up_proj")
			join(f, "down_proj", hidden, c.Inner, "down_proj")
		},
	} {
		f := newLayer(c)
		edit(f)
		if !slices.Equal(f.open(t, kernel.Packer{}, 2, 0).forward(x, tokens), want) {
			t.Errorf("%s: results differ from those of an expert a tensor", name)
		}
	}
}

// Experts in four bits with a scale per 32 values (DeepSeek V4) are multiplied
// with the values that they stand for.
func TestFourBitExperts(t *testing.T) {
	c := Config{Experts: 4, Active: 2, Inner: 32, Scoring: Softmax, Scale: 1}
	f, random := newLayer(c), rand.New(rand.NewPCG(9, 10))
	var scales []testmodel.Tensor
	for i := range f.tensors {
		w := &f.tensors[i]
		if !strings.Contains(w.Name, ".experts.") {
			continue
		}
		rows, cols := w.Shape[0], w.Shape[1]
		w.DType, w.Shape, w.Data = tensor.I8, []int{rows, cols / 2}, make([]byte, rows*cols/2)
		exponents := make([]byte, rows*cols/32)
		for j := range w.Data {
			w.Data[j] = byte(random.IntN(256))
		}
		for j := range exponents {
			exponents[j] = byte(122 + random.IntN(3))
		}
		tensor.Decode(tensor.F4E2M1, w.Values, w.Data)
		for j := range w.Values {
			w.Values[j] *= float32(math.Exp2(float64(exponents[j/32]) - 127))
		}
		scales = append(scales, testmodel.Tensor{
			Name: strings.TrimSuffix(w.Name, "weight") + "scale", Shape: []int{rows, cols / 32}, DType: tensor.F8E8M0, Data: exponents,
		})
	}
	f.tensors = append(f.tensors, scales...)
	x, tokens := input(20, 0)
	got := f.open(t, kernel.Packer{Exact: true}, 2, 0).forward(x, tokens)
	if worst := f.worst(reference{Config: c}, x, tokens, got); !(worst <= 1e-4) {
		t.Errorf("the largest difference is %.2g", worst)
	}
}
