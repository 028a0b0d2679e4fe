package sample

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var inf = float32(math.Inf(1))

// with returns default parameters, changed.
func with(change func(*Params)) *Params {
	p := Default()
	change(&p)
	return &p
}

// history returns a history of prompt and output.
func history(prompt []int32, output ...int32) *History {
	h := NewHistory(prompt)
	h.Add(output...)
	return h
}

// What the processors make of the logits: the row that is drawn from.
func TestProcessedLogits(t *testing.T) {
	tests := []struct {
		name   string
		p      func(*Params)
		row    Row
		logits []float32
		want   []float32
	}{
		{"nothing on", func(p *Params) {}, Row{}, []float32{1, -2}, []float32{1, -2}},
		{"temperature divides", func(p *Params) { p.Temperature = 0.5 }, Row{}, []float32{1, -2, -inf}, []float32{2, -4, -inf}},
		{
			"bias is added", func(p *Params) { p.LogitBias = map[int32]float32{1: 100, 2: -100} },
			Row{},
			[]float32{1, 2, 3},
			[]float32{1, 102, -97},
		},
		{
			"bias does not revive a masked token", func(p *Params) { p.LogitBias = map[int32]float32{1: 100} },
			Row{},
			[]float32{1, -inf},
			[]float32{1, -inf},
		},
		{
			"repetition: prompt and output, towards less likely",
			func(p *Params) { p.RepetitionPenalty = 2 },
			Row{History: history([]int32{0, 1}, 3)},
			[]float32{4, -4, 4, -1},
			[]float32{2, -8, 4, -2},
		},
		{
			"repetition does not count", func(p *Params) { p.RepetitionPenalty = 2 },
			Row{History: history([]int32{0, 0, 0}, 0)},
			[]float32{4, 0},
			[]float32{2, 0},
		},
		{
			"presence: output only, once", func(p *Params) { p.PresencePenalty = 0.5 },
			Row{History: history([]int32{0}, 1, 1)},
			[]float32{4, 4, 4},
			[]float32{4, 3.5, 4},
		},
		{
			"frequency: output only, each", func(p *Params) { p.FrequencyPenalty = 0.5 },
			Row{History: history([]int32{0, 0}, 1, 2, 1)},
			[]float32{4, 4, 4},
			[]float32{4, 3, 3.5},
		},
		{
			"negative penalties reward", func(p *Params) { p.FrequencyPenalty = -1 },
			Row{History: history(nil, 1, 1)},
			[]float32{0, 0},
			[]float32{0, 2},
		},
		{
			"bias, repetition, frequency and presence, temperature",
			func(p *Params) {
				p.LogitBias = map[int32]float32{0: 3}
				p.RepetitionPenalty, p.FrequencyPenalty, p.PresencePenalty, p.Temperature = 2, 0.25, 1, 0.5
			},
			Row{History: history(nil, 0, 0)},
			[]float32{1, 0},
			[]float32{((1+3)/2.0 - 0.5 - 1) / 0.5, 0},
		},
		{
			"tokens removed no longer count", func(p *Params) { p.FrequencyPenalty = 1 },
			Row{History: func() *History { h := history(nil, 0, 1, 1); h.Remove(1, 0); return h }()},
			[]float32{4, 4},
			[]float32{4, 3},
		},
		{
			"rejected drafts do not count", func(p *Params) { p.RepetitionPenalty = 2 },
			Row{History: func() *History { h := history([]int32{0}, 0, 1, 2); h.Remove(2, 1, 0); return h }()},
			[]float32{4, 4, 4},
			[]float32{2, 4, 4},
		},
		{
			"tokens beyond the head are not penalised", func(p *Params) { p.FrequencyPenalty = 1 },
			Row{History: history(nil, 9)},
			[]float32{4, 4},
			[]float32{4, 4},
		},
		{
			"min_tokens masks stops until it is reached",
			func(p *Params) { p.MinTokens, p.StopIDs = 3, []int32{2} },
			Row{Generated: 2, EOG: []int32{0, 99}},
			[]float32{1, 2, 3},
			[]float32{-inf, 2, -inf},
		},
		{
			"and then no more", func(p *Params) { p.MinTokens, p.StopIDs = 3, []int32{2} },
			Row{Generated: 3, EOG: []int32{0}},
			[]float32{1, 2, 3},
			[]float32{1, 2, 3},
		},
		{
			"ignoring end of generation masks nothing", func(p *Params) { p.IgnoreEOS = true },
			Row{EOG: []int32{0}},
			[]float32{1, 2, 3},
			[]float32{1, 2, 3},
		},
		{"grammar", func(p *Params) {}, Row{Allowed: []uint64{0b101}}, []float32{1, 2, 3, 4}, []float32{1, -inf, 3, -inf}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.row.Params = with(tt.p)
			if err := tt.row.Params.Validate(len(tt.logits)); err != nil {
				t.Fatal(err)
			}
			var s Sampler
			d, err := s.Dist(slices.Clone(tt.logits), &tt.row)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Dist{X: tt.want, Max: slices.Max(tt.want)}, d); diff != "" {
				t.Errorf("distribution (-want +got):\n%s", diff)
			}
		})
	}
}

