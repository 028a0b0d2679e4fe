package checkpoint

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func shard(names ...string) []byte {
	var tensors []rawTensor
	for _, name := range names {
		tensors = append(tensors, rawTensor{name, "F32", []int{1}, f32s(float32(len(names)))})
	}
	return safetensorsOf(tensors...)
}

func TestShards(t *testing.T) {
	dir := writeFiles(t, map[string][]byte{
		indexName: []byte(`{"metadata":{"total_size":16,"x":[{}]},"weight_map":{"a":"1.safetensors","b":"2.safetensors","c":"1.safetensors"}}`),
		// The copy of b in the first shard is not the one that counts, and d
		// is not listed.
		"1.safetensors": shard("a", "b", "c", "d"),
		"2.safetensors": shard("b"),
		"3.safetensors": shard("unused"),
	})
	c := open(t, dir)
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, c.Names()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{filepath.Join(dir, "1.safetensors"), filepath.Join(dir, "2.safetensors")}, c.Files()); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]float32{"a": 4, "b": 1, "d": 4} {
		if got, err := c.Vector(name); err != nil || got[0] != want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
}

func TestMalformedIndex(t *testing.T) {
	for _, test := range []struct{ name, index, want string }{
		{"not JSON", `{"weight_map"`, indexName + ": unexpected end of JSON input"},
		{"an array", `[]`, "expected a JSON object"},
		{"empty", ` `, "expected a JSON object"},
		{"no weight_map", `{"metadata":{}}`, "no weight_map"},
		{"empty weight_map", `{"weight_map":{}}`, "no weight_map"},
		{"weight_map null", `{"weight_map":null}`, "weight_map: byte 0: found 'n', expected '{'"},
		{"two weight_maps", `{"weight_map":{"a":"1.safetensors"},"weight_map":{"a":"1.safetensors"}}`, "weight_map: listed twice"},
		{"shard not a string", `{"weight_map":{"a":1}}`, "found '1', expected '\"'"},
		{"duplicate tensor", `{"weight_map":{"a":"1.safetensors","a":"2.safetensors"}}`, `tensor "a": listed twice`},
		{"missing shard", `{"weight_map":{"a":"9.safetensors"}}`, "9.safetensors: file does not exist"},
		{"tensor not in its shard", `{"weight_map":{"a":"1.safetensors","z":"1.safetensors"}}`, `tensor "z": not in its shard "1.safetensors"`},
		{"tensor in another shard", `{"weight_map":{"a":"2.safetensors","b":"2.safetensors"}}`, `tensor "a": not in its shard "2.safetensors"`},
		{"unlisted tensor in two shards", `{"weight_map":{"a":"1.safetensors","b":"2.safetensors"}}`, `tensor "x": already in`},
		{"way up", `{"weight_map":{"a":"../1.safetensors"}}`, `tensor "a": shard "../1.safetensors": expected the plain name`},
		{"way up on Windows", `{"weight_map":{"a":"..\\1.safetensors"}}`, `expected the plain name`},
		{"absolute", `{"weight_map":{"a":"/etc/1.safetensors"}}`, `shard "/etc/1.safetensors": expected the plain name`},
		{"drive", `{"weight_map":{"a":"C:1.safetensors"}}`, `expected the plain name`},
		{"control characters", `{"weight_map":{"a":"\u001b[2J.safetensors"}}`, `shard "\x1b[2J.safetensors": expected the plain name`},
		{"too long", `{"weight_map":{"a":"` + strings.Repeat("x", 1<<19) + `.safetensors"}}`, `x"…: expected the plain name`},
		{"cycle", `{"weight_map":{"a":"` + indexName + `"}}`, `expected the plain name of a .safetensors file`},
		{"directory", `{"weight_map":{"a":".safetensors"}}`, `.safetensors: not a regular file`},
		{"deep nesting", `{"metadata":` + strings.Repeat("[", 1<<19), "exceeded max depth"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := writeFiles(t, map[string][]byte{
				indexName:               []byte(test.index),
				"1.safetensors":         shard("a", "x"),
				"2.safetensors":         shard("b", "x"),
				".safetensors/file.txt": nil,
			})
			_, err := Open(dir)
			wantError(t, err, dir, test.want)
		})
	}
}

func TestCanonicalName(t *testing.T) {
	for stored, want := range map[string]string{
		"model.layers.0.mlp.up_proj.weight":                       "model.layers.0.mlp.up_proj.weight",
		"lm_head.weight":                                          "lm_head.weight",
		"language_model.model.norm.weight":                        "model.norm.weight",
		"language_model.lm_head.weight":                           "lm_head.weight",
		"model.language_model.norm.weight":                        "model.norm.weight",
		"model.language_model.layers.3.self_attn.q_proj.weight":   "model.layers.3.self_attn.q_proj.weight",
		"language_model.layers.3.input_layernorm.weight":          "model.layers.3.input_layernorm.weight",
		"model.layers.3.block_sparse_moe.gate.weight":             "model.layers.3.mlp.gate.weight",
		"model.layers.3.block_sparse_moe.experts.12.w1.weight":    "model.layers.3.mlp.experts.12.gate_proj.weight",
		"model.layers.3.block_sparse_moe.experts.12.w2.weight":    "model.layers.3.mlp.experts.12.down_proj.weight",
		"model.layers.3.block_sparse_moe.experts.12.w3.weight":    "model.layers.3.mlp.experts.12.up_proj.weight",
		"model.layers.3.mlp.experts.12.w1.weight":                 "model.layers.3.mlp.experts.12.w1.weight",
		"vision_tower.vision_model.embeddings.position_embedding": "vision_tower.vision_model.embeddings.position_embedding",
		"multi_modal_projector.mm_input_projection_weight":        "multi_modal_projector.mm_input_projection_weight",
	} {
		if got := canonicalName(stored); got != want {
			t.Errorf("%s: %s, want %s", stored, got, want)
		}
	}
}

func TestWrappedNames(t *testing.T) {
	c := open(t, writeFiles(t, map[string][]byte{"model.safetensors": shard("language_model.model.norm.weight", "vision_tower.x")}))
	info, _ := c.Info("model.norm.weight")
	if diff := cmp.Diff([]string{"model.norm.weight", "vision_tower.x"}, c.Names()); diff != "" || info.Stored != "language_model.model.norm.weight" {
		t.Error(diff, info)
	}
	dir := writeFiles(t, map[string][]byte{"model.safetensors": shard("language_model.model.norm.weight", "model.norm.weight")})
	_, err := Open(dir)
	wantError(t, err, `tensor "model.norm.weight": already in`, `as "language_model.model.norm.weight"`)
}
