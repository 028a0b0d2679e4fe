package spec

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foretoken/foretoken/internal/engine"
)

// three is a cell of three rounds: no speculation, a method, and the same with 1
// and 4 drafted tokens.
func three() *cell {
	return &cell{
		method: &Method{Name: "ngram"}, prompts: "code", concurrency: 2, exact: true,
		variants: []*variant{{}, {}, {gamma: 1}, {gamma: 4}},
		samples: []samples{
			{speeds: []float64{10, 20, 40}},
			{
				// 10 tokens after the first ones: 7 in 3 rounds, and 3 one by one.
				speeds: []float64{20, 60, 40}, tokens: 10,
				counts: engine.SpeculationStats{Rounds: 3, Drafted: 8, Accepted: 4, Tokens: 7, Drafts: []uint64{3, 3, 2}, Accepts: []uint64{3, 1, 0}},
			},
			{speeds: []float64{15, 30, 60}},
			{speeds: []float64{25, 48, 50}, differ: 2},
		},
	}
}

// Ratios are medians of those within a round, and not ratios of medians.
func TestRows(t *testing.T) {
	none, two := 0, 2
	want := []Row{
		{
			Prompts: "code", Concurrency: 2, Method: "ngram", Plain: 20, TokS: 40, Ratio: 2,
			Tau: 7.0 / 3, TokensPerStep: 10.0 / 6, Drafted: 8, Accepted: 4, Acceptance: []float64{1, 1.0 / 3, 0}, Alpha: []float64{1, 1.0 / 3, 0},
			BestGamma: 4, ToFixed: 0.8, Differ: &none,
			PlainSamples: []float64{10, 20, 40}, Samples: []float64{20, 60, 40},
		},
		{
			Prompts: "code", Concurrency: 2, Method: "ngram", Gamma: 1, Plain: 20, TokS: 30, Ratio: 1.5, Acceptance: []float64{}, Alpha: []float64{},
			Differ: &none, PlainSamples: []float64{10, 20, 40}, Samples: []float64{15, 30, 60},
		},
		{
			Prompts: "code", Concurrency: 2, Method: "ngram", Gamma: 4, Plain: 20, TokS: 48, Ratio: 2.4, Acceptance: []float64{}, Alpha: []float64{},
			Differ: &two, PlainSamples: []float64{10, 20, 40}, Samples: []float64{25, 48, 50},
		},
	}
	got := three().rows()
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if n := (&Report{Rows: got}).Differ(); n != 2 {
		t.Errorf("%d answers differ, want 2", n)
	}
}

// A method that is measured alone is compared with nothing, and where the law may
// change texts nothing is said of them.
func TestRowsAlone(t *testing.T) {
	c := three()
	c.variants, c.samples, c.exact = c.variants[:2], c.samples[:2], false
	rows := c.rows()
	if len(rows) != 1 || rows[0].BestGamma != 0 || rows[0].ToFixed != 0 || rows[0].Differ != nil {
		t.Errorf("%+v, want one row without a comparison", rows)
	}
}

// What is accepted at a position if those before are is the quotient of neighbours.
func TestAcceptance(t *testing.T) {
	reach, alpha := acceptance(&engine.SpeculationStats{Drafts: []uint64{10, 8, 4, 4}, Accepts: []uint64{8, 4, 0, 0}})
	if diff := cmp.Diff([]float64{0.8, 0.5, 0, 0}, reach); diff != "" {
		t.Errorf("reached (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{0.8, 0.625, 0, 0}, alpha, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Errorf("α (-want +got):\n%s", diff)
	}
}

func report() *Report {
	return &Report{
		Model: "m<1>", CPU: "a processor", Threads: 2, Runs: 3, Requests: 4, MaxTokens: 16,
		Sets: []Prompts{{Name: "code", Prompts: 4, Of: 8, Tokens: 100.4}}, Rows: three().rows(), Retractions: 5,
	}
}

func TestWriteTable(t *testing.T) {
	var b strings.Builder
	if err := report().WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	const want = `Medians of 3 rounds in turns; 4 requests, or twice as many as run at a time; up to 16 tokens each; temperature 0.
code: 4 prompts of 8, of 100 tokens on average.
5 times a request gave its memory back and was computed again, for the cache was full: measure fewer at a time.
WRONG: 2 answers are not what they are without speculation.

code            at a time  plain tokens/s  tokens/s  ratio  τ     tokens a step  acceptance by position  adaptive to best fixed
  ngram         2          20.0            40.0      2.00   2.33  1.67           1.00 0.33 0.00          0.800 of γ = 4
  ngram, γ = 1  2          20.0            30.0      1.50   0.00  0.00                                   
  ngram, γ = 4  2          20.0            48.0      2.40   0.00  0.00                                   
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

// What is simulated says so in every form.
func TestSimulatedIsMarked(t *testing.T) {
	r := report()
	r.Simulated = &Simulated{Acceptance: []float64{0.9, 0.5}, DraftCost: 0.1}
	var table, page strings.Builder
	if err := r.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for form, c := range map[string]struct{ text, want string }{
		"table": {table.String(), "SIMULATED: acceptance 0.90 0.50 and a draft cost of 0.1 steps are made up"},
		"page":  {page.String(), "<h1>Simulated speculation, m&lt;1&gt;</h1>"},
		"JSON":  {string(data), `"simulated":{"acceptance":[0.9,0.5],"draft_cost":0.1}`},
	} {
		if !strings.Contains(c.text, c.want) {
			t.Errorf("the %s lacks %q:\n%s", form, c.want, c.text)
		}
	}
	if data, _ := json.Marshal(report()); strings.Contains(string(data), "simulated") || strings.Contains(strings.ToLower(page.String()), "http") {
		t.Error("what is measured is marked as simulated, or the page needs something beside itself")
	}
}

// Each variant has a curve over the numbers of requests at a time.
func TestPlot(t *testing.T) {
	r := report()
	more := three()
	more.concurrency = 8
	r.Rows = append(r.Rows, more.rows()...)
	p := r.plot("code")
	var names []string
	for _, c := range p.Curves {
		names = append(names, c.Name)
		if len(c.Dots) != 2 || c.Dots[0].X >= c.Dots[1].X || c.Dots[0].Y != c.Dots[1].Y {
			t.Errorf("%s: dots %v, want two side by side", c.Name, c.Dots)
		}
	}
	if diff := cmp.Diff([]string{"ngram", "ngram, γ = 1", "ngram, γ = 4"}, names); diff != "" {
		t.Errorf("curves (-want +got):\n%s", diff)
	}
	if len(p.X) != 2 || p.X[0].Label != "2" || p.X[1].Label != "8" || p.Y[len(p.Y)-1].Label != "2.5" {
		t.Errorf("axes %v and %v, want 2 and 8, and up to 2.5", p.X, p.Y)
	}
	if !(p.Curves[2].Dots[0].Y < p.Curves[0].Dots[0].Y && p.Curves[0].Dots[0].Y < p.One) {
		t.Errorf("a ratio of 2.4 is at %v, of 2 at %v, and of 1 at %v: expected it to rise", p.Curves[2].Dots[0].Y, p.Curves[0].Dots[0].Y, p.One)
	}
}