// A mask of several words: full, empty, mixed, and none for the last tokens.
func TestLongMask(t *testing.T) {
	x := make([]float32, 200)
	var s Sampler
	d, err := s.Dist(x, &Row{Params: with(func(*Params) {}), Allowed: []uint64{math.MaxUint64, 0, 1 << 63}})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range d.X {
		if allowed := i < 64 || i == 191; allowed != (v == 0) {
			t.Errorf("token %d has logit %v", i, v)
		}
	}
}

// logs of probabilities in 1/16, so that sums are exact.
func sixteenths(p ...float64) []float32 {
	x := make([]float32, len(p))
	for i := range p {
		x[i] = float32(math.Log(p[i] / 16))
	}
	return x
}

// Which tokens the truncations leave.
func TestTruncations(t *testing.T) {
	tests := []struct {
		name   string
		p      func(*Params)
		logits []float32
		want   []int32
	}{
		{"top-k", func(p *Params) { p.TopK = 2 }, []float32{1, 3, 2, 0}, []int32{1, 2}},
		{"top-k: ties to the lower id", func(p *Params) { p.TopK = 2 }, []float32{1, 2, 1, 1}, []int32{0, 1}},
		{"top-k: -0 and 0 are a tie", func(p *Params) { p.TopK = 1 }, []float32{float32(math.Copysign(0, -1)), 0}, []int32{0}},
		{"top-k of negative logits", func(p *Params) { p.TopK = 2 }, []float32{-3, -1, -2, -1e30}, []int32{1, 2}},
		{"top-k of more than there are", func(p *Params) { p.TopK = 5 }, []float32{1, 2}, nil},
		{"top-p: the fewest that reach it", func(p *Params) { p.TopP = 0.7 }, sixteenths(1, 8, 2, 5), []int32{1, 3}},
		{"top-p: the crossing token is in", func(p *Params) { p.TopP = 0.51 }, sixteenths(1, 8, 2, 5), []int32{1, 3}},
		{"top-p: at least one", func(p *Params) { p.TopP = 1e-30 }, sixteenths(1, 8, 2, 5), []int32{1}},
		{"top-p: exactly reached", func(p *Params) { p.TopP = 0.5 }, []float32{0, 0, 0, 0}, []int32{0, 1}},
		{"top-p: ties to the lower id", func(p *Params) { p.TopP = 0.6 }, []float32{0, 0, 0, 0}, []int32{0, 1, 2}},
		{"top-p: masked tokens stay out", func(p *Params) { p.TopP = 0.9999 }, []float32{0, -inf, 0}, []int32{0, 2}},
		{"min-p: relative to the best", func(p *Params) { p.MinP = 0.25 }, sixteenths(1, 8, 2.01, 4.99), []int32{1, 2, 3}},
		{"min-p 1: the best and its equals", func(p *Params) { p.MinP = 1 }, []float32{0, 1, 1, 0.9}, []int32{1, 2}},
		{"min-p after temperature", func(p *Params) { p.MinP, p.Temperature = 0.3, 2 }, sixteenths(1, 8, 2, 5), []int32{0, 1, 2, 3}},
		// Surprises 0.69, 2.08, 2.77, 2.77, 1.39 nats, expected 1.30: the last is nearest, then the first.
		{"typical-p", func(p *Params) { p.TypicalP = 0.24 }, sixteenths(8, 2, 1, 1, 4), []int32{4}},
		{"typical-p: the crossing token is in", func(p *Params) { p.TypicalP = 0.26 }, sixteenths(8, 2, 1, 1, 4), []int32{0, 4}},
		{"top-k before top-p: p of what is left", func(p *Params) { p.TopK, p.TopP = 2, 0.6 }, sixteenths(1, 8, 2, 5), []int32{1}},
		{"where top-p alone takes two", func(p *Params) { p.TopP = 0.6 }, sixteenths(1, 8, 2, 5), []int32{1, 3}},
		{"min-p before top-p", func(p *Params) { p.MinP, p.TopP = 0.3, 0.6 }, sixteenths(3, 8, 1, 4), []int32{1, 3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s Sampler
			d, err := s.Dist(slices.Clone(tt.logits), &Row{Params: with(tt.p)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, d.IDs); diff != "" {
				t.Errorf("tokens left (-want +got):\n%s", diff)
			}
			if d.Max != slices.Max(d.X) {
				t.Errorf("greatest logit %v, want %v", d.Max, slices.Max(d.X))
			}
		})
	}
}

func TestGreedy(t *testing.T) {
	tests := []struct {
		name   string
		p      func(*Params)
		row    Row
		logits []float32
		want   int32
	}{
		{"the greatest", func(p *Params) {}, Row{}, []float32{-1, 3, 2}, 1},
		{"the lower id on ties", func(p *Params) {}, Row{}, []float32{-1, 3, 3}, 1},
		{"after bias", func(p *Params) { p.LogitBias = map[int32]float32{0: 5} }, Row{}, []float32{-1, 3, 3}, 0},
		{"after penalties", func(p *Params) { p.PresencePenalty = 2 }, Row{History: history(nil, 1)}, []float32{-1, 3, 2}, 2},
		{"after min_tokens", func(p *Params) { p.MinTokens = 1 }, Row{EOG: []int32{1}}, []float32{-1, 3, 2}, 2},
		{"below 1e-5", func(p *Params) { p.Temperature = 9e-6 }, Row{}, []float32{0, 1e-9}, 1},
		{"whatever the truncations", func(p *Params) { p.TopK, p.TopP, p.TypicalP = 2, 0.9, 0.1 }, Row{}, []float32{8, 9, 9}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range uint64(20) {
				tt.row.Params = with(func(p *Params) { p.Temperature, p.Seed = 0, seed; tt.p(p) })
				var s Sampler
				got, err := s.Sample(slices.Clone(tt.logits), &tt.row)
				if err != nil || got.Token != tt.want {
					t.Fatalf("token %d, %v, want %d", got.Token, err, tt.want)
				}
			}
		})
	}
}

