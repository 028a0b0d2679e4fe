package convert

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/tensor"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// Experts are written whatever form the source has them in; what chooses them
// stays as exact as it is.
func TestQuantizeExperts(t *testing.T) {
	for _, family := range []string{"mixtral", "qwen3_moe"} {
		spec := testmodel.Family(family)
		spec.DType, spec.Experts.Inner = tensor.BF16, 64
		dir := testmodel.Safetensors(t, spec)
		want := values(t, openCheckpoint(t, testmodel.GGUF(t, spec)))
		first := quantize(t, source(t, dir), tensor.Q8_0)
		again := quantize(t, Source{Checkpoint: first}, tensor.Q8_0)
		for _, got := range []*checkpoint.Checkpoint{first, again} {
			gate, experts := stored(got, "blk.1.ffn_gate_inp.weight"), stored(got, "blk.1.ffn_down_exps.weight")
			if gate.DType != tensor.F32 || experts.DType != tensor.Q8_0 || !slices.Equal(experts.Shape, []int{spec.Experts.Count, spec.Hidden, 64}) {
				t.Errorf("%s: gate of type %v, experts of type %v and shape %v", family, gate.DType, experts.DType, experts.Shape)
			}
			gotValues := values(t, got)
			if !slices.Equal(gotValues["blk.1.ffn_gate_inp.weight"], want["blk.1.ffn_gate_inp.weight"]) {
				t.Errorf("%s: the gate has other values", family)
			}
			for i, v := range want["blk.1.ffn_up_exps.weight"] {
				if diff := math.Abs(float64(v - gotValues["blk.1.ffn_up_exps.weight"][i])); diff > 0.01 {
					t.Fatalf("%s: value %d of experts is off by %v", family, i, diff)
				}
			}
			if _, err := model.Check(got); err != nil {
				t.Errorf("%s: %v", family, err)
			}
		}
	}
}

// The forms of experts in newer files of transformers, and in fp8, become the same
// tensors.
func TestFormsOfExperts(t *testing.T) {
	spec := testmodel.Family("qwen3_moe")
	plain := testmodel.New(spec)
	want := values(t, openCheckpoint(t, testmodel.GGUF(t, spec)))
	fused := testmodel.New(spec)
	fused.Tensors = nil
	for _, w := range plain.Tensors {
		layer, rest, ok := strings.Cut(w.Name, ".experts.")
		number, projection, _ := strings.Cut(rest, ".")
		switch {
		case !ok:
			fused.Tensors = append(fused.Tensors, w)
		case number == "0" && projection == "down_proj.weight":
			down := testmodel.Tensor{Name: layer + ".experts.down_proj", Shape: []int{spec.Experts.Count, spec.Hidden, spec.Experts.Inner}}
			both := testmodel.Tensor{Name: layer + ".experts.gate_up_proj", Shape: []int{spec.Experts.Count, 2 * spec.Experts.Inner, spec.Hidden}}
			for e := range spec.Experts.Count {
				expert := fmt.Sprintf("%s.experts.%d.", layer, e)
				down.Values = append(down.Values, plain.Tensor(expert+"down_proj.weight").Values...)
				both.Values = append(both.Values, plain.Tensor(expert+"gate_proj.weight").Values...)
				both.Values = append(both.Values, plain.Tensor(expert+"up_proj.weight").Values...)
			}
			fused.Tensors = append(fused.Tensors, down, both)
		}
	}
	scaled := testmodel.New(spec)
	for i, w := range scaled.Tensors {
		if !strings.Contains(w.Name, ".experts.") {
			continue
		}
		w.DType, w.Data = tensor.F8E4M3, make([]byte, len(w.Values))
		for j := range w.Data { // e4m3 has the values 1 and -1; the scale is a quarter
			w.Data[j] = 0x38 | byte(j%3/2)<<7
		}
		scaled.Tensors[i] = w
		scaled.Tensors = append(scaled.Tensors, testmodel.Tensor{Name: w.Name + "_scale_inv", Shape: []int{1, 1}, Values: []float32{0.25}})
	}
	for name, m := range map[string]*testmodel.Model{"fused": fused, "fp8": scaled} {
		dir := t.TempDir()
		if err := m.WriteSafetensors(dir); err != nil {
			t.Fatal(err)
		}
		got := values(t, quantize(t, source(t, dir), tensor.F32))
		if len(got) != len(want) {
			t.Errorf("%s: %d tensors, want %d", name, len(got), len(want))
		}
		for _, projection := range []string{"gate", "up", "down"} {
			tensor := "blk.1.ffn_" + projection + "_exps.weight"
			expect := want[tensor]
			if name == "fp8" {
				expect = make([]float32, len(want[tensor]))
				for i := range expect {
					expect[i] = []float32{0.25, 0.25, -0.25}[i%(spec.Hidden*spec.Experts.Inner)%3]
				}
			}
			if !slices.Equal(got[tensor], expect) {
				t.Errorf("%s: %s differs", name, tensor)
			}
		}
	}
}
