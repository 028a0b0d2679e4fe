package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/foretoken/foretoken/internal/bench/serve"
)

type benchServeCmd struct {
	BaseURL  string        `placeholder:"URL" env:"BASE_URL" default:"http://127.0.0.1:8000" help:"The server, with or without /v1, by default http://127.0.0.1:8000."`
	Endpoint string        `placeholder:"NAME" env:"ENDPOINT" default:"completions" enum:"completions,chat" help:"completions, the default, or chat."`
	Model    string        `placeholder:"NAME" env:"MODEL" help:"Model to ask for, by default the only one that the server has."`
	APIKey   string        `placeholder:"KEY" env:"API_KEY" help:"Sent as Authorization: Bearer KEY."`
	Timeout  time.Duration `placeholder:"TIME" env:"TIMEOUT" default:"10m" help:"Of a request until the end of its answer, by default 10m."`

	NumPrompts  int         `placeholder:"N" env:"NUM_PROMPTS" aliases:"limit" help:"Requests, by default 100, or all of a trace (--limit is the same)."`
	InputLen    serve.Range `placeholder:"N" env:"INPUT_LEN" default:"512" help:"Tokens of a prompt, by default 512. 100-900: drawn for each request."`
	OutputLen   serve.Range `placeholder:"N" env:"OUTPUT_LEN" default:"128" help:"Tokens to generate, by default 128, or a range."`
	PrefixLen   int         `placeholder:"N" env:"PREFIX_LEN" help:"Tokens that all prompts begin with, added to their lengths."`
	Interfere   int         `placeholder:"N" env:"INTERFERE" help:"Meanwhile, send prompts of N tokens one after another, to see what their prefill does to the other requests."`
	Trace       string      `placeholder:"FILE" env:"TRACE" help:"A trace that says arrivals, lengths and common prefixes: Azure's CSV, or Mooncake's JSON lines."`
	TimeScale   float64     `placeholder:"X" env:"TIME_SCALE" default:"1" help:"Multiplies the time between arrivals of a trace. 0: all arrive at once."`
	LengthScale float64     `placeholder:"X" env:"LENGTH_SCALE" default:"1" help:"Multiplies the lengths of a trace."`

	RequestRate float64 `placeholder:"R" env:"REQUEST_RATE" help:"Arrivals a second, as a Poisson process. inf: all at once."`
	Concurrency int     `placeholder:"N" env:"CONCURRENCY" aliases:"max-concurrency" help:"Requests at a time: a closed loop, by default of 16, or a bound on what a rate or a trace makes."`
	Warmups     int     `placeholder:"N" env:"WARMUPS" default:"1" help:"Requests before, which do not count, by default 1."`
	Seed        uint64  `placeholder:"N" env:"SEED" help:"Of lengths, prompts and arrivals."`

	Text      bool            `env:"TEXT" help:"Prompts of English words, about a token each, instead of token ids; chats have no other."`
	TokenIDs  serve.Range     `name:"token-ids" placeholder:"N-N" env:"TOKEN_IDS" default:"1000-31999" help:"Ids that prompts are made of, by default 1000-31999."`
	IgnoreEOS bool            `name:"ignore-eos" env:"IGNORE_EOS" default:"true" negatable:"" help:"Ask with ignore_eos for answers of full length, as by default."`
	ExtraBody json.RawMessage `placeholder:"JSON" env:"EXTRA_BODY" help:"An object with more fields of each request, such as {\"temperature\": 1}."`

	Goodput limits `placeholder:"LIMIT" env:"GOODPUT" help:"What good requests keep, in ms: ttft:200 tpot:50 e2e:5000, or some of these."`
	JSON    bool   `name:"json" env:"JSON" help:"Print the figures as one line of JSON."`
	HTML    string `name:"html" placeholder:"FILE" env:"HTML" help:"Write a report with plots."`
}