func TestRowErrors(t *testing.T) {
	nan := float32(math.NaN())
	tests := []struct {
		name   string
		p      func(*Params)
		row    Row
		logits []float32
		want   string
	}{
		{"NaN", func(p *Params) {}, Row{}, []float32{1, nan, 2}, "logit of token 1 is NaN"},
		{"NaN first", func(p *Params) { p.Temperature = 0 }, Row{}, []float32{nan, 1}, "logit of token 0 is NaN"},
		{"NaN in a masked token", func(p *Params) {}, Row{Allowed: []uint64{1}}, []float32{1, nan}, "logit of token 1 is NaN"},
		{"infinite", func(p *Params) {}, Row{}, []float32{1, inf}, "logit of token 1 is +Inf"},
		{"nothing from the model", func(p *Params) {}, Row{}, []float32{-inf, -inf}, "no token is possible: every one is masked"},
		{
			"nothing left", func(p *Params) { p.MinTokens = 1 },
			Row{EOG: []int32{0}},
			[]float32{1, -inf},
			"after mask, bias and penalties: no token is possible",
		},
		{"an empty mask", func(p *Params) {}, Row{Allowed: []uint64{}}, []float32{1, 2}, "no token is possible"},
		{"overflow", func(p *Params) { p.Temperature = 1e-4 }, Row{}, []float32{1, 1e38}, "logit of token 1 divided by temperature 0.0001 is +Inf"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.row.Params = with(tt.p)
			var s Sampler
			_, err := s.Sample(tt.logits, &tt.row)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v, want %q", err, tt.want)
			}
			// The sampler is as good as new for the next row.
			if got, err := s.Sample([]float32{0, 50}, &Row{Params: with(func(*Params) {})}); err != nil || got.Token != 1 {
				t.Errorf("then: token %d, %v", got.Token, err)
			}
		})
	}
}

