package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/tensor"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// packExperts stores experts as fp4, two values to a byte, with a scale for 32.
func packExperts(m *testmodel.Model) {
	for i, w := range slices.Clone(m.Tensors) {
		if !strings.Contains(w.Name, ".experts.") {
			continue
		}
		rows, cols := w.Shape[0], w.Shape[1]
		m.Tensors[i].DType, m.Tensors[i].Shape, m.Tensors[i].Data = tensor.I8, []int{rows, cols / 2}, make([]byte, rows*cols/2)
		m.Tensors = append(m.Tensors, testmodel.Tensor{
			Name: strings.TrimSuffix(w.Name, "weight") + "scale", Shape: []int{rows, cols / 32}, DType: tensor.F8E8M0, Data: make([]byte, rows*cols/32),
		})
	}
}

// Parameters are the values that were learned, however they are stored: scales
// and tables are none. Modules of multi-token prediction do not work on a token
// while it is computed.
func TestParameters(t *testing.T) {
	describe := func(m *testmodel.Model) (d description) {
		t.Helper()
		dir := t.TempDir()
		if err := m.WriteSafetensors(dir); err != nil {
			t.Fatal(err)
		}
		e, err := engine.Describe(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if err := d.read(e); err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, family := range []string{"deepseek_v3", "deepseek_v4"} {
		spec := testmodel.Family(family)
		plain := testmodel.New(spec)
		want, table := int64(0), int64(0)
		for _, w := range plain.Tensors {
			if strings.HasSuffix(w.Name, "tid2eid") {
				table += int64(len(w.Values))
				continue
			}
			want += int64(len(w.Values))
		}
		if family == "deepseek_v4" && table == 0 {
			t.Error("deepseek_v4: no table of experts")
		}
		d := describe(plain)
		if d.Parameters != want || d.MTPParameters != 0 || d.ActiveParameters >= want {
			t.Errorf("%s: %d parameters, %d work on a token, %d are of modules, want %d, fewer and none", family, d.Parameters, d.ActiveParameters, d.MTPParameters, want)
		}
		spec.MTP = 1
		with := describe(testmodel.New(spec))
		if with.ActiveParameters != d.ActiveParameters || with.MTPParameters == 0 || with.Parameters-with.MTPParameters != want {
			t.Errorf("%s with a module: %d parameters, %d work on a token, %d are of modules, want %d, %d and the rest", family,
				with.Parameters, with.ActiveParameters, with.MTPParameters, want+with.MTPParameters, d.ActiveParameters)
		}
	}
	m := testmodel.New(testmodel.Family("deepseek_v4"))
	floats := describe(m)
	packExperts(m)
	if packed := describe(m); packed.Parameters != floats.Parameters || packed.ActiveParameters != floats.ActiveParameters {
		t.Errorf("packed: %d parameters, %d work on a token, want %d and %d", packed.Parameters, packed.ActiveParameters, floats.Parameters, floats.ActiveParameters)
	}
}
