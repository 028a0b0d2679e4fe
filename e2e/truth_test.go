package e2e

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A truth says what a model answers, as the command line does.
type truth struct{ model string }

// foretoken runs a verb and returns its standard output.
func foretoken(t *testing.T, args ...string) []byte {
	t.Helper()
	out, err := exec.CommandContext(within(t), program, args...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		t.Fatalf("foretoken %s: %v\n%s", strings.Join(args, " "), err, exit.Stderr)
	}
	if err != nil {
		t.Fatalf("foretoken %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// tokenize returns the ids of a text, without those that begin and end texts.
func (m truth) tokenize(t *testing.T, text string) (ids []int64) {
	t.Helper()
	parse(t, foretoken(t, "tokenize", m.model, text), &ids)
	return ids
}

// greedy returns the n most likely tokens behind a prompt.
func (m truth) greedy(t *testing.T, prompt []int64, n int) (ids []int64) {
	t.Helper()
	parse(t, foretoken(t, "run", m.model, "--tokens", commas(prompt), "--print-tokens",
		"--temperature", "0", "--max-tokens", strconv.Itoa(n), "--ignore-eos"), &ids)
	if len(ids) != n {
		t.Fatalf("%d tokens, want %d", len(ids), n)
	}
	return ids
}

// text is the greedy continuation of a text. The command line leaves out white
// space around it.
func (m truth) text(t *testing.T, prompt string, n int) string {
	t.Helper()
	return strings.TrimSpace(string(foretoken(t, "run", m.model, "--raw", prompt, "--temperature", "0", "--max-tokens", strconv.Itoa(n), "--ignore-eos")))
}

// answer is the greedy answer of a conversation's first turn.
func (m truth) answer(t *testing.T, prompt string, flags ...string) string {
	t.Helper()
	return strings.TrimSpace(string(foretoken(t, append([]string{"run", m.model, prompt, "--temperature", "0"}, flags...)...)))
}

// answerIDs are the tokens of a greedy answer, with the one that ends it.
func (m truth) answerIDs(t *testing.T, prompt []int64) (ids []int64) {
	t.Helper()
	parse(t, foretoken(t, "run", m.model, "--tokens", commas(prompt), "--print-tokens", "--temperature", "0"), &ids)
	return ids
}

// A message is one of a conversation.
type message struct{ Role, Content string }

// MarshalJSON writes what templates read.
func (m message) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"role": m.Role, "content": m.Content})
}

// render is the prompt of a conversation.
func (m truth) render(t *testing.T, messages ...message) string {
	t.Helper()
	context := filepath.Join(t.TempDir(), "context")
	data, err := json.Marshal(map[string]any{"messages": messages, "add_generation_prompt": true})
	if err == nil {
		err = os.WriteFile(context, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(foretoken(t, "render", "--template", m.model, "--context", context))
}

// next is the greedy answer to a conversation's last turn.
func (m truth) next(t *testing.T, messages ...message) string {
	t.Helper()
	return strings.TrimSpace(string(foretoken(t, "run", m.model, "--raw", m.render(t, messages...), "--temperature", "0")))
}

// scores returns log-probabilities, in the types that a server computes in:
// those of row i are of the token behind the first i+1.
func (m truth) scores(t *testing.T, ids []int64) [][]float32 {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	sequences, err := json.Marshal([][]int64{ids})
	if err == nil {
		err = os.WriteFile(in, sequences, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	foretoken(t, "score", m.model, "--tokens", in, "--logprobs", out, "--dtype", "auto", "--kv-cache-dtype", "auto")
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	vocab := len(data) / 4 / len(ids)
	rows := make([][]float32, len(ids))
	for i := range rows {
		rows[i] = make([]float32, vocab)
		for j := range rows[i] {
			rows[i][j] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*(i*vocab+j):]))
		}
	}
	return rows
}

// best is the most likely token of a row.
func best(row []float32) (id int64) {
	for i := range row {
		if row[i] > row[id] {
			id = int64(i)
		}
	}
	return id
}

func parse(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
}

func commas(ids []int64) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.FormatInt(id, 10)
	}
	return strings.Join(texts, ",")
}