func TestHistoryRefusesForeignTokens(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a token that was never added was removed")
		}
	}()
	history([]int32{4}, 5).Remove(4)
}

func TestHistoryClone(t *testing.T) {
	h := history([]int32{1}, 2)
	c := h.Clone()
	h.Add(2, 3)
	c.Add(4)
	x, y := make([]float32, 5), make([]float32, 5)
	p := with(func(p *Params) { p.FrequencyPenalty = 1 })
	p.penalize(x, h)
	p.penalize(y, c)
	if diff := cmp.Diff([][]float32{{0, 0, -2, -1, 0}, {0, 0, -1, 0, -1}}, [][]float32{x, y}); diff != "" {
		t.Errorf("penalties of the original and the clone (-want +got):\n%s", diff)
	}
}

// A draw depends on its row and key alone: not on rows before it, nor on the
// sampler.
func TestDrawsAreIndependentOfEachOther(t *testing.T) {
	const vocab = 300
	params := []*Params{
		with(func(p *Params) {}),
		with(func(p *Params) { p.TopK = 20 }),
		with(func(p *Params) { p.TopP, p.Temperature = 0.8, 1.5 }),
		with(func(p *Params) { p.MinP, p.TypicalP = 0.01, 0.9 }),
		with(func(p *Params) { p.Temperature, p.LogProbs = 0, 3 }),
		with(func(p *Params) { p.RepetitionPenalty, p.LogProbs, p.ProcessedLogProbs = 1.2, 2, true }),
	}
	h := history([]int32{1, 2, 3}, 4, 5)
	draw := func(s *Sampler, i int) string {
		x := make([]float32, vocab+i%7)
		noise := Key{Seed: uint64(i)}.Noise(Draft)
		for j := range x {
			x[j] = float32(6 * noise.Uniform(int32(j)))
		}
		r, err := s.Sample(x, &Row{Params: params[i%len(params)], Position: i, Choice: uint32(i % 3), History: h})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(r)
	}
	var forward, backward Sampler
	var a, b, c []string
	for i := range 200 {
		a = append(a, draw(&forward, i))
		c = append(c, draw(new(Sampler), i))
	}
	for i := range 200 {
		b = append(b, draw(&backward, 199-i))
	}
	slices.Reverse(b)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("in reverse order (-forward +backward):\n%s", diff)
	}
	if diff := cmp.Diff(a, c); diff != "" {
		t.Errorf("each with its own sampler (-shared +own):\n%s", diff)
	}
	tokens := map[string]bool{}
	for _, r := range a {
		tokens[r] = true
	}
	if len(tokens) < 100 {
		t.Errorf("only %d different results in 200 draws", len(tokens))
	}
}