// Help is shown by --help.
func (benchServeCmd) Help() string {
	return `Sends requests to a server of the OpenAI API and times the streams that come back. TTFT is the time from
sending a request to the first token, E2E that to the last, TPOT (E2E − TTFT) / (tokens − 1), and ITL the time
between chunks. Tokens are counted by the server's usage, since a chunk may have several; where there is
none, by chunks, and the report says so.

Requests come in a closed loop (--concurrency), at random (--request-rate), or as in a trace (--trace), whose
common prefixes become common prefixes of the prompts. The same seed sends the same requests. What does not get
a place of --concurrency when it arrives waits, which is reported as delay and is not part of the latency.
Ctrl-C reports what has ended. docs/benchmarking.md describes each figure and field.

    foretoken bench serve --concurrency 16 --input-len 512 --output-len 128
    foretoken bench serve --request-rate 4 --input-len 100-900 --goodput ttft:200 tpot:50 --html report.html
    foretoken bench serve --concurrency 4 --num-prompts 4 --output-len 1000 --interfere 4096
    foretoken bench serve --trace mooncake.jsonl --limit 200 --time-scale 2 --length-scale 0.1 --json`
}

// limits are those of --goodput, which takes several values in a row, as vLLM's
// does, or one with spaces or commas.
type limits struct{ serve.Limits }

// Decode is called by kong.
func (l *limits) Decode(c *kong.DecodeContext) error {
	var words string
	if err := c.Scan.PopValueInto("limit", &words); err != nil {
		return err
	}
	for next := c.Scan.Peek(); next.InferredType() == kong.UntypedToken; next = c.Scan.Peek() {
		word, _ := next.Value.(string)
		if name, _, limit := strings.Cut(word, ":"); !limit || strings.HasPrefix(name, "-") {
			break
		}
		words += " " + c.Scan.Pop().String()
	}
	for _, word := range strings.FieldsFunc(words, func(r rune) bool { return r == ' ' || r == ',' }) {
		if err := l.Set(word); err != nil {
			return err
		}
	}
	return nil
}

// Run measures.
func (c *benchServeCmd) Run(ctx context.Context) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	if c.HTML != "" {
		if _, err := os.Stat(filepath.Dir(c.HTML)); err != nil { // better now than after an hour
			return fmt.Errorf("--html: %w", err)
		}
	}
	p := progress{}
	defer p.end()
	o.Progress = func(done, total int) { p.step("measuring", int64(done), int64(total)) }
	report, err := serve.Run(ctx, o)
	p.end()
	if report == nil {
		return err
	}
	if c.HTML != "" {
		if err := writeFile(c.HTML, func(f *os.File) error { return report.WriteHTML(f) }); err != nil {
			return err
		}
	}
	switch {
	case c.JSON:
		if err := printJSON(report); err != nil {
			return err
		}
	default:
		fmt.Printf("%s, %s\n\n", harmless(report.Model), report.URL)
		if err := report.WriteTable(os.Stdout); err != nil {
			return err
		}
	}
	if err == nil && report.Completed == 0 {
		return fmt.Errorf("none of %d requests was completed", report.Failed)
	}
	return err
}

func (c *benchServeCmd) options() (serve.Options, error) {
	o := serve.Options{
		BaseURL: c.BaseURL, Endpoint: serve.Completions, Model: c.Model, APIKey: c.APIKey, Timeout: c.Timeout,
		Requests: c.NumPrompts, Input: c.InputLen, Output: c.OutputLen, Prefix: c.PrefixLen, Interfere: c.Interfere,
		TimeScale: c.TimeScale, LengthScale: c.LengthScale, Rate: c.RequestRate, Concurrency: c.Concurrency,
		Text: c.Text, TokenIDs: c.TokenIDs, Seed: c.Seed, IgnoreEOS: c.IgnoreEOS, Warmups: c.Warmups, Goodput: c.Goodput.Limits,
	}
	if c.Endpoint == "chat" {
		o.Endpoint = serve.Chat
	}
	if len(c.ExtraBody) > 0 {
		if err := json.Unmarshal(c.ExtraBody, &o.Extra); err != nil || o.Extra == nil {
			return o, usagef("--extra-body: expected a JSON object")
		}
	}
	if c.Trace == "" {
		if c.TimeScale != 1 || c.LengthScale != 1 {
			return o, usagef("--time-scale and --length-scale go with --trace")
		}
		if o.Requests == 0 {
			o.Requests = 100
		}
		if o.Rate == 0 && o.Concurrency == 0 {
			o.Concurrency = 16
		}
	} else {
		data, err := readInput(c.Trace)
		if err != nil {
			return o, err
		}
		if o.Trace, err = serve.ReadTrace(bytes.NewReader(data)); err != nil {
			return o, fmt.Errorf("%s: %w", c.Trace, err)
		}
	}
	if err := o.Check(); err != nil {
		return o, usageError{err}
	}
	return o, nil
}
