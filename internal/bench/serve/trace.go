package serve

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Trace is requests as someone's users sent them, in the order in which they
// came.
type Trace struct {
	Requests []Request

	// BlockSize is how many tokens of a prompt each of Request.Blocks stands
	// for. 0: the trace does not say which prompts begin alike.
	BlockSize int
}

// A Request is one request of a load.
type Request struct {
	At     time.Duration // of its arrival, after the start
	Input  int           // tokens of the prompt
	Output int           // tokens to generate

	// Blocks name the parts of the prompt, from its beginning: where two
	// requests have the same block, their prompts have the same tokens there.
	Blocks []int64
}

// maxTokens bounds the tokens of a prompt, and of an answer.
const maxTokens = 1 << 20

// maxSpan bounds arrivals: a century is far from the ends of what a duration
// holds.
const maxSpan = 100 * 365 * 24 * time.Hour

// ReadTrace reads a trace in either of two formats, told apart by the content:
//
//   - Azure's LLM inference traces: CSV with the columns TIMESTAMP,
//     ContextTokens and GeneratedTokens;
//   - Mooncake's: a JSON object a line, with timestamp in ms, input_length,
//     output_length, and in hash_ids an id for each block of 512 tokens.
//
// Arrivals count from the first one. Errors name the line.
func ReadTrace(r io.Reader) (*Trace, error) {
	in := bufio.NewReader(r)
	begin, err := in.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var t *Trace
	if bytes.HasPrefix(bytes.TrimLeft(begin, " \t\r\n"), []byte("{")) {
		t, err = readMooncake(in)
	} else {
		t, err = readAzure(in)
	}
	if err != nil {
		return nil, err
	}
	if len(t.Requests) == 0 {
		return nil, errors.New("a trace without requests")
	}
	slices.SortStableFunc(t.Requests, func(a, b Request) int { return cmp.Compare(a.At, b.At) })
	first := t.Requests[0].At
	for i := range t.Requests {
		t.Requests[i].At -= first
	}
	return t, nil
}

// mooncakeBlock is the size of Mooncake's blocks in tokens. An id stands for
// its block and all before it.
const mooncakeBlock = 512

func readMooncake(r io.Reader) (*Trace, error) {
	t := &Trace{BlockSize: mooncakeBlock}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	n := 0
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var line struct {
			Timestamp *float64 `json:"timestamp"`
			Input     *int     `json:"input_length"`
			Output    *int     `json:"output_length"`
			Blocks    []int64  `json:"hash_ids"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if line.Timestamp == nil || line.Input == nil || line.Output == nil {
			return nil, fmt.Errorf("line %d: expected timestamp, input_length, output_length and hash_ids", n)
		}
		if at := *line.Timestamp; !(at >= 0 && at <= ms(maxSpan)) {
			return nil, fmt.Errorf("line %d: timestamp %v: expected milliseconds from a start", n, at)
		}
		request := Request{
			At:    time.Duration(*line.Timestamp * float64(time.Millisecond)),
			Input: *line.Input, Output: *line.Output, Blocks: line.Blocks,
		}
		if err := request.check(); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if want := (request.Input + mooncakeBlock - 1) / mooncakeBlock; len(request.Blocks) != want {
			return nil, fmt.Errorf("line %d: %d hash_ids: expected %d, one for each %d of %d tokens",
				n, len(request.Blocks), want, mooncakeBlock, request.Input)
		}
		t.Requests = append(t.Requests, request)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	return t, nil
}

// azureColumns are the columns of an Azure trace, of which it may have more.
var azureColumns = []string{"TIMESTAMP", "ContextTokens", "GeneratedTokens"}

func readAzure(r io.Reader) (*Trace, error) {
	rows := csv.NewReader(r)
	rows.ReuseRecord = true
	header, err := rows.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var column [3]int
	for i, name := range azureColumns {
		column[i] = slices.IndexFunc(header, func(s string) bool { return strings.TrimPrefix(s, "\ufeff") == name })
		if column[i] < 0 {
			return nil, fmt.Errorf("no column %s: expected a CSV file with %s, or a line of JSON for each request",
				name, strings.Join(azureColumns, ", "))
		}
	}
	t := &Trace{}
	var origin time.Time
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := rows.FieldPos(0)
		when, err := azureTime(row[column[0]])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		if len(t.Requests) == 0 {
			origin = when
		}
		at := when.Sub(origin)
		if at.Abs() > maxSpan {
			return nil, fmt.Errorf("line %d: TIMESTAMP %v: more than a century from the first", line, when)
		}
		input, err1 := strconv.Atoi(row[column[1]])
		output, err2 := strconv.Atoi(row[column[2]])
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("line %d: expected numbers of tokens: %w", line, err)
		}
		request := Request{At: at, Input: input, Output: output}
		if err := request.check(); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		t.Requests = append(t.Requests, request)
	}
}

// azureTime reads the time of 2023's traces, which names no zone, and of
// 2024's, which does.
func azureTime(s string) (t time.Time, err error) {
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00"} {
		if t, err = time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return t, fmt.Errorf("TIMESTAMP %.40q: expected a time such as 2023-11-16 18:17:03.9799600", s)
}

func (r *Request) check() error {
	for _, n := range []int{r.Input, r.Output} {
		if n < 1 || n > maxTokens {
			return fmt.Errorf("%d tokens: expected 1 to %d", n, maxTokens)
		}
	}
	return nil
}

// scaled returns the trace with time between arrivals and lengths multiplied.
// Prompts keep what they have in common, in blocks that are as much shorter.
func (t *Trace) scaled(timeScale, lengthScale float64) (*Trace, error) {
	length := func(n int) int { return max(1, int(math.Round(float64(n)*lengthScale))) }
	out := &Trace{Requests: slices.Clone(t.Requests)}
	if t.BlockSize > 0 {
		out.BlockSize = length(t.BlockSize)
	}
	for i := range out.Requests {
		r := &out.Requests[i]
		r.Input, r.Output = length(r.Input), length(r.Output)
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("request %d, scaled: %w", i, err)
		}
		r.At = time.Duration(min(float64(r.At)*timeScale, float64(maxSpan)))
	}
	return out, nil
}