func TestLogProbs(t *testing.T) {
	logits := sixteenths(1, 4, 2, 4, 5)
	ln := func(p float64) float64 { return math.Log(p / 16) }
	tests := []struct {
		name string
		p    func(*Params)
		row  Row
		want Result
	}{
		{"none", func(p *Params) {}, Row{}, Result{Token: 4}},
		{"of the token only", func(p *Params) { p.LogProbs = 0 }, Row{}, Result{Token: 4, LogProb: ln(5), Top: []TokenLogProb{}}},
		{
			"best first, ties by id", func(p *Params) { p.LogProbs = 3 },
			Row{},
			Result{Token: 4, LogProb: ln(5), Top: []TokenLogProb{{4, ln(5)}, {1, ln(4)}, {3, ln(4)}}},
		},
		{
			"the whole vocabulary", func(p *Params) { p.LogProbs = 5 },
			Row{},
			Result{Token: 4, LogProb: ln(5), Top: []TokenLogProb{{4, ln(5)}, {1, ln(4)}, {3, ln(4)}, {2, ln(2)}, {0, ln(1)}}},
		},
		{"of the model, whatever the processors", func(p *Params) {
			p.LogProbs, p.LogitBias = 1, map[int32]float32{0: 50}
		}, Row{Allowed: []uint64{1}}, Result{Token: 0, LogProb: ln(1), Top: []TokenLogProb{{4, ln(5)}}}},
		{"processed: of the greedy choice, penalties in", func(p *Params) {
			p.LogProbs, p.ProcessedLogProbs = 2, true
		}, Row{Allowed: []uint64{0b1110}}, Result{Token: 1, LogProb: math.Log(0.4), Top: []TokenLogProb{{1, math.Log(0.4)}, {3, math.Log(0.4)}}}},
		{"processed: what the truncation left", func(p *Params) {
			p.LogProbs, p.ProcessedLogProbs, p.Temperature, p.TopK = 5, true, 1, 1
		}, Row{}, Result{Token: 4, LogProb: 0, Top: []TokenLogProb{{4, 0}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.row.Params = with(func(p *Params) { p.Temperature = 0; tt.p(p) })
			var s Sampler
			got, err := s.Sample(slices.Clone(logits), &tt.row)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateApprox(0, 1e-6), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if len(tt.want.Top) == 0 {
				return
			}
			if _, top, err := LogProbs(logits, 2, 3, nil); err != nil || len(top) != 3 || top[2].Token != 3 {
				t.Errorf("of a prompt row: %v, %v", top, err)
			}
		})
	}
}

func TestLogProbsOfPromptRows(t *testing.T) {
	top := make([]TokenLogProb, 0, 8)
	lp, top, err := LogProbs([]float32{0, 0, negInf, 0}, 3, 2, top)
	if err != nil || lp != -math.Log(3) || len(top) != 2 || top[0].Token != 0 || top[1].Token != 1 {
		t.Errorf("%v, %v, %v", lp, top, err)
	}
	if lp, _, _ := LogProbs([]float32{0, negInf}, 1, 0, top); !math.IsInf(lp, -1) {
		t.Errorf("log-probability of a masked token is %v", lp)
	}
	if _, _, err := LogProbs([]float32{0, float32(math.NaN())}, 0, 0, nil); err == nil {
		t.Error("no error for NaN")
	}
	// Far from zero, where exp alone would overflow.
	if lp, _, _ := LogProbs([]float32{1e4, 1e4 + 1}, 0, 0, nil); math.Abs(lp - -math.Log1p(math.E)) > 1e-12 {
		t.Errorf("log-probability %v, want %v", lp, -math.Log1p(math.E))
	}
}

func TestSampleAllocatesNothing(t *testing.T) {
	logits := make([]float32, 1000)
	row := make([]float32, 1000)
	for i := range logits {
		logits[i] = float32(i%97) / 10
	}
	h := history([]int32{1, 2}, 3)
	for name, p := range map[string]*Params{
		"plain":     with(func(p *Params) {}),
		"greedy":    with(func(p *Params) { p.Temperature = 0 }),
		"all":       with(func(p *Params) { p.MinP, p.TopK, p.TopP, p.TypicalP, p.LogProbs = 0.001, 300, 0.9, 0.9, 20 }),
		"processed": with(func(p *Params) { p.TopP, p.LogProbs, p.ProcessedLogProbs = 0.9, 20, true }),
		"penalties": with(func(p *Params) { p.RepetitionPenalty, p.LogitBias = 1.1, map[int32]float32{4: 1} }),
	} {
		var s Sampler
		r := &Row{Params: p, History: h}
		if n := testing.AllocsPerRun(20, func() {
			copy(row, logits)
			r.Position++
			if _, err := s.Sample(row, r); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations a draw", name, n)
		}
	}
}

// Padding beyond the tokenizer's tokens is never drawn, whatever its logit,
// but has its share in the log-probabilities of the model's own distribution.
func TestPaddingIsNotDrawn(t *testing.T) {
	for _, temperature := range []float32{0, 1} {
		p := Default()
		p.Temperature, p.LogProbs = temperature, 1
		var s Sampler
		for position := range 50 {
			r, err := s.Sample([]float32{0, 1, 9, 9}, &Row{Params: &p, Position: position, Vocab: 2})
			if err != nil || r.Token > 1 {
				t.Fatalf("temperature %v: token %d, %v", temperature, r.Token, err)
			}
			if r.Top[0].Token != 2 || r.LogProb > -8 {
				t.Fatalf("temperature %v: log-probability %v, best %v", temperature, r.LogProb, r.Top)
			}
		}
	}
}
