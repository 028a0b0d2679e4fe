package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/foretoken/foretoken/internal/bench"
	"github.com/foretoken/foretoken/internal/spec/adapt"
)

// planVerbs are what can be planned.
type planVerbs struct {
	Spec planSpecCmd `cmd:"" envprefix:"FORETOKEN_PLAN_SPEC_" help:"How many tokens to draft, and what it gains."`
}

type planSpecCmd struct {
	Model string `arg:"" optional:"" name:"MODEL" help:"Model whose steps are measured here, without --steps."`

	Alpha       []float64 `placeholder:"A" env:"ALPHA" required:"" help:"How often a drafted token is accepted if those before it are: one number, or one for each position, the last of which holds for those behind."`
	DraftCost   float64   `placeholder:"C" env:"DRAFT_COST" default:"0" help:"Time of a drafting pass, in steps of as many sequences without drafts, by default 0."`
	Block       bool      `env:"BLOCK" help:"One pass drafts all tokens. By default each token is a pass."`
	Steps       stepTimes `placeholder:"ROWS=TIME" env:"STEPS" help:"How long steps take by their rows, such as 1=12ms,2=12.4ms,4=13ms,8=15ms. Between them times are interpolated; behind the last they grow with the rows."`
	Concurrency []int     `placeholder:"N" env:"CONCURRENCY" default:"1,2,4,8,16" help:"Sequences at a time, by default 1, 2, 4, 8 and 16."`
	MostTokens  int       `name:"num-speculative-tokens" placeholder:"N" env:"NUM_SPECULATIVE_TOKENS" default:"16" help:"Most tokens to draft, by default 16."`
	Context     int       `placeholder:"N" env:"CONTEXT" default:"0" help:"Tokens that precede what is measured of MODEL, by default 0."`
	Runs        int       `placeholder:"N" env:"RUNS" default:"5" help:"Runs of such a measurement, of which times are medians, by default 5."`
	JSON        bool      `name:"json" env:"JSON" help:"Print the plan as one line of JSON, with every number of drafted tokens."`

	engineFlags
	dtypeFlags
}

// Help is shown by --help.
func (planSpecCmd) Help() string {
	return `Prints, for each number of sequences at a time, the number γ of drafted tokens that gains most over decoding
without drafts, by two reckonings. Both commit τ = 1 + α1 + α1·α2 + … tokens in a step, which for one α is
(1 − α^(γ+1)) / (1 − α).

    constant    a step takes the same time for any number of rows: the speed-up is τ / (γ·c + 1)
                (Leviathan et al., 2211.17192, theorem 3.8). What drafts could gain on a machine that has
                arithmetic to spare.
    measured    the time of a token is (T_draft + T_verify) / τ, with T_verify by the table of step times for as
                many rows as all sequences verify, and for each pass of the drafter T_draft is c times a step without drafts.

α is what bench spec measures: alpha in its JSON.

    foretoken plan spec --alpha 0.8 --draft-cost 0.1 --steps 1=12ms,2=12.4ms,4=13ms,8=15ms,16=22ms
    foretoken plan spec ./model.gguf --alpha 0.85,0.8,0.7 --draft-cost 0.05 --context 512 --json`
}

// stepTimes are durations of steps by their numbers of rows.
type stepTimes map[int]time.Duration

// UnmarshalText is called by kong.
func (s *stepTimes) UnmarshalText(text []byte) error {
	*s = stepTimes{}
	for item := range strings.SplitSeq(string(text), ",") {
		rows, took, _ := strings.Cut(strings.TrimSpace(item), "=")
		n, err1 := strconv.Atoi(rows)
		d, err2 := time.ParseDuration(took)
		if err1 != nil || err2 != nil || n < 1 || d <= 0 || d > time.Hour {
			return fmt.Errorf("%.40q: expected rows and a time above 0 and no longer than an hour, such as 4=13ms", item)
		}
		if _, twice := (*s)[n]; twice {
			return fmt.Errorf("%d rows have two times", n)
		}
		(*s)[n] = d
	}
	return nil
}

// Validate is called by kong.
func (c *planSpecCmd) Validate() error {
	for i, a := range c.Alpha {
		if !(a >= 0 && a <= 1) {
			return fmt.Errorf("--alpha %v at position %d: expected 0 to 1", a, i+1)
		}
	}
	switch {
	case (c.Steps == nil) == (c.Model == ""):
		return fmt.Errorf("expected either MODEL, to measure it, or --steps")
	case !(c.DraftCost >= 0 && c.DraftCost <= 100):
		return fmt.Errorf("--draft-cost %v: expected 0 to 100", c.DraftCost)
	case c.MostTokens < 1 || c.MostTokens > mostPlanned:
		return fmt.Errorf("--num-speculative-tokens %d: expected 1 to %d", c.MostTokens, mostPlanned)
	case len(c.Concurrency) == 0 || slices.Min(c.Concurrency) < 1 || slices.Max(c.Concurrency) > mostPlanned:
		return fmt.Errorf("--concurrency %v: expected numbers from 1 to %d", c.Concurrency, mostPlanned)
	case c.Steps != nil && c.Steps[1] == 0:
		return fmt.Errorf("--steps: expected the time of one row among them, such as 1=12ms")
	case c.Runs < 1 || c.Context < 0:
		return fmt.Errorf("--runs %d and --context %d: expected at least 1, and no negative number", c.Runs, c.Context)
	}
	return nil
}

