package spec

import (
	"fmt"
	"slices"

	"github.com/foretoken/foretoken/internal/bench"
	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/kernel"
)

// A Report has the figures of all cells.
type Report struct {
	Model   string `json:"model"` // as the user named it
	CPU     string `json:"cpu"`   // the processor, and the instructions that kernels use
	Threads int    `json:"threads"`

	// Simulated says that acceptance was made up: what was generated is not the
	// model's text, and its speed is what such drafts would give.
	Simulated *Simulated `json:"simulated,omitempty"`

	Runs        int     `json:"runs"`
	Requests    int     `json:"requests"`   // of a run, or twice as many as run at a time
	MaxTokens   int     `json:"max_tokens"` // of an answer
	Temperature float32 `json:"temperature"`
	IgnoreEOS   bool    `json:"ignore_eos"`
	Seed        uint64  `json:"seed"`
	// PromptsTimed says that prompts are computed in the time of their answers,
	// because the model's cache shares no prefixes.
	PromptsTimed bool `json:"prompts_timed"`

	// Retractions count requests that gave their memory back to others and were
	// computed again in part, in the time of their answers.
	Retractions uint64 `json:"retractions"`

	Sets []Prompts `json:"sets"`
	Rows []Row     `json:"rows"`
}

// Simulated is an acceptance that was made up.
type Simulated struct {
	Acceptance []float64 `json:"acceptance"` // of each position, if those before are accepted
	DraftCost  float64   `json:"draft_cost"` // of a pass, in decoding steps
}

// Prompts says what was asked of a set.
type Prompts struct {
	Name    string  `json:"name"`
	Prompts int     `json:"prompts"` // that were asked
	Of      int     `json:"of"`      // that the set has
	Tokens  float64 `json:"tokens"`  // of a prompt on average
}

// A Row has the figures of a method on a set with so many requests at a time.
type Row struct {
	Prompts     string `json:"prompts"`
	Concurrency int    `json:"concurrency"`
	Method      string `json:"method"`
	Gamma       int    `json:"gamma,omitempty"` // drafted tokens where they are fixed; 0: as the method decides

	Plain float64 `json:"plain_tok_s"` // without speculation, of all requests together
	TokS  float64 `json:"tok_s"`
	Ratio float64 `json:"ratio"` // median of the ratios within a round

	Tau           float64   `json:"tau"`             // tokens that a verification of drafts committed, the model's own included
	TokensPerStep float64   `json:"tokens_per_step"` // that is with the steps in which nothing was drafted
	Drafted       uint64    `json:"drafted"`         // tokens that were verified
	Accepted      uint64    `json:"accepted"`
	Acceptance    []float64 `json:"acceptance"` // of position i: accepted that far, of the drafts that long
	Alpha         []float64 `json:"alpha"`      // the same if those before are accepted, as plan spec takes it

	BestGamma int     `json:"best_fixed,omitempty"`             // the fixed number that is fastest
	ToFixed   float64 `json:"adaptive_to_best_fixed,omitempty"` // median of the ratios within a round

	// Differ counts answers that are not what they are without speculation, and have
	// to be; null where they need not.
	Differ *int `json:"differing_answers"`

	PlainSamples []float64 `json:"plain_samples"` // tok_s of each round
	Samples      []float64 `json:"samples"`
}

func newReport(o *Options) *Report {
	r := &Report{
		Runs: o.Runs, Requests: o.Requests, MaxTokens: o.MaxTokens, Temperature: o.Temperature, IgnoreEOS: o.IgnoreEOS, Seed: o.Seed,
		Sets: []Prompts{}, Rows: []Row{},
	}
	for _, m := range o.Methods {
		if m.simulated() {
			r.Simulated = &Simulated{Acceptance: m.Speculation.Simulate, DraftCost: m.Speculation.SimulateCost}
		}
	}
	return r
}

func (r *Report) machine(e *engine.Engine) {
	r.CPU, r.Threads = fmt.Sprintf("%s, %v", bench.Processor(), kernel.ThisCPU()), e.Threads()
	r.PromptsTimed = e.PrefixCache() != nil
}

// set notes what is asked of a set; methods ask the same.
func (r *Report) set(name string, asked [][]int32, of int) {
	if slices.ContainsFunc(r.Sets, func(s Prompts) bool { return s.Name == name }) {
		return
	}
	tokens := 0
	for _, p := range asked {
		tokens += len(p)
	}
	r.Sets = append(r.Sets, Prompts{Name: name, Prompts: len(asked), Of: of, Tokens: float64(tokens) / float64(len(asked))})
}

// Differ is how many answers are not what they have to be.
func (r *Report) Differ() (n int) {
	for i := range r.Rows {
		if d := r.Rows[i].Differ; d != nil {
			n += *d
		}
	}
	return n
}

// rows are those of a cell, one for each variant that speculates: first that which
// decides itself, then those of fixed numbers of drafted tokens.
func (c *cell) rows() (rows []Row) {
	for i := 1; i < len(c.variants); i++ {
		plain, s := &c.samples[0], &c.samples[i]
		row := Row{
			Prompts: c.prompts, Concurrency: c.concurrency, Method: c.method.Name, Gamma: c.variants[i].gamma,
			Plain: plain.speed(), TokS: s.speed(), Ratio: s.ratio(plain), PlainSamples: plain.speeds, Samples: s.speeds,
			Drafted: s.counts.Drafted, Accepted: s.counts.Accepted,
		}
		row.Tau, row.TokensPerStep = s.tau()
		row.Acceptance, row.Alpha = acceptance(&s.counts)
		if c.exact {
			row.Differ = &s.differ
		}
		rows = append(rows, row)
	}
	if len(rows) == 1 {
		return rows
	}
	best := 1
	for i := 2; i < len(rows); i++ {
		if rows[i].Ratio > rows[best].Ratio {
			best = i
		}
	}
	rows[0].BestGamma, rows[0].ToFixed = rows[best].Gamma, c.samples[1].ratio(&c.samples[1+best])
	return rows
}

// tau is the mean number of tokens that a step of a sequence committed: of steps
// that verified drafts, and of all after the prompt's. Steps without drafts commit
// one token each.
func (s *samples) tau() (rounds, steps float64) {
	n := &s.counts
	if s.tokens > 0 {
		steps = float64(s.tokens) / float64(n.Rounds+max(uint64(s.tokens), n.Tokens)-n.Tokens)
	}
	return n.Tau(), steps
}

// acceptance is how often drafts were accepted as far as each position, of those
// that went so far, and how often if the positions before were accepted. The latter
// is estimated by the quotient of neighbours, for what was not drafted says nothing.
func acceptance(n *engine.SpeculationStats) (reach, alpha []float64) {
	reach, alpha = append([]float64{}, n.Acceptance()...), []float64{}
	before := 1.0
	for _, r := range reach {
		a := 0.0
		if before > 0 {
			a = min(r/before, 1)
		}
		alpha = append(alpha, a)
		before = r
	}
	return reach, alpha
}
