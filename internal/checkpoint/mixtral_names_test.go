package checkpoint

import (
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
)

// Tensors that a file of Mixtral lacks are named as it would name them; in files
// of other models they are what they are.
func TestMixtralNames(t *testing.T) {
	const name = "model.layers.1.mlp.experts.3.down_proj.weight"
	for stored, want := range map[string]string{
		"model.layers.0.block_sparse_moe.gate.weight": `no tensor "model.layers.1.block_sparse_moe.experts.3.w2.weight" ("` + name + `")`,
		"model.layers.0.mlp.gate.weight":              `no tensor "` + name + `"`,
	} {
		c := open(t, writeFiles(t, map[string][]byte{"model.safetensors": safetensorsOf(rawTensor{stored, "F32", []int{1, 1}, make([]byte, 4)})}))
		_, err := c.Matrix(name)
		wantError(t, err, want)
		if _, err := c.Matrix("model.norm.weight"); err == nil || err.Error() != c.path+`: no tensor "model.norm.weight"` {
			t.Errorf("%s: %v", stored, err)
		}
		if info, ok := c.Info("model.layers.0.mlp.gate.weight"); !ok || info.Stored != stored || info.DType != tensor.F32 {
			t.Errorf("%s: %+v", stored, info)
		}
	}
}