const mostPlanned = 128

// A specPlan is what plan spec prints.
type specPlan struct {
	Alpha     []float64       `json:"alpha"`
	DraftCost float64         `json:"draft_cost"`
	Block     bool            `json:"block"`
	Model     string          `json:"model,omitempty"` // whose steps were measured
	Steps     []stepTime      `json:"steps"`
	Plans     []planAtOneTime `json:"plans"`
}

type stepTime struct {
	Rows int     `json:"rows"`
	MS   float64 `json:"ms"`
}

// A planAtOneTime is for so many sequences at a time.
type planAtOneTime struct {
	Concurrency int       `json:"concurrency"`
	PlainMS     float64   `json:"plain_ms"` // of a step without drafts
	Constant    reckoning `json:"constant"`
	Measured    reckoning `json:"measured"`
}

// A reckoning has every number of drafted tokens from 0 on.
type reckoning struct {
	Best    gamma   `json:"best"`
	Options []gamma `json:"options"`
}

type gamma struct {
	Gamma   int     `json:"gamma"`
	Tau     float64 `json:"tau"`
	TokenMS float64 `json:"token_ms"` // of a sequence
	Speedup float64 `json:"speedup"`
}

// Run plans.
func (c *planSpecCmd) Run(ctx context.Context) error {
	if len(c.Alpha) == 0 {
		return usagef("--alpha: expected a number, such as 0.8")
	}
	times := c.Steps
	if times == nil {
		var err error
		if times, err = c.measure(ctx); err != nil {
			return err
		}
	}
	p, err := c.plan(times)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(p)
	}
	return p.write()
}

// measure measures forwards of as many rows as drafts can have.
func (c *planSpecCmd) measure(ctx context.Context) (stepTimes, error) {
	path, err := fetch(ctx, c.Model)
	if err != nil {
		return nil, err
	}
	e, err := c.open(ctx, path, c.options(c.dtypeFlags))
	if err != nil {
		return nil, err
	}
	defer e.Close()
	var p progress
	defer p.end()
	o := bench.Options{
		Contexts: []int{c.Context}, Runs: c.Runs,
		Verify:   adapt.Grid(max(1, min(slices.Max(c.Concurrency)*(1+c.MostTokens), e.MaxModelLen()-c.Context))),
		Progress: func(done, total int) { p.step("measuring", int64(done), int64(total)) },
	}
	report, err := bench.Run(ctx, e, o)
	if err != nil {
		return nil, err
	}
	times := stepTimes{}
	for _, v := range report.Verify {
		times[v.K] = max(time.Duration(v.MS*float64(time.Millisecond)), 1)
	}
	return times, nil
}

// plan reckons.
func (c *planSpecCmd) plan(times stepTimes) (*specPlan, error) {
	rows := slices.Sorted(maps.Keys(times))
	took := make([]time.Duration, len(rows))
	for i, n := range rows {
		took[i] = times[n]
	}
	measured, err := adapt.NewSteps(rows, took)
	if err != nil {
		return nil, err
	}
	most := slices.Max(c.Concurrency) * (1 + c.MostTokens)
	constant, err := adapt.NewSteps([]int{1, most}, []time.Duration{took[0], took[0]})
	if err != nil {
		return nil, err
	}
	p := &specPlan{Alpha: c.Alpha, DraftCost: c.DraftCost, Block: c.Block, Model: c.Model, Plans: []planAtOneTime{}}
	for _, n := range rows {
		p.Steps = append(p.Steps, stepTime{n, ms(measured.Time(n))})
	}
	for _, n := range c.Concurrency {
		p.Plans = append(p.Plans, planAtOneTime{n, ms(measured.Time(n)), c.reckon(constant, n), c.reckon(measured, n)})
	}
	return p, nil
}

// reckon lists what each number of drafted tokens gives.
func (c *planSpecCmd) reckon(steps *adapt.Steps, concurrency int) (r reckoning) {
	plain := ms(steps.Time(concurrency))
	all := adapt.Plan(c.Alpha, c.DraftCost, c.Block, steps, concurrency, c.MostTokens)
	for _, o := range append(all, adapt.BestOption(all)) {
		r.Options = append(r.Options, gamma{o.Gamma, o.Tokens, plain / o.Speedup, o.Speedup})
	}
	r.Best, r.Options = r.Options[len(all)], r.Options[:len(all)]
	return r
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }

// write prints the plan for people.
func (p *specPlan) write() error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "rows of a step")
	for _, s := range p.Steps {
		fmt.Fprintf(w, "\t%d", s.Rows)
	}
	fmt.Fprint(w, "\nms")
	for _, s := range p.Steps {
		fmt.Fprintf(w, "\t%.4g", s.MS)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Print("\n\n")
	fmt.Fprint(w, "\tconstant steps\t\t\tmeasured steps\t\t\t\t\n")
	fmt.Fprint(w, "at a time\tγ\tτ\tgain\tγ\tτ\tms a token\twithout\tgain\n")
	for _, at := range p.Plans {
		a, b := at.Constant.Best, at.Measured.Best
		fmt.Fprintf(w, "%d\t%d\t%.2f\t%.2f\t%d\t%.2f\t%.4g\t%.4g\t%.2f\n",
			at.Concurrency, a.Gamma, a.Tau, a.Speedup, b.Gamma, b.Tau, b.TokenMS, at.PlainMS, b.Speedup)
	}
	return w.Flush()
}
