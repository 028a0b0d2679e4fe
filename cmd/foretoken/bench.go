package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/foretoken/foretoken/internal/bench"
	"github.com/foretoken/foretoken/internal/checkpoint/pull"
)

// benchVerbs are bench MODEL, whose command has no name of its own, and those
// that have one.
type benchVerbs struct {
	Model benchCmd      `cmd:"" name:" " default:"withargs" help:"Measure how fast a model runs here."`
	Serve benchServeCmd `cmd:"" envprefix:"FORETOKEN_BENCH_SERVE_" help:"Measure a server of the OpenAI API under load."`
	Spec  benchSpecCmd  `cmd:"" envprefix:"FORETOKEN_BENCH_SPEC_" help:"Measure what speculation gains."`
}

type benchCmd struct {
	Model string `arg:"" name:"MODEL" help:"Model to measure."`

	Prefill []int `placeholder:"N" env:"FORETOKEN_BENCH_PREFILL" help:"Lengths of prompts, by default 512, or less where the model does not go so far. 0: none."`
	Decode  int   `placeholder:"N" default:"128" env:"FORETOKEN_BENCH_DECODE" help:"Tokens to generate, by default 128. 0: none."`
	Verify  []int `placeholder:"N" default:"1,2,4,8,16" env:"FORETOKEN_BENCH_VERIFY" help:"Tokens to verify in one forward, by default 1, 2, 4, 8 and 16. 0: none."`
	Context []int `placeholder:"N" env:"FORETOKEN_BENCH_CONTEXT" help:"Tokens that precede generation and verification, by default 0 and, where the model goes so far, 2048."`
	Batch   []int `placeholder:"N" default:"1" env:"FORETOKEN_BENCH_BATCH" help:"Sequences that generate together, by default 1."`
	Runs    int   `placeholder:"N" default:"5" env:"FORETOKEN_BENCH_RUNS" help:"Runs, of which figures are medians, by default 5."`
	JSON    bool  `name:"json" env:"FORETOKEN_BENCH_JSON" help:"Print the figures as one line of JSON."`

	engineFlags
	dtypeFlags
}

// Help is shown by --help.
func (benchCmd) Help() string {
	return `Prefill is the time of a prompt from an empty cache to the logits of its last token. Decoding is steps of one
token a sequence with logits and the most probable token of each; beside every run memory is read with as many
threads, and "of the memory limit" is what a step reads of weights and cache, per second, as a share of that.
Verification is one forward of several tokens of a sequence with the logits of all, and its ratio to a forward
of one. Tokens are random. In each run every measurement has its turn, after one that does not count. A model
that can be pulled by its name is pulled on first use. For a server, see foretoken bench serve --help;
for speculation, foretoken bench spec --help.

    foretoken bench smollm2:135m
    foretoken bench ./model.gguf --threads 1 --prefill 128,512 --context 0,512,8192 --json`
}

// Run measures.
func (c *benchCmd) Run(ctx context.Context) error {
	if c.Runs < 1 || c.Decode < 0 {
		return usagef("--runs takes at least 1, and --decode no negative number")
	}
	path, err := fetch(ctx, c.Model)
	if err != nil {
		return err
	}
	e, err := c.open(ctx, path, c.options(c.dtypeFlags))
	if err != nil {
		return err
	}
	defer e.Close()
	p := progress{}
	defer p.end()
	o := bench.Options{
		Prefill: positive(c.Prefill), Decode: c.Decode, Contexts: c.Context, Batches: c.Batch, Verify: positive(c.Verify), Runs: c.Runs,
		Progress: func(done, total int) { p.step("measuring", int64(done), int64(total)) },
	}
	if c.Prefill == nil {
		o.Prefill = []int{512}
		if left := e.MaxModelLen() - 2*c.Decode; left < 512 && left > 0 {
			o.Prefill = []int{left} // beside the tokens to generate
		}
	}
	if o.Contexts == nil {
		o.Contexts = []int{0, 2048}
		if o.Fits(e) != nil {
			o.Contexts = []int{0}
		}
	}
	report, err := bench.Run(ctx, e, o)
	if err != nil {
		return err
	}
	p.end()
	report.Model = c.Model
	if c.JSON {
		return printJSON(report)
	}
	fmt.Printf("%s, %s\n", harmless(bench.Processor()), e.Machine())
	fmt.Printf("%s: %s of weights, %s of cache a token; medians ± standard deviations, runs: %d\n\n",
		harmless(report.Model), pull.ByteSize(report.WeightsBytes), pull.ByteSize(report.KVBytes), report.Runs)
	return report.WriteTable(os.Stdout)
}

// positive leaves out zeros, which stand for none.
func positive(list []int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(n int) bool { return n == 0 })
}
