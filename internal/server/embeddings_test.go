package server

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/testmodel"
)

func TestEmbeddings(t *testing.T) {
	const path = "/v1/embeddings"
	a := serveModel(t, "llama", Options{})
	got := ask[embeddingList](t, a, path, object{"input": []string{"hello", "the world", "hello"}, "dimensions": 64})
	if len(got.Data) != 3 || got.Usage.PromptTokens < 6 || got.Usage.TotalTokens != got.Usage.PromptTokens {
		t.Fatalf("%+v", got)
	}
	vectors := make([][]float64, 3)
	for i, e := range got.Data {
		var sum float64
		for _, x := range e.Vector.([]any) {
			vectors[i] = append(vectors[i], x.(float64))
			sum += x.(float64) * x.(float64)
		}
		if e.Index != i || len(vectors[i]) != 64 || math.Abs(sum-1) > 1e-5 {
			t.Errorf("vector %d has the index %d, %d values and the length %v", i, e.Index, len(vectors[i]), math.Sqrt(sum))
		}
	}
	if vectors[0][0] != vectors[2][0] || vectors[0][0] == vectors[1][0] {
		t.Errorf("the same text has the same vector, another has another: %v", vectors)
	}
	encoded := ask[embeddingList](t, a, path, object{"input": "hello", "encoding_format": "base64"}).Data[0].Vector.(string)
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(b) != 4*64 {
		t.Fatalf("base64: %d bytes, %v", len(b), err)
	}
	// JSON numbers are the shortest that give the float32 back.
	for i, want := range vectors[0] {
		if got := math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])); got != float32(want) {
			t.Errorf("base64: value %d is %v, want %v", i, got, want)
		}
	}
	for _, tc := range []struct {
		fields object
		words  string
	}{
		{object{"dimensions": 32}, "the model's states have 64"},
		{object{"encoding_format": "int8"}, "expected float or base64"},
		{object{"input": nil}, "input is missing"},
		{object{"input": make([]int, 513)}, "this server takes 512"},
		{object{"temperature": 1}, "unknown field"},
	} {
		status, text := a.post(t, path, merge(object{"input": "hello"}, tc.fields))
		if status != http.StatusBadRequest || !strings.Contains(text, tc.words) {
			t.Errorf("%.80v: %d %s, want %q", tc.fields, status, text, tc.words)
		}
	}
}

// Models say how states become a vector in the file of sentence-transformers.
func TestPooling(t *testing.T) {
	for file, want := range map[string]engine.Pooling{
		"": engine.LastPooling, `{"pooling_mode_lasttoken": true}`: engine.LastPooling, `{"pooling_mode_mean_tokens": true}`: engine.MeanPooling,
	} {
		dir := testmodel.Safetensors(t, testmodel.Family("llama"))
		if file != "" {
			if err := os.Mkdir(filepath.Join(dir, "1_Pooling"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "1_Pooling", "config.json"), []byte(file), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := serveAt(t, dir, Options{}).server.pooling(); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
	for kind, want := range map[uint32]engine.Pooling{1: engine.MeanPooling, 3: engine.LastPooling} {
		m := testmodel.New(testmodel.Family("llama"))
		m.SetMetadata("llama.pooling_type", kind)
		path := filepath.Join(t.TempDir(), "model.gguf")
		if err := m.WriteGGUF(path); err != nil {
			t.Fatal(err)
		}
		if got := serveAt(t, path, Options{}).server.pooling(); got != want {
			t.Errorf("GGUF, %d: %s, want %s", kind, got, want)
		}
	}
}
