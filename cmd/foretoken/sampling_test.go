package main

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/sample"
)

func TestParams(t *testing.T) {
	tuned := sample.Default()
	tuned.TopP, tuned.RepetitionPenalty = 0.9, 1.1
	for _, test := range []struct {
		name   string
		engine sample.Params
		flags  []string
		want   func(*sample.Params)
	}{
		{"no flags", tuned, nil, func(p *sample.Params) { p.TopP, p.RepetitionPenalty = 0.9, 1.1 }},
		{
			"flags override", tuned,
			[]string{"--temperature=0.5", "--top-k=5", "--top-p=1", "--min-p=0.2", "--typical-p=0.3", "--repetition-penalty=1", "--presence-penalty=-0.5", "--frequency-penalty=0.25"},
			func(p *sample.Params) {
				p.Temperature, p.TopK, p.MinP, p.TypicalP, p.PresencePenalty, p.FrequencyPenalty = 0.5, 5, 0.2, 0.3, -0.5, 0.25
			},
		},
		{
			"where it ends", tuned,
			[]string{"--max-tokens=9", "--min-tokens=2", "--stop=a,b", "--stop=--", "--stop-id=1,2", "--stop-id=3", "--ignore-eos", "--logit-bias=4=-1.5", "--logit-bias=5=2"},
			func(p *sample.Params) {
				p.TopP, p.RepetitionPenalty = 0.9, 1.1
				p.MaxTokens, p.MinTokens, p.Stop, p.StopIDs, p.IgnoreEOS = 9, 2, []string{"a,b", "--"}, []int32{1, 2, 3}, true
				p.LogitBias = map[int32]float32{4: -1.5, 5: 2}
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var v verbs
			if _, err := newParser(&v).Parse(append([]string{"run", "--seed=7"}, test.flags...)); err != nil {
				t.Fatal(err)
			}
			want := sample.Default()
			want.Seed = 7
			test.want(&want)
			if diff := cmp.Diff(want, v.Run.params(test.engine)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestOneLine(t *testing.T) {
	err := errors.Join(errors.New("first"), errors.New("second\r\nthird"))
	if got := oneLine(err); got != "first; second; third" {
		t.Errorf("%q", got)
	}
}
