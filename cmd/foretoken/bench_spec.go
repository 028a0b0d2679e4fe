package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/foretoken/foretoken/internal/bench/spec"
	"github.com/foretoken/foretoken/internal/engine"
)

type benchSpecCmd struct {
	Model string `arg:"" name:"MODEL" help:"Model to measure."`

	Methods     []string `placeholder:"NAME" env:"METHODS" help:"Methods to measure: ngram, suffix, draft_model, mtp, auto. By default that of --speculative-config, or else ngram and suffix."`
	Fixed       []int    `placeholder:"N" env:"FIXED" help:"Measure each method also with N drafted tokens in every step, whether that pays or not, and compare."`
	Prompts     []string `placeholder:"SET" env:"PROMPTS" default:"code-edit,summarise" help:"NAME=FILE: a data set in the form of GSM8K, HumanEval or MT-Bench. code-edit and summarise are made by the program, of texts that it brings or of =FILE. By default these two."`
	Concurrency []int    `placeholder:"N" env:"CONCURRENCY" default:"1,2,4,8,16" help:"Requests at a time, by default 1, 2, 4, 8 and 16."`
	NumPrompts  int      `placeholder:"N" env:"NUM_PROMPTS" default:"4" help:"Requests of a run, by default 4, or twice as many as run at a time if those are several and that is more."`
	OutputLen   int      `placeholder:"N" env:"OUTPUT_LEN" default:"128" help:"Most tokens of an answer, by default 128."`
	Temperature float32  `placeholder:"T" env:"TEMPERATURE" default:"0" help:"Divides the logits; 0, the default: always the most likely token."`
	IgnoreEOS   bool     `name:"ignore-eos" env:"IGNORE_EOS" help:"Go on after the token that ends an answer."`
	Raw         bool     `env:"RAW" help:"Continue questions as plain text, without the chat template."`
	Seed        uint64   `placeholder:"N" env:"SEED" help:"Of the answers, where the temperature is above 0."`
	Runs        int      `placeholder:"N" env:"RUNS" help:"Rounds, of which figures are medians, by default 5, or 9 with --fixed."`

	SimulateAcceptance []float64 `placeholder:"A" env:"SIMULATE_ACCEPTANCE" help:"Instead of a method, accept drafts of no meaning with these probabilities, by position and given that those before are accepted: what drafts of such quality would gain here."`
	SimulateDraftCost  float64   `placeholder:"C" env:"SIMULATE_DRAFT_COST" help:"Time of drafting then, in decoding steps."`

	JSON string `name:"json" placeholder:"FILE" env:"JSON" help:"Write the figures, with those of each round, as JSON."`
	HTML string `name:"html" placeholder:"FILE" env:"HTML" help:"Write a page with the figures and plots."`

	speculationFlags
	engineFlags
	dtypeFlags
}

// Help is shown by --help.
func (benchSpecCmd) Help() string {
	return `Answers the same prompts with speculation and without, in turns, in this process, and prints tokens a second of
both, their ratio, τ (tokens that a verification of drafts commits) and how often drafts are accepted by
position. --speculative-config says how methods draft, as for serve. Prompts are computed before the time is
taken. Every ratio is the median of those within a round. It is an error if speculation changes an answer,
except under rejection or block verification above temperature 0. docs/benchmarking.md describes each figure.

    foretoken bench spec smollm2:135m
    foretoken bench spec ./model.gguf --methods ngram,suffix --fixed 1,2,4,7 --html report.html
    foretoken bench spec ./model --prompts gsm8k=gsm8k_test.jsonl,humaneval=HumanEval.jsonl.gz,code-edit
    foretoken bench spec ./model --speculative-config '{"method": "draft_model", "model": "self:q4"}' --temperature 1
    foretoken bench spec ./model --simulate-acceptance 0.9,0.8,0.7 --simulate-draft-cost 0.1 --fixed 1,2,4`
}

// Validate is called by kong. --methods names methods, too.
func (c *benchSpecCmd) Validate() error {
	_, _, err := c.said()
	return cmp.Or(err, c.engineFlags.Validate())
}

// Run measures.
func (c *benchSpecCmd) Run(ctx context.Context) error {
	o, err := c.measured(ctx)
	if err != nil {
		return err
	}
	for _, file := range []string{c.JSON, c.HTML} {
		if _, err := os.Stat(filepath.Dir(file)); err != nil { // better now than after an hour
			return err
		}
	}
	path, err := fetch(ctx, c.Model)
	if err != nil {
		return err
	}
	o.Open = func(ctx context.Context, s engine.Speculation) (*engine.Engine, error) {
		how := c.options(c.dtypeFlags)
		how.Speculation, how.MaxSeqs = s, slices.Max(c.Concurrency)
		return c.open(ctx, path, how)
	}
	var p progress
	defer p.end()
	o.Progress = func(done, total int) { p.step("measuring", int64(done), int64(total)) }
	report, err := spec.Run(ctx, o)
	if err != nil {
		return err
	}
	p.end()
	report.Model = c.Model
	return c.write(report)
}

