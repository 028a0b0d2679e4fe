package engine

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/testmodel"
	"github.com/google/go-cmp/cmp"
)

func TestGenerationConfig(t *testing.T) {
	fallback, tuned := sample.Default(), sample.Default()
	fallback.Temperature, fallback.TopK, fallback.TopP = 0.8, 40, 0.95
	tuned.Temperature, tuned.TopK, tuned.TopP, tuned.MinP, tuned.TypicalP, tuned.RepetitionPenalty = 0.6, 20, 0.95, 0.05, 0.9, 1.1
	for _, tc := range []struct {
		name, file string
		params     sample.Params
		eog        []int32 // nil: those of the tokenizer and the configuration
		err        string
	}{
		{name: "nothing", file: `{}`, params: fallback},
		{
			name: "everything", params: tuned, eog: []int32{7, 9},
			file: `{"temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0.05, "typical_p": 0.9, "repetition_penalty": 1.1, "eos_token_id": [7, 9]}`,
		},
		{name: "one end token", file: `{"eos_token_id": 7}`, params: fallback, eog: []int32{7}},
		{name: "one parameter", file: `{"temperature": 1}`, params: sample.Default()},
		{name: "nulls", file: `{"eos_token_id": null, "top_k": null}`, params: fallback},
		{name: "text for an end token", file: `{"eos_token_id": "</s>"}`, err: "generation_config.json: eos_token_id: expected a token id"},
		{name: "negative end token", file: `{"eos_token_id": [2, -1]}`, err: "generation_config.json: eos_token_id is -1, expected 0 to 299"},
		{name: "end token beyond the vocabulary", file: `{"eos_token_id": 300}`, err: "generation_config.json: eos_token_id is 300, expected 0 to 299"},
		{name: "a parameter out of range", file: `{"top_p": 1.5}`, err: "recommended sampling: top_p is 1.5"},
		{name: "text for a number", file: `{"top_k": "all"}`, err: "generation_config.json: "},
		{name: "no object", file: `[1]`, err: "generation_config.json: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := testmodel.Safetensors(t, testmodel.Family("llama"))
			if err := os.WriteFile(filepath.Join(dir, "generation_config.json"), []byte(tc.file), 0o644); err != nil {
				t.Fatal(err)
			}
			e, err := Open(context.Background(), dir, Options{Threads: 1})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("%v, want an error with %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			params := e.Sampling()
			if again := e.Sampling(); again.Seed == params.Seed {
				t.Errorf("seed %d twice", again.Seed)
			}
			params.Seed = 0
			if diff := cmp.Diff(tc.params, params); diff != "" {
				t.Errorf("parameters (-want +got):\n%s", diff)
			}
			want := tc.eog
			if want == nil {
				want = append(slices.Clone(e.Config().EOS), e.tokenizer.EOG()...)
			}
			if !slices.Equal(e.eog, want) {
				t.Errorf("end tokens %v, want %v", e.eog, want)
			}
		})
	}
}

func TestGGUFSampling(t *testing.T) {
	m := testmodel.New(testmodel.Family("llama"))
	for key, value := range map[string]any{"temp": float32(0.6), "top_k": int32(20), "top_p": float32(0.95), "min_p": float32(0.05), "penalty_repeat": float32(1.1)} {
		m.SetMetadata("general.sampling."+key, value)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := m.WriteGGUF(path); err != nil {
		t.Fatal(err)
	}
	e, err := Open(context.Background(), path, Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	want, got := sample.Default(), e.Sampling()
	want.Temperature, want.TopK, want.TopP, want.MinP, want.RepetitionPenalty = 0.6, 20, 0.95, 0.05, 1.1
	got.Seed = 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
}
