package server

import (
	"maps"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/foretoken/foretoken/internal/engine"
)

// vLLM's metrics of speculation (vllm/v1/spec_decode/metrics.py) know no method:
// boards that read one series of each would find several. Ours have it, as a
// label; positions count from 0, as there.
var (
	draftsOfAll   = prometheus.NewDesc("vllm:spec_decode_num_drafts_total", "Drafts that were verified.", nil, nil)
	draftedOfAll  = prometheus.NewDesc("vllm:spec_decode_num_draft_tokens_total", "Drafted tokens that were verified.", nil, nil)
	acceptedOfAll = prometheus.NewDesc("vllm:spec_decode_num_accepted_tokens_total", "Of them, those that were accepted.", nil, nil)
	perPosOfAll   = prometheus.NewDesc("vllm:spec_decode_num_accepted_tokens_per_pos_total", "Drafts of which the token at a position was accepted.", []string{"position"}, nil)

	method           = []string{"method"}
	methodAndPos     = []string{"method", "position"}
	roundsOfMethod   = prometheus.NewDesc("foretoken_speculation_rounds_total", "Rounds: drafts that were verified.", method, nil)
	draftedOfMethod  = prometheus.NewDesc("foretoken_speculation_draft_tokens_total", "Drafted tokens that were verified.", method, nil)
	acceptedOfMethod = prometheus.NewDesc("foretoken_speculation_accepted_tokens_total", "Of them, those that were accepted.", method, nil)
	tokensOfMethod   = prometheus.NewDesc("foretoken_speculation_tokens_total", "Tokens that rounds have given, the model's own with them.", method, nil)
	draftsPerPos     = prometheus.NewDesc("foretoken_speculation_drafts_per_pos_total", "Drafts that had a token at a position.", methodAndPos, nil)
	acceptedPerPos   = prometheus.NewDesc("foretoken_speculation_accepted_tokens_per_pos_total", "Of them, those whose token there was accepted.", methodAndPos, nil)

	predictedSpeedup = prometheus.NewDesc("foretoken_speculation_predicted_speedup", "Tokens per second over those without speculation, as was expected of the steps that ran.", nil, nil)
	measuredSpeedup  = prometheus.NewDesc("foretoken_speculation_measured_speedup", "Tokens per second over those without speculation, by what steps took.", nil, nil)
)

func describeSpeculation(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		draftsOfAll, draftedOfAll, acceptedOfAll, perPosOfAll, roundsOfMethod, draftedOfMethod, acceptedOfMethod, tokensOfMethod, draftsPerPos, acceptedPerPos,
		predictedSpeedup, measuredSpeedup,
	} {
		to <- d
	}
}

// collectSpeculation tells of an engine that speculates.
func collectSpeculation(to chan<- prometheus.Metric, s *engine.Stats) {
	if len(s.Speculation) == 0 {
		return
	}
	send := func(d *prometheus.Desc, n uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	var all engine.SpeculationStats
	for _, name := range slices.Sorted(maps.Keys(s.Speculation)) {
		m := s.Speculation[name]
		all.Add(m)
		send(roundsOfMethod, m.Rounds, name)
		send(draftedOfMethod, m.Drafted, name)
		send(acceptedOfMethod, m.Accepted, name)
		send(tokensOfMethod, m.Tokens, name)
		for i := range m.Drafts {
			send(draftsPerPos, m.Drafts[i], name, strconv.Itoa(i))
			send(acceptedPerPos, m.Accepts[i], name, strconv.Itoa(i))
		}
	}
	send(draftsOfAll, all.Rounds)
	send(draftedOfAll, all.Drafted)
	send(acceptedOfAll, all.Accepted)
	for i, n := range all.Accepts {
		send(perPosOfAll, n, strconv.Itoa(i))
	}
	for _, g := range []struct {
		desc *prometheus.Desc
		of   float64
	}{{predictedSpeedup, s.Predicted}, {measuredSpeedup, s.Measured}} {
		if g.of > 0 { // else it is not known
			to <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.of)
		}
	}
}