// write writes the report in every form that was asked for.
func (c *benchSpecCmd) write(report *spec.Report) error {
	if c.JSON != "" {
		if err := writeFile(c.JSON, func(f *os.File) error { return json.NewEncoder(f).Encode(report) }); err != nil {
			return err
		}
	}
	if c.HTML != "" {
		if err := writeFile(c.HTML, func(f *os.File) error { return report.WriteHTML(f) }); err != nil {
			return err
		}
	}
	fmt.Printf("%s, %s\n", harmless(report.Model), harmless(report.CPU))
	if err := report.WriteTable(os.Stdout); err != nil {
		return err
	}
	if n := report.Differ(); n > 0 {
		return fmt.Errorf("%d answers with speculation differ from those without: expected the same", n)
	}
	return nil
}

// measured is what the flags ask for.
func (c *benchSpecCmd) measured(ctx context.Context) (o spec.Options, err error) {
	o = spec.Options{
		Fixed: c.Fixed, Concurrency: c.Concurrency, Requests: c.NumPrompts, MaxTokens: c.OutputLen,
		Temperature: c.Temperature, IgnoreEOS: c.IgnoreEOS, Raw: c.Raw, Seed: c.Seed, Runs: c.Runs,
	}
	if o.Runs == 0 {
		o.Runs = 5
		if len(c.Fixed) > 0 {
			o.Runs = 9 // pairs, where a difference of a few percent counts
		}
	}
	if !(c.Temperature >= 0 && c.Temperature <= 100) {
		return o, usagef("--temperature %v: expected 0 to 100", c.Temperature)
	}
	if o.Sets, err = promptSets(c.Prompts); err != nil {
		return o, err
	}
	if o.Methods, err = c.methods(ctx); err != nil {
		return o, err
	}
	if err := o.Check(); err != nil {
		return o, usageError{err}
	}
	return o, nil
}

// methods are what is measured. Those that draft without a model get none.
func (c *benchSpecCmd) methods(ctx context.Context) (list []spec.Method, err error) {
	said, _, err := c.said()
	if err != nil {
		return nil, err
	}
	if len(c.SimulateAcceptance) > 0 {
		if len(c.Methods) > 0 || said.Method != "" {
			return nil, usagef("--simulate-acceptance is instead of a method")
		}
		said.Simulate, said.SimulateCost = simulated(c.SimulateAcceptance, c.Fixed), c.SimulateDraftCost
		return []spec.Method{{Name: "simulated", Speculation: said}}, nil
	}
	if c.SimulateDraftCost != 0 {
		return nil, usagef("--simulate-draft-cost goes with --simulate-acceptance")
	}
	names := c.Methods
	switch {
	case len(names) > 0:
	case said.Method != "":
		names = []string{said.Method}
	default:
		names = []string{"ngram", "suffix"}
	}
	for _, name := range names {
		if !slices.Contains(engine.SpeculationMethods, name) {
			return nil, usagef("--methods %.40q: expected %s", name, strings.Join(engine.SpeculationMethods, ", "))
		}
	}
	if err := fetchDraft(ctx, &said); err != nil {
		return nil, err
	}
	for _, name := range names {
		s := said
		s.Method = name
		if name != "draft_model" && name != "auto" {
			s.Model, s.Tree, s.TopK, s.Nodes = "", "", 0, 0
		}
		list = append(list, spec.Method{Name: name, Speculation: s})
	}
	return list, nil
}

// simulated is an acceptance for as many positions as are drafted: the last one
// holds for those behind it, as in plan spec. More than most is refused anyway.
func simulated(acceptance []float64, fixed []int) []float64 {
	const most = 1 << 10
	out := slices.Clone(acceptance)
	for _, n := range fixed {
		for len(out) < min(n, most) {
			out = append(out, acceptance[len(acceptance)-1])
		}
	}
	return out
}

// promptSets reads what --prompts names. A name may come several times.
func promptSets(list []string) (sets []spec.Set, err error) {
	for _, item := range list {
		name, file, _ := strings.Cut(item, "=")
		var set spec.Set
		made := slices.Contains(spec.Made(), name)
		switch {
		case name == "" || file == "" && !made:
			return nil, usagef("--prompts %.40q: expected NAME=FILE, %s", item, strings.Join(spec.Made(), " or "))
		case file == "":
			set, err = spec.Shipped(name)
		default:
			var data []byte
			if data, err = readInput(file); err != nil {
				return nil, err
			}
			if made {
				set, err = spec.Make(name, filepath.Base(file), string(data))
			} else {
				set, err = spec.ReadSet(name, data)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("--prompts %s: %w", item, err)
		}
		if i := slices.IndexFunc(sets, func(s spec.Set) bool { return s.Name == name }); i >= 0 {
			sets[i].Prompts = append(sets[i].Prompts, set.Prompts...)
		} else {
			sets = append(sets, set)
		}
	}
	return sets, nil
}
