//go:build realmodel

package realmodel

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	window    = 512  // tokens of a perplexity window
	scored    = 256  // the last tokens of a window, the ones that count
	streamLen = 8192 // tokens of WikiText-2 that are evaluated
	steps     = 256  // tokens of a greedy continuation

	// How far apart in log-probability llama.cpp's two best tokens must be for
	// both engines to choose the same: with the decoded weights, where both
	// compute in floats, and with the file itself, where llama.cpp quantises
	// activations to 8 bits.
	floatGap, quantisedGap = 0.02, 0.5
	// The largest difference of a log-probability, with the decoded weights.
	floatTolerance = 0.01
)

type prompt struct{ name, text string }

// Prompts whose continuations differ in kind.
var prompts = []prompt{
	{"story", "Once upon a time, in a small village by the sea,"},
	{"facts", "The Pacific Ocean is the largest ocean on Earth. It covers"},
	{"code", "def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n"},
	{"series", "Monday, Tuesday, Wednesday,"},
}

type question struct {
	args []string // after `foretoken run MODEL`
	want string   // occurs in the answer
}

var models = []struct {
	name      string
	questions []question
}{
	{
		// An instruct model: questions go through its chat template. At 135 M
		// parameters and 4 bits it knows little; llama.cpp gives these answers too.
		name: "smollm2:135m",
		questions: []question{
			{[]string{"What is the chemical symbol for water?"}, "H2O"},
			{[]string{"--raw", "The capital of France is"}, "Paris"},
		},
	},
	{
		// A base model without a chat template: it continues text.
		name: "gemma3:270m",
		questions: []question{
			{[]string{"--raw", "Water boils at a temperature of"}, "100 degrees"},
			{[]string{"--raw", "2, 4, 6, 8, 10,"}, "12, 14, 16"},
		},
	},
}

func TestRealModels(t *testing.T) {
	foretoken := buildForetoken(t)
	for _, m := range models {
		t.Run(m.name, func(t *testing.T) {
			e := pull(t, foretoken, m.name)
			t.Run("tokenize", func(t *testing.T) { testTokenize(t, e) })
			t.Run("argmax", func(t *testing.T) { testArgmax(t, e) })
			t.Run("perplexity", func(t *testing.T) { testPerplexity(t, e) })
			for _, q := range m.questions {
				t.Run("answer", func(t *testing.T) { testAnswer(t, e, q) })
			}
		})
	}
}

// testTokenize: both tokenizers give the same ids for WikiText-2 as one text
// and for 3042 strings made to be hard, with and without special tokens added.
func testTokenize(t *testing.T, e engines) {
	var corpus []string
	if err := json.Unmarshal([]byte(readData(t, "tokenizer/corpus.json")), &corpus); err != nil {
		t.Fatal(err)
	}
	texts := append([]string{wikitext(t)}, corpus...)
	for _, special := range []bool{false, true} {
		got, want := e.tokenize(t, special, texts), e.oracleTokenize(t, special, texts)
		different := 0
		for i, text := range texts {
			if at := firstDifference(got[i], want[i]); at >= 0 {
				if different++; different <= 10 {
					t.Errorf("special=%v, text %d (%.40q): token %d differs: got %v, llama.cpp %v",
						special, i, text, at, around(got[i], at), around(want[i], at))
				}
			}
		}
		if different > 0 {
			t.Errorf("special=%v: %d of %d texts differ", special, different, len(texts))
		}
	}
}

