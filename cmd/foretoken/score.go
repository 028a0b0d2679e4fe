package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/tokenizer"
)

type scoreCmd struct {
	Model string `arg:"" name:"MODEL" help:"Model to score with."`

	Tokens   string `placeholder:"FILE" env:"FORETOKEN_SCORE_TOKENS" help:"Token ids: {\"sequences\": [[1, 2], …]}, or the list of lists alone."`
	Text     string `placeholder:"FILE" help:"Text to tokenize and cut into windows instead."`
	LogProbs string `name:"logprobs" placeholder:"FILE" help:"Where to write all log-probabilities."`

	ScoreLast int `placeholder:"N" default:"0" help:"Only the last N tokens of each sequence count. 0: all but the first."`
	Window    int `placeholder:"N" default:"0" help:"Length of the windows of --text. 0: 512, or the model's limit if that is less."`
	MaxTokens int `placeholder:"N" default:"0" env:"FORETOKEN_SCORE_MAX_TOKENS" help:"Use only the first N tokens of --text. 0: all."`
	Chunk     int `placeholder:"N" default:"0" help:"Rows evaluated at a time; the result is the same. 0: a whole sequence."`

	engineFlags
	DType        string `name:"dtype" group:"engine" placeholder:"TYPE" default:"float32" enum:"auto,float32" help:"Activations: auto or float32, the default here."`
	KVCacheDType string `name:"kv-cache-dtype" group:"engine" placeholder:"TYPE" default:"f32" enum:"auto,f32,f16,bf16,q8_0" help:"Keys and values of past tokens: auto, f16, bf16, q8_0 or f32, the default here."`
}

// Help is shown by --help.
func (scoreCmd) Help() string {
	return `Prints {"perplexity", "nll", "tokens", "sequences"}: nll is the mean of −ln p over the tokens that count,
perplexity its exponential. Each sequence is evaluated on its own from position 0, and each token is predicted
by those before it. The bits of the result depend neither on --chunk nor on --threads.

FILE of --logprobs gets ln p of every token at every position: little-endian float32 [rows, vocabulary], row r
being the prediction of what follows token r, the rows of all sequences one after another, without a header.

--text is tokenized as a whole, with the model's beginning-of-sequence token in front if it wants one, and cut
into windows, the last of which may be shorter. Where the model wants that token, it replaces the first one of
every window, as in llama.cpp's perplexity tool.

    foretoken score ./model --tokens tokens.json --logprobs out.f32
    foretoken score smollm2:135m --text wiki.txt --max-tokens 8192 --score-last 256`
}

// Run scores.
func (c *scoreCmd) Run(ctx context.Context) error {
	switch {
	case (c.Tokens == "") == (c.Text == ""):
		return usagef("give either --tokens or --text")
	case c.Text == "" && (c.Window != 0 || c.MaxTokens != 0):
		return usagef("--window and --max-tokens go with --text")
	case c.ScoreLast < 0 || c.Window < 0 || c.MaxTokens < 0 || c.Chunk < 0:
		return usagef("--score-last, --window, --max-tokens and --chunk cannot be negative")
	}
	path, err := locate(c.Model)
	if err != nil {
		return err
	}
	e, err := c.open(ctx, path, c.options(dtypeFlags{c.DType, c.KVCacheDType}))
	if err != nil {
		return err
	}
	defer e.Close()
	var sequences [][]int32
	if c.Tokens != "" {
		sequences, err = readSequences(c.Tokens, e)
	} else {
		sequences, err = c.windows(e)
	}
	if err != nil {
		return err
	}
	s := scorer{progress: progress{}}
	defer s.progress.end()
	if c.LogProbs == "" {
		err = s.all(ctx, e, sequences, c)
	} else {
		err = writeFile(c.LogProbs, func(f *os.File) error {
			s.out = newFloats(f)
			if err := s.all(ctx, e, sequences, c); err != nil {
				return err
			}
			return s.out.Flush()
		})
	}
	if err != nil {
		return err
	}
	s.progress.end()
	return printJSON(s.result(len(sequences)))
}

