//go:build realmodel

package realmodel

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// engines runs one model in both programs.
type engines struct {
	name   string // what foretoken calls the model
	file   string // the GGUF file behind the name
	binary string // foretoken
	env    []string
}

func buildForetoken(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "foretoken")
	build := exec.Command("go", "build", "-o", binary, "./cmd/foretoken")
	build.Dir = "../.."
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build ./cmd/foretoken: %v\n%s", err, out)
	}
	return binary
}

// pull fetches a model into a home of its own, so that the one GGUF file
// there is known to be the model's.
func pull(t *testing.T, binary, model string) engines {
	t.Helper()
	home := os.Getenv("FORETOKEN_REALMODEL_HOME")
	if home == "" {
		home = t.TempDir()
	}
	home, err := filepath.Abs(filepath.Join(home, strings.ReplaceAll(model, ":", "-")))
	if err != nil {
		t.Fatal(err)
	}
	e := engines{name: model, binary: binary, env: append(os.Environ(),
		"FORETOKEN_HOME="+filepath.Join(home, "foretoken"), "HF_HOME="+filepath.Join(home, "huggingface"))}
	e.foretoken(t, "pull", model)

	var files []string
	err = filepath.WalkDir(home, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".gguf") {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) != 1 {
		t.Fatalf("GGUF files after pull %s: %q, %v; want one", model, files, err)
	}
	e.file = files[0]
	return e
}

// foretoken returns the standard output of a run.
func (e engines) foretoken(t *testing.T, args ...string) []byte {
	t.Helper()
	return output(t, e.env, nil, e.binary, args...)
}

// decode is the same model for the oracle with its weights decoded to F32 by
// ggml, so that llama.cpp computes in floats.
func (e engines) decode(t *testing.T) engines {
	t.Helper()
	out := filepath.Join(t.TempDir(), "decoded.gguf")
	e.oracle(t, nil, "floats", out)
	e.file = out
	return e
}

func (e engines) oracle(t *testing.T, input []byte, args ...string) []byte {
	t.Helper()
	return output(t, os.Environ(), input, "../oracle/build/oracle", append([]string{e.file}, args...)...)
}

func output(t *testing.T, env []string, input []byte, program string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(program, args...)
	var stderr bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stderr = env, bytes.NewReader(input), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, stderr.Bytes())
	}
	return out
}

// tokenize returns the ids of each text; special: with the tokens that the
// model wants around a text.
func (e engines) tokenize(t *testing.T, special bool, texts []string) [][]int {
	t.Helper()
	args := []string{"tokenize", e.name, "--input", writeJSON(t, texts)}
	if special {
		args = append(args, "--special")
	}
	var ids [][]int
	if err := json.Unmarshal(e.foretoken(t, args...), &ids); err != nil || len(ids) != len(texts) {
		t.Fatalf("foretoken tokenize: %d arrays for %d texts, %v", len(ids), len(texts), err)
	}
	return ids
}

func (e engines) oracleTokenize(t *testing.T, special bool, texts []string) [][]int {
	t.Helper()
	args := []string{"tokenize"}
	if special {
		args = append(args, "bos")
	}
	var input bytes.Buffer
	for _, text := range texts {
		fmt.Fprintf(&input, "%d\n%s", len(text), text)
	}
	lines := lines(e.oracle(t, input.Bytes(), args...))
	if len(lines) != len(texts) {
		t.Fatalf("oracle tokenize: %d lines for %d texts", len(lines), len(texts))
	}
	ids := make([][]int, len(lines))
	for i, line := range lines {
		for field := range strings.FieldsSeq(line) {
			id, err := strconv.Atoi(field)
			if err != nil {
				t.Fatalf("oracle tokenize: %v", err)
			}
			ids[i] = append(ids[i], id)
		}
	}
	return ids
}

// A choice is llama.cpp's two best tokens in one row.
type choice struct {
	best, second               int
	bestLogprob, secondLogprob float64
}

func (e engines) oracleGreedy(t *testing.T, prompt []int, steps int) []choice {
	t.Helper()
	return e.choices(t, prompt, "greedy", steps)
}

// oracleBest returns the choices in the rows that predict the last tokens.
func (e engines) oracleBest(t *testing.T, tokens []int, last int) []choice {
	t.Helper()
	return e.choices(t, tokens, "best", last)
}

func (e engines) choices(t *testing.T, tokens []int, command string, n int) []choice {
	t.Helper()
	lines := lines(e.oracle(t, formatIDs(tokens), command, strconv.Itoa(n)))
	if len(lines) != n {
		t.Fatalf("oracle %s: %d lines for %d steps", command, len(lines), n)
	}
	choices := make([]choice, n)
	for i, line := range lines {
		c := &choices[i]
		if _, err := fmt.Sscan(line, &c.best, &c.bestLogprob, &c.second, &c.secondLogprob); err != nil {
			t.Fatalf("oracle %s: %q: %v", command, line, err)
		}
	}
	return choices
}

// scoreRows returns n rows of log-probabilities from row first on: [n, vocab].
func (e engines) scoreRows(t *testing.T, tokens []int, first, n int) [][]float32 {
	t.Helper()
	path := filepath.Join(t.TempDir(), "logprobs.f32")
	e.foretoken(t, "score", e.name, "--tokens", writeSequences(t, [][]int{tokens}), "--logprobs", path)

	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	rowBytes := info.Size() / int64(len(tokens))
	if rowBytes == 0 || rowBytes%4 != 0 || rowBytes*int64(len(tokens)) != info.Size() {
		t.Fatalf("foretoken score: %d bytes of log-probabilities are not %d rows of float32", info.Size(), len(tokens))
	}
	rows := make([][]float32, n)
	raw := make([]byte, rowBytes)
	for i := range rows {
		if _, err := f.ReadAt(raw, int64(first+i)*rowBytes); err != nil {
			t.Fatal(err)
		}
		rows[i] = make([]float32, rowBytes/4)
		for j := range rows[i] {
			rows[i][j] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*j:]))
		}
	}
	return rows
}

// perplexity is exp of the mean -logprob of the last tokens of each window.
func (e engines) perplexity(t *testing.T, windows [][]int, last int) float64 {
	t.Helper()
	var result struct{ Perplexity float64 }
	out := e.foretoken(t, "score", e.name, "--tokens", writeSequences(t, windows), "--score-last", strconv.Itoa(last))
	if err := json.Unmarshal(out, &result); err != nil {
		t.Fatalf("foretoken score: %v in %q", err, out)
	}
	return result.Perplexity
}

func (e engines) oraclePerplexity(t *testing.T, windows [][]int, last int) float64 {
	t.Helper()
	var input []byte
	for _, w := range windows {
		input = append(input, formatIDs(w)...)
	}
	sums := lines(e.oracle(t, input, "nll", strconv.Itoa(last)))
	if len(sums) != len(windows) {
		t.Fatalf("oracle nll: %d lines for %d windows", len(sums), len(windows))
	}
	total := 0.0
	for _, s := range sums {
		nll, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatalf("oracle nll: %v", err)
		}
		total += nll
	}
	return math.Exp(total / float64(len(windows)*last))
}

func writeSequences(t *testing.T, sequences [][]int) string {
	t.Helper()
	return writeJSON(t, map[string][][]int{"sequences": sequences})
}

func writeJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "input.json")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func formatIDs(ids []int) []byte {
	var line []byte
	for _, id := range ids {
		line = strconv.AppendInt(line, int64(id), 10)
		line = append(line, ' ')
	}
	return append(line, '\n')
}

// lines splits output whose every line ends in a newline.
func lines(out []byte) []string {
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}
