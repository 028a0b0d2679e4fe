package checkpoint

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/tensor"
)

// 1.0 and 2.0 as e4m3, as two packed e2m1 and as e8m0.
const (
	one8, two8   = 0x38, 0x40
	onesFP4      = 0x22
	half8, four8 = 0x7e, 0x81
)

func rowOf(t *testing.T, m *tensor.Matrix, r int) []float32 {
	t.Helper()
	row := make([]float32, m.Cols)
	m.Row(row, r)
	return row
}

func TestFP8Scales(t *testing.T) {
	weight := bytes.Repeat([]byte{one8}, 130*129)
	c := open(t, writeFiles(t, map[string][]byte{"model.safetensors": safetensorsOf(
		rawTensor{"v3.weight", "F8_E4M3", []int{130, 129}, weight},
		rawTensor{"v3.weight_scale_inv", "F32", []int{2, 2}, f32s(1, 2, 3, 4)},
		rawTensor{"v4.weight", "F8_E4M3", []int{130, 129}, weight},
		rawTensor{"v4.scale", "F8_E8M0", []int{2, 2}, []byte{0x7f, 0x80, half8, four8}},
		rawTensor{"plain.weight", "F8_E5M2", []int{1, 2}, []byte{0x3c, 0x40}},
	)}))
	for _, test := range []struct {
		name          string
		r, c          int
		want          float32
		block         [2]int
		dtype, scales tensor.DType
	}{
		{"v3.weight", 0, 0, 1, [2]int{128, 128}, tensor.F8E4M3, tensor.F32},
		{"v3.weight", 0, 128, 2, [2]int{128, 128}, tensor.F8E4M3, tensor.F32},
		{"v3.weight", 129, 127, 3, [2]int{128, 128}, tensor.F8E4M3, tensor.F32},
		{"v3.weight", 129, 128, 4, [2]int{128, 128}, tensor.F8E4M3, tensor.F32},
		{"v4.weight", 127, 128, 2, [2]int{128, 128}, tensor.F8E4M3, tensor.F8E8M0},
		{"v4.weight", 128, 0, 0.5, [2]int{128, 128}, tensor.F8E4M3, tensor.F8E8M0},
		{"v4.weight", 128, 128, 4, [2]int{128, 128}, tensor.F8E4M3, tensor.F8E8M0},
	} {
		m, err := c.Matrix(test.name)
		if err != nil {
			t.Fatal(err)
		}
		s := m.Scales
		if m.DType != test.dtype || s.DType != test.scales || [2]int{s.BlockRows, s.BlockCols} != test.block {
			t.Errorf("%s: %v with scales %v", test.name, m.DType, s)
		}
		if got := rowOf(t, m, test.r)[test.c]; got != test.want {
			t.Errorf("%s[%d, %d] = %v, want %v", test.name, test.r, test.c, got, test.want)
		}
	}
	m, err := c.Matrix("plain.weight")
	if err != nil || m.Scales != nil || !cmp.Equal([]float32{1, 2}, rowOf(t, m, 0)) {
		t.Errorf("plain.weight: %v, %v", m, err)
	}
}

