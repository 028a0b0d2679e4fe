//go:build shared

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/fixtures"
)

// foretoken runs the command and returns what it printed.
func foretoken(t *testing.T, args ...string) []byte {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command("foretoken", args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("foretoken %s: %v: %s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return out
}

// forEachGolden calls f with both files of every golden model that runs.
func forEachGolden(t *testing.T, f func(t *testing.T, dir, file string)) {
	for _, name := range fixtures.Models {
		for _, file := range []string{"model.gguf", "model.safetensors"} {
			t.Run(name+"/"+file, func(t *testing.T) {
				dir := fixtures.Golden(t, "models", name)
				f(t, dir, filepath.Join(dir, file))
			})
		}
	}
}

// score writes log-probabilities that are the expected ones, and whose bits
// depend neither on chunks nor on threads.
func TestGoldenScore(t *testing.T) {
	forEachGolden(t, func(t *testing.T, dir, file string) {
		var meta struct {
			Checks []struct {
				File      string
				Tolerance float64
			}
		}
		fixtures.ReadJSON(t, filepath.Join(dir, "meta.json"), &meta)
		if len(meta.Checks) == 0 {
			t.Fatal("meta.json has no checks")
		}
		out := filepath.Join(t.TempDir(), "out.f32")
		score := func(args ...string) (result, logprobs []byte) {
			args = append([]string{"score", file, "--tokens", filepath.Join(dir, "tokens.json"), "--logprobs", out}, args...)
			result = foretoken(t, args...)
			logprobs, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			return result, logprobs
		}
		result, got := score("--threads", "2")
		for _, check := range meta.Checks {
			want, err := os.ReadFile(filepath.Join(dir, check.File))
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(want) {
				t.Fatalf("%d bytes of log-probabilities, %s has %d", len(got), check.File, len(want))
			}
			for i := 0; i < len(want); i += 4 {
				g := math.Float32frombits(binary.LittleEndian.Uint32(got[i:]))
				w := math.Float32frombits(binary.LittleEndian.Uint32(want[i:]))
				if !(math.Abs(float64(g)-float64(w)) <= check.Tolerance) {
					t.Fatalf("value %d is %v, %s has %v", i/4, g, check.File, w)
				}
			}
		}
		for _, threads := range []string{"1", "3"} {
			for _, chunk := range []string{"0", "1", "3", "16", "64"} {
				r, l := score("--threads", threads, "--chunk", chunk)
				if !bytes.Equal(r, result) || !bytes.Equal(l, got) {
					t.Errorf("--threads %s --chunk %s: other bits than in one pass on two", threads, chunk)
				}
			}
		}
	})
}

func TestGoldenRun(t *testing.T) {
	forEachGolden(t, func(t *testing.T, dir, file string) {
		var meta struct {
			Greedy []struct {
				Sequence int
				Tokens   []int
			}
		}
		var tokens struct{ Sequences [][]int }
		fixtures.ReadJSON(t, filepath.Join(dir, "meta.json"), &meta)
		fixtures.ReadJSON(t, filepath.Join(dir, "tokens.json"), &tokens)
		if len(meta.Greedy) == 0 {
			t.Fatal("meta.json has no greedy continuations")
		}
		for _, greedy := range meta.Greedy {
			prompt, _ := json.Marshal(tokens.Sequences[greedy.Sequence])
			out := foretoken(t, "run", file, "--tokens", string(prompt), "--ignore-eos", "--temperature", "0", "--dtype", "float32",
				"--max-tokens", fmt.Sprint(len(greedy.Tokens)), "--print-tokens")
			var got []int
			if err := json.Unmarshal(out, &got); err != nil || !slices.Equal(got, greedy.Tokens) {
				t.Errorf("sequence %d: %s, %v; want %v", greedy.Sequence, out, err, greedy.Tokens)
			}
		}
	})
}

// GGUF files that hold a vocabulary only, on texts that llama.cpp tokenized.
func TestTokenizeFixtures(t *testing.T) {
	files, err := filepath.Glob(fixtures.Data(t, "tokenizer") + "/*.gguf")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d vocabularies, %v; want 5", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			input, err := os.ReadFile(file + ".inp")
			if err != nil {
				t.Fatal(err)
			}
			output, err := os.ReadFile(file + ".out")
			if err != nil {
				t.Fatal(err)
			}
			const separator = "\n__ggml_vocab_test__\n" // it follows every text
			texts := strings.Split(strings.TrimSuffix(string(input), separator), separator)
			want := strings.Split(strings.TrimSuffix(string(output), "\n"), "\n")
			if len(texts) != len(want) {
				t.Fatalf("%d texts, %d lines of ids", len(texts), len(want))
			}
			list, _ := json.Marshal(texts)
			path := filepath.Join(t.TempDir(), "strings.json")
			if err := os.WriteFile(path, list, 0o644); err != nil {
				t.Fatal(err)
			}
			var got [][]int
			if err := json.Unmarshal(foretoken(t, "tokenize", file, "--input", path), &got); err != nil {
				t.Fatal(err)
			}
			for i, ids := range got {
				var fields []string
				for _, id := range ids {
					fields = append(fields, strconv.Itoa(id))
				}
				if line := strings.Join(fields, " "); line != strings.TrimSpace(want[i]) {
					t.Errorf("%q: %s, want %s", texts[i], line, want[i])
				}
			}
			var one []int
			if err := json.Unmarshal(foretoken(t, "tokenize", file, texts[0]), &one); err != nil || !slices.Equal(one, got[0]) {
				t.Errorf("%q as an argument: %v, %v; in the list %v", texts[0], one, err, got[0])
			}
		})
	}
}

// Every pair of template and context, rendered by Jinja as Hugging Face sets
// it up.
func TestRenderFixtures(t *testing.T) {
	dir := fixtures.Data(t, "templates")
	var contexts map[string]json.RawMessage
	var expected map[string]string
	fixtures.ReadJSON(t, filepath.Join(dir, "contexts.json"), &contexts)
	fixtures.ReadJSON(t, filepath.Join(dir, "expected.json"), &expected)
	if len(expected) < 100 {
		t.Fatalf("only %d pairs", len(expected))
	}
	scratch := t.TempDir()
	for name, context := range contexts {
		if err := os.WriteFile(filepath.Join(scratch, name), context, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for pair, want := range expected {
		template, context, _ := strings.Cut(pair, "|")
		var stdout, stderr bytes.Buffer
		cmd := exec.Command("foretoken", "render", "--template", filepath.Join(dir, template),
			"--context", filepath.Join(scratch, context), "--now", "2026-11-29T12:00:00Z")
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		if strings.HasPrefix(want, "ERR") {
			if cmd.ProcessState.ExitCode() != exitError || stdout.Len() > 0 || bytes.Count(stderr.Bytes(), []byte("\n")) != 1 {
				t.Errorf("%s: %v, stdout %q, stderr %q; want exit code 1 and one line", pair, err, &stdout, &stderr)
			}
		} else if err != nil || stdout.String() != want {
			t.Errorf("%s: %v %s: %q, want %q", pair, err, &stderr, &stdout, want)
		}
	}
}
