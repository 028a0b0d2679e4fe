package sample

import (
	"math"
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	tests := []struct {
		change func(*Params)
		want   string // the error; empty: valid
	}{
		{func(p *Params) {}, ""},
		{func(p *Params) { *p = Params{} }, "top_p is 0, expected more than 0, at most 1"},
		{func(p *Params) { p.Temperature = 0 }, ""},
		{func(p *Params) { p.Temperature = -0.1 }, "temperature is -0.1, expected 0 or more"},
		{func(p *Params) { p.Temperature = nan }, "temperature is NaN, expected 0 or more"},
		{func(p *Params) { p.Temperature = inf }, "temperature is +Inf, expected 0 or more"},
		{func(p *Params) { p.TopP = 1.01 }, "top_p is 1.01, expected more than 0, at most 1"},
		{func(p *Params) { p.TopP = nan }, "top_p is NaN, expected more than 0, at most 1"},
		{func(p *Params) { p.MinP = 1 }, ""},
		{func(p *Params) { p.MinP = -0.1 }, "min_p is -0.1, expected 0 to 1"},
		{func(p *Params) { p.TypicalP = 0 }, "typical_p is 0, expected more than 0, at most 1"},
		{func(p *Params) { p.RepetitionPenalty = 0 }, "repetition_penalty is 0, expected 0.001 to 1000"},
		{func(p *Params) { p.RepetitionPenalty = 1e-4 }, "repetition_penalty is 0.0001, expected 0.001 to 1000"},
		{func(p *Params) { p.RepetitionPenalty = inf }, "repetition_penalty is +Inf, expected 0.001 to 1000"},
		{func(p *Params) { p.PresencePenalty = 2 }, ""},
		{func(p *Params) { p.PresencePenalty = -2.5 }, "presence_penalty is -2.5, expected -2 to 2"},
		{func(p *Params) { p.FrequencyPenalty = 3 }, "frequency_penalty is 3, expected -2 to 2"},
		{func(p *Params) { p.TopK = -1 }, ""},
		{func(p *Params) { p.TopK = -2 }, "top_k is -2, expected 1 or more, or 0 or -1 for no limit"},
		{func(p *Params) { p.MaxTokens = -1 }, "max_tokens is -1, expected 1 or more, or 0 for no limit"},
		{func(p *Params) { p.MinTokens = -1 }, "min_tokens is -1, expected 0 or more"},
		{func(p *Params) { p.MinTokens = 5 }, ""},
		{func(p *Params) { p.MinTokens, p.MaxTokens = 5, 4 }, "min_tokens is 5, expected at most max_tokens, 4"},
		{func(p *Params) { p.LogProbs = 100 }, ""},
		{func(p *Params) { p.LogProbs = 101 }, "logprobs is 101, expected 0 to 100, or -1 for none"},
		{func(p *Params) { p.LogProbs = -2 }, "logprobs is -2, expected 0 to 100, or -1 for none"},
		{func(p *Params) { p.LogitBias = map[int32]float32{0: -100, 99: 100} }, ""},
		{func(p *Params) { p.LogitBias = map[int32]float32{100: 1, 200: 1} }, "logit_bias of token 100, expected ids from 0 to 99"},
		{func(p *Params) { p.LogitBias = map[int32]float32{-1: 1} }, "logit_bias of token -1, expected ids from 0 to 99"},
		{func(p *Params) { p.LogitBias = map[int32]float32{3: 101} }, "logit_bias of token 3 is 101, expected -100 to 100"},
		{func(p *Params) { p.LogitBias = map[int32]float32{3: nan} }, "logit_bias of token 3 is NaN, expected -100 to 100"},
		{func(p *Params) { p.StopIDs = []int32{1, 100} }, "stop_token_ids has 100, expected ids from 0 to 99"},
		{func(p *Params) { p.Stop = []string{"a", ""} }, `stop string 1 is "", expected UTF-8 text that is not empty`},
		{func(p *Params) { p.Stop = []string{"a", strings.Repeat("b", 1<<20)} }, "stop strings have 1048577 bytes together, expected at most 1048576"},
		{func(p *Params) { p.Stop = []string{"\xff"} }, `stop string 0 is "\xff", expected UTF-8 text that is not empty`},
	}
	for _, tt := range tests {
		p := Default()
		tt.change(&p)
		got := ""
		if err := p.Validate(100); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("error %q, want %q", got, tt.want)
		}
	}
}

func TestEnds(t *testing.T) {
	eog := []int32{2, 3}
	p := Default()
	p.StopIDs = []int32{7}
	for token, want := range map[int32]bool{1: false, 2: true, 3: true, 7: true} {
		if got := p.Ends(token, eog); got != want {
			t.Errorf("token %d ends: %v, want %v", token, got, want)
		}
	}
	p.IgnoreEOS = true
	for token, want := range map[int32]bool{2: false, 3: false, 7: true} {
		if got := p.Ends(token, eog); got != want {
			t.Errorf("with end of generation ignored, token %d ends: %v, want %v", token, got, want)
		}
	}
}
