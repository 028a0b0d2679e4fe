package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/bench"
	"github.com/foretoken/foretoken/internal/engine"
)

// Numbers of parameters as published.
func TestShapes(t *testing.T) {
	for name, want := range map[string]int{
		"qwen3-0.6b": 596049920, "qwen3-4b": 4022468096, "llama-3.2-1b": 1235814400,
		"qwen3-30b-a3b": 30532122624, "deepseek-v2-lite": 15706484224,
	} {
		s, err := findShape(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.parameters(); got != want {
			t.Errorf("%s: %d parameters, want %d", name, got, want)
		}
		// Q8_0 has 34 bytes for 32 values.
		if s.cut > 0 {
			s.layers = s.cut
		}
		if got := float64(s.parameters()) / 32 * 34; got > 6e9 || s.cut > 0 && got < 5.4e9 {
			t.Errorf("%s: %.1f GB with %d layers", name, got/1e9, s.layers)
		}
	}
	if _, err := findShape("qwen3"); err == nil || !strings.HasPrefix(err.Error(), `shape "qwen3": expected one of deepseek-v2-lite, llama-3.2-1b, `) {
		t.Errorf("error %v", err)
	}
}

func (s shape) parameters() (n int) {
	for _, tensor := range s.tensors() {
		values := 1
		for _, size := range tensor.Shape {
			values *= size
		}
		n += values
	}
	return n
}

// What is written is a model with the weights that the shape asks for, the
// same each time.
func TestWriteRandom(t *testing.T) {
	for _, name := range []string{"qwen3-0.6b", "llama-3.2-1b"} {
		t.Run(name, func(t *testing.T) {
			s := shapes[name]
			s.hidden, s.layers, s.heads, s.kvHeads, s.width, s.ffn, s.vocab = 64, 2, 4, 2, 16, 96, 500
			var files [2][]byte
			for i := range files {
				path := filepath.Join(t.TempDir(), "model.gguf")
				if err := writeRandom(path, name, s); err != nil {
					t.Fatal(err)
				}
				files[i], _ = os.ReadFile(path)
				if i == 0 {
					opens(t, path, s)
				}
			}
			if !bytes.Equal(files[0], files[1]) {
				t.Error("two models of a shape differ")
			}
		})
	}
}

// The layers of a mixture of experts have stacks of matrices. The queries of
// latent attention have a rank, unless there are as many layers as V2-Lite has.
func TestLayers(t *testing.T) {
	for _, c := range []struct {
		shape         string
		layers, layer int
		want          string
	}{
		{"qwen3-30b-a3b", 8, 0, "attn_norm [2048], attn_q [4096 2048], attn_k [512 2048], attn_v [512 2048], attn_output [2048 4096], " +
			"attn_q_norm [128], attn_k_norm [128], ffn_norm [2048], ffn_gate_inp [128 2048], " +
			"ffn_gate_exps [128 768 2048], ffn_up_exps [128 768 2048], ffn_down_exps [128 2048 768]"},
		{"deepseek-v2-lite", 9, 0, "attn_norm [2048], attn_kv_a_mqa [576 2048], attn_kv_a_norm [512], attn_k_b [16 512 128], attn_v_b [16 128 512], " +
			"attn_output [2048 2048], attn_q_a [1536 2048], attn_q_a_norm [1536], attn_q_b [3072 1536], " +
			"ffn_norm [2048], ffn_gate [10944 2048], ffn_up [10944 2048], ffn_down [2048 10944]"},
		{"deepseek-v2-lite", 27, 26, "attn_norm [2048], attn_kv_a_mqa [576 2048], attn_kv_a_norm [512], attn_k_b [16 512 128], attn_v_b [16 128 512], " +
			"attn_output [2048 2048], attn_q [3072 2048], ffn_norm [2048], ffn_gate_inp [64 2048], " +
			"ffn_gate_exps [64 1408 2048], ffn_up_exps [64 1408 2048], ffn_down_exps [64 2048 1408], " +
			"ffn_gate_shexp [2816 2048], ffn_up_shexp [2816 2048], ffn_down_shexp [2048 2816]"},
	} {
		s := shapes[c.shape]
		s.layers = c.layers
		var got []string
		for _, tensor := range s.tensors() {
			if name, ok := strings.CutPrefix(tensor.Name, fmt.Sprintf("blk.%d.", c.layer)); ok {
				got = append(got, fmt.Sprint(strings.TrimSuffix(name, ".weight"), " ", tensor.Shape))
			}
		}
		if diff := cmp.Diff(strings.Split(c.want, ", "), got); diff != "" {
			t.Errorf("%s of %d layers, layer %d (-want +got):\n%s", c.shape, c.layers, c.layer, diff)
		}
	}
}

// What llama.cpp is told of experts and of latent attention.
func TestMetadata(t *testing.T) {
	for name, want := range map[string]map[string]any{
		"qwen3-30b-a3b": {
			"attention.head_count_kv": uint32(4), "attention.key_length": uint32(128), "rope.dimension_count": uint32(128),
			"expert_count": uint32(128), "expert_used_count": uint32(8), "expert_feed_forward_length": uint32(768), "expert_shared_count": nil,
		},
		"deepseek-v2-lite": {
			"attention.head_count_kv": uint32(1), "attention.key_length": uint32(576), "attention.value_length": uint32(512),
			"attention.key_length_mla": uint32(192), "attention.value_length_mla": uint32(128), "attention.kv_lora_rank": uint32(512),
			"attention.q_lora_rank": nil, "rope.dimension_count": uint32(64), "leading_dense_block_count": uint32(1),
			"expert_count": uint32(64), "expert_used_count": uint32(6), "expert_feed_forward_length": uint32(1408), "expert_shared_count": uint32(2),
			"expert_gating_func": uint32(1), "expert_weights_norm": false, "expert_weights_scale": float32(1),
		},
	} {
		s := shapes[name]
		got := map[string]any{}
		for _, p := range s.metadata(name) {
			got[p.Key] = p.Value
		}
		for key, value := range want {
			if got := got[s.arch+"."+key]; got != value {
				t.Errorf("%s: %s is %v, want %v", name, key, got, value)
			}
		}
	}
}

func opens(t *testing.T, path string, s shape) {
	e, err := engine.Open(context.Background(), path, engine.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	_, err = bench.Run(context.Background(), e, bench.Options{Prefill: []int{4}, Contexts: []int{2}, Verify: []int{1}, Runs: 1})
	if err != nil {
		t.Error(err)
	}
	got := e.Config()
	if got.Vocab != s.vocab || got.Layers != s.layers || got.Context != s.context || got.HeadDim != s.width ||
		got.Rope.Theta != float64(s.theta) || !got.TieEmbeddings {
		t.Errorf("config %+v of shape %+v", got, s)
	}
	// Outputs of a projection are as large as its inputs.
	w, err := e.Checkpoint().Matrix("model.layers.1.mlp.down_proj.weight")
	if err != nil {
		t.Fatal(err)
	}
	row := make([]float32, w.Cols)
	var sum float64
	for i := range w.Rows {
		w.Row(row, i)
		for _, v := range row {
			sum += float64(v) * float64(v)
		}
	}
	if got, want := math.Sqrt(sum/float64(w.Rows)), 1.0; math.Abs(got-want) > 0.05 {
		t.Errorf("rows have length %.3f, want %.3f", got, want)
	}
}