// readSequences reads {"sequences": [[…], …]}, [[…], …] or […].
func readSequences(path string, e *engine.Engine) ([][]int32, error) {
	const expected = `{"sequences": [[token ids], …]}`
	var raw json.RawMessage
	if err := readJSON(path, expected, &raw); err != nil {
		return nil, err
	}
	var file struct {
		Sequences json.RawMessage `json:"sequences"`
	}
	object := bytes.HasPrefix(raw, []byte("{"))
	if object {
		if err := json.Unmarshal(raw, &file); err != nil {
			return nil, fmt.Errorf("%s: %w: expected %s", path, err, expected)
		}
		raw = file.Sequences
	}
	var sequences [][]int32
	var one []int32
	var err error
	switch {
	case bytes.Contains(raw, []byte("null")): // which would be read as token 0
		err = errors.New("null is no token id")
	case len(raw) == 0:
	case !object && json.Unmarshal(raw, &one) == nil && len(one) > 0:
		sequences = [][]int32{one}
	default:
		err = json.Unmarshal(raw, &sequences)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w: expected %s", path, jsonError(err), expected)
	case len(sequences) == 0:
		return nil, fmt.Errorf("%s: no sequences: expected %s", path, expected)
	}
	for i, sequence := range sequences {
		if n := len(sequence); n == 0 || n > e.MaxModelLen() {
			return nil, fmt.Errorf("%s: sequence %d has %d tokens: expected 1 to %d", path, i, n, e.MaxModelLen())
		}
		for j, id := range sequence {
			if id < 0 || int(id) >= e.Config().Vocab {
				return nil, fmt.Errorf("%s: sequence %d: token %d is %d: expected 0 to %d", path, i, j, id, e.Config().Vocab-1)
			}
		}
	}
	return sequences, nil
}

// windows cuts the text as the help says.
func (c *scoreCmd) windows(e *engine.Engine) (windows [][]int32, err error) {
	data, err := readInput(c.Text)
	if err != nil {
		return nil, err
	}
	t, err := e.Tokenizer()
	if err != nil {
		return nil, err
	}
	tokens, err := t.Encode(string(data), tokenizer.Options{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Text, err)
	}
	bos, known := t.BOS()
	wanted := known && t.AddsBOS()
	if wanted {
		tokens = append([]int32{bos}, tokens...)
	}
	if c.MaxTokens > 0 && c.MaxTokens < len(tokens) {
		tokens = tokens[:c.MaxTokens]
	}
	size := c.Window
	if size == 0 {
		size = min(512, e.MaxModelLen())
	}
	if size < 2 || size > e.MaxModelLen() {
		return nil, usagef("--window %d: expected 2 to %d", size, e.MaxModelLen())
	}
	if len(tokens) < 2 {
		return nil, fmt.Errorf("%s: %d tokens, which leaves nothing to predict", c.Text, len(tokens))
	}
	for window := range slices.Chunk(tokens, size) {
		if wanted {
			window[0] = bos
		}
		windows = append(windows, window)
	}
	return windows, nil
}

// A scorer sums up log-probabilities, in float64 and in the order of the rows.
type scorer struct {
	out    *floats // nil: not asked for
	sum    float64 // of −ln p
	tokens int

	progress progress
}

func (s *scorer) all(ctx context.Context, e *engine.Engine, sequences [][]int32, c *scoreCmd) error {
	done, total := 0, 0
	for _, tokens := range sequences {
		total += len(tokens)
	}
	for i, tokens := range sequences {
		before := done
		done += len(tokens)
		last := len(tokens) - 1 // tokens that can count: each has one before it
		if c.ScoreLast > 0 {
			last = min(last, c.ScoreLast)
		}
		from := len(tokens) - 1 - last // the row before the first of them
		first := from
		if s.out != nil {
			first = 0
		} else if last == 0 {
			continue
		}
		err := e.Score(ctx, tokens, first, c.Chunk, func(row int, logits []float32) error {
			s.progress.step("scoring", int64(before+row+1), int64(total))
			norm := logSumExp(logits)
			if math.IsNaN(norm) || math.IsInf(norm, 0) {
				return fmt.Errorf("row %d: the logits are not finite: broken weights?", row)
			}
			if row >= from && row+1 < len(tokens) {
				s.sum += norm - float64(logits[tokens[row+1]])
				s.tokens++
			}
			if s.out == nil {
				return nil
			}
			return s.out.write(logits, norm)
		})
		if err != nil {
			return fmt.Errorf("sequence %d: %w", i, err)
		}
	}
	return nil
}

// logSumExp is ln Σ exp, in the order of the vocabulary.
func logSumExp(logits []float32) float64 {
	high := float64(logits[0])
	for _, v := range logits {
		high = max(high, float64(v))
	}
	var sum float64
	for _, v := range logits {
		sum += math.Exp(float64(v) - high)
	}
	return high + math.Log(sum)
}

// result is what score prints. What is not a number is null.
func (s *scorer) result(sequences int) any {
	nll := s.sum / float64(s.tokens)
	number := func(v float64) any {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
		return v
	}
	return struct {
		Perplexity any `json:"perplexity"`
		NLL        any `json:"nll"`
		Tokens     int `json:"tokens"`
		Sequences  int `json:"sequences"`
	}{number(math.Exp(nll)), number(nll), s.tokens, sequences}
}