func TestPackedFP4(t *testing.T) {
	packed := bytes.Repeat([]byte{onesFP4}, 2*32)
	packed[0] = 0x42 // the low nibble comes first: 1, 2
	c := open(t, writeFiles(t, map[string][]byte{"model.safetensors": safetensorsOf(
		rawTensor{"w1.weight", "I8", []int{2, 32}, packed},
		rawTensor{"w1.scale", "F8_E8M0", []int{2, 2}, []byte{0x7f, four8, half8, 0x80}},
		rawTensor{"f4.weight", "F4", []int{2, 64}, packed},
		rawTensor{"f4.scale", "F8_E8M0", []int{2, 2}, []byte{0x7f, four8, half8, 0x80}},
		rawTensor{"int.weight", "I8", []int{2, 32}, packed},
	)}))
	for _, name := range []string{"w1.weight", "f4.weight"} {
		m, err := c.Matrix(name)
		if err != nil {
			t.Fatal(err)
		}
		if m.DType != tensor.F4E2M1 || m.Rows != 2 || m.Cols != 64 || m.Scales.BlockRows != 1 || m.Scales.BlockCols != 32 {
			t.Errorf("%s: %v [%d, %d] scales %v", name, m.DType, m.Rows, m.Cols, m.Scales)
		}
		first, second := rowOf(t, m, 0), rowOf(t, m, 1)
		if diff := cmp.Diff([]float32{1, 2, 1, 4, 4, .5, .5, 2, 2}, []float32{first[0], first[1], first[31], first[32], first[63], second[0], second[31], second[32], second[63]}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if m, err := c.Matrix("int.weight"); err != nil || m.DType != tensor.I8 || m.Cols != 32 {
		t.Errorf("int.weight: %v, %v: expected plain I8", m, err)
	}
}

func TestBlockSizeFromConfig(t *testing.T) {
	weights := safetensorsOf(
		rawTensor{"a.weight", "F8_E4M3", []int{4, 4}, bytes.Repeat([]byte{one8}, 16)},
		rawTensor{"a.weight_scale_inv", "BF16", []int{2, 1}, []byte{0x80, 0x3f, 0, 0x40}},
	)
	c := open(t, writeFiles(t, map[string][]byte{
		"model.safetensors": weights,
		"config.json":       []byte(`{"quantization_config":{"quant_method":"fp8","weight_block_size":[2,8]}}`),
	}))
	m, err := c.Matrix("a.weight")
	if err != nil {
		t.Fatal(err)
	}
	if got := rowOf(t, m, 2); !cmp.Equal([]float32{2, 2, 2, 2}, got) {
		t.Errorf("row 2: %v", got)
	}
	for _, block := range []string{`"x"`, `[2]`, `[2,0]`, `[2,-1]`, `[1.5,2]`, `{}`, `[2,2,2]`} {
		dir := writeFiles(t, map[string][]byte{
			"model.safetensors": weights,
			"config.json":       []byte(`{"quantization_config":{"weight_block_size":` + block + `}}`),
		})
		_, err := Open(dir)
		wantError(t, err, "config.json: quantization_config.weight_block_size: expected two positive integers")
	}
}

func TestWrongScales(t *testing.T) {
	fp8 := rawTensor{"a.weight", "F8_E4M3", []int{2, 2}, make([]byte, 4)}
	for _, test := range []struct {
		name          string
		weight, scale rawTensor
		want          []string
	}{
		{
			"shape", fp8,
			rawTensor{"a.weight_scale_inv", "F32", []int{2, 1}, f32s(1, 1)},
			[]string{`tensor "a.weight_scale_inv": shape [2 1]: expected [1 1], a scale per [128 128] values of F8_E4M3 [2 2]`},
		},
		{
			"rank", fp8,
			rawTensor{"a.scale", "F32", []int{1}, f32s(1)},
			[]string{`tensor "a.scale": shape [1]: expected [1 1]`},
		},
		{
			"type", fp8,
			rawTensor{"a.scale", "I32", []int{1, 1}, make([]byte, 4)},
			[]string{`tensor "a.scale": scales of type I32: expected F32, BF16 or F8_E8M0`},
		},
		{
			"columns of fp4",
			rawTensor{"a.weight", "I8", []int{1, 32}, make([]byte, 32)},
			rawTensor{"a.scale", "F8_E8M0", []int{1, 1}, make([]byte, 1)},
			[]string{`shape [1 1]: expected [1 2], a scale per [1 32] values of F4_E2M1 [1 64]`},
		},
		{
			"per row", fp8,
			rawTensor{"a.weight_scale", "F32", []int{2, 1}, f32s(1, 1)},
			[]string{`tensor "a.weight": scales in "a.weight_scale" are per tensor or row: expected block scales`},
		},
		{
			"beside bf16",
			rawTensor{"a.weight", "BF16", []int{1, 1}, make([]byte, 2)},
			rawTensor{"a.weight_scale_inv", "F32", []int{1, 1}, f32s(1)},
			[]string{`scales in "a.weight_scale_inv" beside BF16: expected an fp8 or packed fp4 weight`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := writeFiles(t, map[string][]byte{"model.safetensors": safetensorsOf(test.weight, test.scale)})
			_, err := open(t, dir).Matrix("a.weight")
			wantError(t, err, append(test.want, dir)...)
		})
	}
	c := open(t, writeFiles(t, map[string][]byte{"model.safetensors": safetensorsOf(
		rawTensor{"e", "F8_E4M3", []int{1, 1, 1}, make([]byte, 1)}, rawTensor{"e_scale_inv", "F32", []int{1, 1, 1}, f32s(1)},
		rawTensor{"none", "U8", []int{0, 1, 1}, nil},
		rawTensor{"many", "U8", []int{maxExperts + 1, 1, 1}, make([]byte, maxExperts+1)},
	)}))
	_, err := c.Stack("e")
	wantError(t, err, `tensor "e": scales in "e_scale_inv": expected none beside a stack`)
	for _, name := range []string{"none", "many"} {
		_, err = c.Stack(name)
		wantError(t, err, name, "expected positive sizes, at most 65536 experts")
	}
}
