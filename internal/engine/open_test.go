package engine

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// A context that ends while weights are loaded ends the loading with the next
// of them, and nothing stays behind: neither workers, which TestMain looks for,
// nor a mapped file.
func TestOpenIsCancelled(t *testing.T) {
	path := testmodel.GGUF(t, testmodel.Family("llama"))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	told := 0
	e, err := Open(ctx, path, Options{Threads: 2, Progress: func(_, _ int64) {
		if told++; told == 3 {
			cancel()
		}
	}})
	if err == nil {
		e.Close()
	}
	if !errors.Is(err, context.Canceled) || told != 3 {
		t.Errorf("%v after %d matrices, want %v after 3", err, told, context.Canceled)
	}
	if maps, err := os.ReadFile("/proc/self/maps"); err == nil && strings.Contains(string(maps), path) { // on Linux
		t.Errorf("%s is still mapped", path)
	}
}

// Weights that cannot be rounded are named as their file names them.
func TestQuantizeErrors(t *testing.T) {
	s := testmodel.Family("llama")
	s.DType, s.Parts = tensor.Q8_0, 1
	quantised := testmodel.GGUF(t, s)

	s.DType, s.Parts = tensor.F32, 2
	broken := testmodel.New(s)
	last := broken.Tensor("model.layers.1.mlp.down_proj.weight")
	last.Values[3*s.Intermediate] = float32(math.Inf(1))
	dir, parts := t.TempDir(), t.TempDir()
	if err := errors.Join(broken.WriteSafetensors(dir), broken.WriteGGUF(filepath.Join(parts, "model.gguf"))); err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct{ path, want string }{
		{quantised, quantised + `: tensor "blk.0.attn_q.weight" is Q8_0 already: only floats can be quantised to Q4_0`},
		{dir, filepath.Join(dir, "model-00002-of-00002.safetensors") + `: tensor "model.layers.1.mlp.down_proj.weight": row 3: `},
		{parts, filepath.Join(parts, "model-00002-of-00002.gguf") + `: tensor "blk.1.ffn_down.weight": row 3: `},
	} {
		e, err := Open(context.Background(), c.path, Options{Threads: 1, Quantize: "q4_0"})
		if err == nil {
			e.Close()
		}
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