// testArgmax: fed llama.cpp's own greedy text, the most probable next token is
// llama.cpp's wherever its two best are not close.
func testArgmax(t *testing.T, e engines) {
	decoded := e.decode(t)
	// With its continuation longer than Gemma's attention window of 512 tokens.
	long := prompt{"long", strings.Join(strings.Split(readData(t, "text/alice_11-0.txt"), "\n")[60:100], "\n")}
	for _, p := range append([]prompt{long}, prompts...) {
		t.Run(p.name, func(t *testing.T) {
			tokens := e.oracleTokenize(t, true, []string{p.text})[0]
			length := len(tokens)
			quantised := e.oracleGreedy(t, tokens, steps)
			for _, c := range quantised {
				tokens = append(tokens, c.best)
			}
			rows := e.scoreRows(t, tokens, length-1, steps)

			compareChoices(t, "file", rows, quantised, quantisedGap)
			floats := decoded.oracleBest(t, tokens, steps)
			worst := compareChoices(t, "decoded", rows, floats, floatGap)
			if !(worst <= floatTolerance) {
				t.Errorf("decoded: log-probability of the best token differs by %v", worst)
			}
		})
	}
}

// compareChoices fails where llama.cpp's two best are more than gap apart and
// the most probable token of the row is another one. It returns the largest
// difference of the best token's log-probability.
func compareChoices(t *testing.T, weights string, rows [][]float32, choices []choice, gap float64) (worst float64) {
	t.Helper()
	decided, agree, wide := 0, 0, 0
	for i, c := range choices {
		row := rows[i]
		worst = max(worst, math.Abs(float64(row[c.best])-c.bestLogprob))
		best := argmax(row)
		if best == c.best {
			agree++
		} else if c.bestLogprob-c.secondLogprob > 0.2 {
			wide++
		}
		if c.bestLogprob-c.secondLogprob <= gap {
			continue
		}
		decided++
		if best != c.best {
			t.Errorf("%s, step %d: most probable token %d (%.3f), llama.cpp %d (%.3f) before %d (%.3f)", weights, i,
				best, row[best], c.best, c.bestLogprob, c.second, c.secondLogprob)
		}
	}
	if decided < len(choices)/2 {
		t.Errorf("%s: only %d of %d steps have a clear best token: choose another prompt", weights, decided, len(choices))
	}
	t.Logf("%s: same token at %d of %d steps, at all %d with a gap over %g, at all but %d with one over 0.2; log-probability of the best differs by at most %.4f",
		weights, agree, len(choices), decided, gap, wide, worst)
	return worst
}

// testPerplexity: within 1 % of llama.cpp's on the same windows. The stream
// is cut as llama-perplexity does it: tokens with the model's beginning-of-
// sequence token where it wants one, which also replaces the first token of
// every window.
func testPerplexity(t *testing.T, e engines) {
	stream := e.oracleTokenize(t, true, []string{wikitext(t)})[0]
	bos := e.oracleTokenize(t, true, []string{""})[0] // empty where the model wants none
	var windows [][]int
	for from := 0; from < streamLen; from += window {
		w := append([]int(nil), stream[from:from+window]...)
		copy(w, bos)
		windows = append(windows, w)
	}

	want := e.oraclePerplexity(t, windows, scored)
	got := e.perplexity(t, windows, scored)
	t.Logf("perplexity %.4f, llama.cpp %.4f: %+.3f %%", got, want, 100*(got/want-1))
	if !(math.Abs(got/want-1) <= 0.01) {
		t.Errorf("perplexity %v, llama.cpp %v: differ by more than 1 %%", got, want)
	}
}

func testAnswer(t *testing.T, e engines, q question) {
	args := append([]string{"run", e.name, "--temperature", "0", "--max-tokens", "32"}, q.args...)
	answer := string(e.foretoken(t, args...))
	t.Logf("%q → %q", q.args[len(q.args)-1], answer)
	if !strings.Contains(answer, q.want) {
		t.Errorf("answer %q does not contain %q", answer, q.want)
	}
}

func wikitext(t *testing.T) string { return readData(t, "text/wikitext2_test.txt") }

func readData(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("FORETOKEN_DATA")
	if dir == "" {
		dir = "../../../shared/data"
	}
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func argmax(row []float32) int {
	best := 0
	for i, v := range row {
		if v > row[best] {
			best = i
		}
	}
	return best
}

// firstDifference is -1 if a and b are equal.
func firstDifference(a, b []int) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return -1
}

func around(ids []int, at int) []int {
	return ids[min(max(at-2, 0), len(ids)):min(at+3, len(ids))]
}
