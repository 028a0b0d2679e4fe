package server

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/foretoken/foretoken/internal/engine"
)

// metrics have vLLM's names (vllm/v1/metrics/loggers.py), so that its boards
// show them.
type metrics struct {
	handler http.Handler

	requests *prometheus.CounterVec // by method, route, status
	success  *prometheus.CounterVec // by finished_reason

	firstToken, interToken, perToken           prometheus.Histogram // seconds
	total, queue, inference, prefill, decode   prometheus.Histogram // seconds
	promptTokens, outputTokens, mostWereWanted prometheus.Histogram // tokens
}

// Buckets, in seconds and tokens, are vLLM's.
var (
	firstTokenBuckets = []float64{
		0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
	}
	interTokenBuckets = []float64{
		0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
	}
	requestBuckets = []float64{
		0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680,
	}
	tokenBuckets = []float64{
		1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000,
	}
)

func newMetrics(s *Server) *metrics {
	registry := prometheus.NewRegistry()
	labels := prometheus.Labels{"model_name": s.modelName()}
	reg := prometheus.WrapRegistererWith(labels, registry)
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "vllm:" + name, Help: help, Buckets: buckets})
		reg.MustRegister(h)
		return h
	}
	m := &metrics{
		handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "foretoken_http_requests_total", Help: "Requests that were answered.",
		}, []string{"method", "route", "status"}),
		success: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm:request_success_total", Help: "Answers that ended, by why: stop, length, abort or error.",
		}, []string{"finished_reason"}),
		firstToken:     histogram("time_to_first_token_seconds", "From submission to the first token.", firstTokenBuckets),
		interToken:     histogram("inter_token_latency_seconds", "Between two tokens of an answer, as they are passed on.", interTokenBuckets),
		perToken:       histogram("request_time_per_output_token_seconds", "Mean time of a token after the first.", interTokenBuckets),
		total:          histogram("e2e_request_latency_seconds", "From submission to the end.", requestBuckets),
		queue:          histogram("request_queue_time_seconds", "From submission to the first step.", requestBuckets),
		inference:      histogram("request_inference_time_seconds", "From the first step to the end.", requestBuckets),
		prefill:        histogram("request_prefill_time_seconds", "From the first step to the first token.", requestBuckets),
		decode:         histogram("request_decode_time_seconds", "From the first token to the last.", requestBuckets),
		promptTokens:   histogram("request_prompt_tokens", "Tokens of a prompt.", tokenBuckets),
		outputTokens:   histogram("request_generation_tokens", "Tokens of all answers to a prompt.", tokenBuckets),
		mostWereWanted: histogram("request_params_max_tokens", "max_tokens of a request that has one.", tokenBuckets),
	}
	reg.MustRegister(m.requests, m.success, &engineCollector{s})
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, reason := range []string{"stop", "length", "abort", "error"} {
		m.success.WithLabelValues(reason) // there from the beginning: a rate needs its 0
	}
	return m
}

func (s *Server) modelName() string {
	if len(s.Models) == 0 {
		return ""
	}
	return s.Models[0]
}

// observe adds a request whose prompt was answered as p says, if it was. Where
// the answer is not whole, its end says nothing of this server.
func (m *metrics) observe(p engine.Progress, most int, whole bool) {
	if p.Prompted.IsZero() {
		return
	}
	m.queue.Observe(p.Started.Sub(p.Submitted).Seconds())
	m.prefill.Observe(p.Prompted.Sub(p.Started).Seconds())
	m.firstToken.Observe(p.Prompted.Sub(p.Submitted).Seconds())
	m.promptTokens.Observe(float64(p.Prompt))
	m.outputTokens.Observe(float64(p.Output))
	if most > 0 {
		m.mostWereWanted.Observe(float64(most))
	}
	if !whole {
		return
	}
	decode := p.Ended.Sub(p.Prompted).Seconds()
	m.total.Observe(p.Ended.Sub(p.Submitted).Seconds())
	m.inference.Observe(p.Ended.Sub(p.Started).Seconds())
	m.decode.Observe(decode)
	if p.Output > 1 {
		m.perToken.Observe(decode / float64(p.Output-1))
	}
}

// scrape is GET /metrics.
func (s *Server) scrape(w http.ResponseWriter, r *http.Request) error {
	s.metrics.handler.ServeHTTP(w, r)
	return nil
}

// An engineCollector reads the engine's figures when they are asked for.
type engineCollector struct{ s *Server }

// A figure is a metric that the engine's figures have.
type figure struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*engine.Stats) float64
}

func gauge(name, help string, of func(*engine.Stats) float64) figure {
	return figure{prometheus.NewDesc(name, help, nil, nil), prometheus.GaugeValue, of}
}

func counter(name, help string, of func(*engine.Stats) uint64) figure {
	return figure{prometheus.NewDesc(name, help, nil, nil), prometheus.CounterValue, func(s *engine.Stats) float64 { return float64(of(s)) }}
}

var figures = []figure{
	gauge("vllm:num_requests_running", "Sequences that run.", func(s *engine.Stats) float64 { return float64(s.Running) }),
	gauge("vllm:num_requests_waiting", "Sequences that wait.", func(s *engine.Stats) float64 { return float64(s.Waiting) }),
	gauge("vllm:kv_cache_usage_perc", "Share of the cache that running sequences hold, 0 to 1.", func(s *engine.Stats) float64 { return s.CacheUsage }),
	gauge("foretoken_kv_cache_tokens", "Tokens that the cache can hold.", func(s *engine.Stats) float64 { return float64(s.CacheTokens) }),
	gauge("foretoken_prefix_cache_tokens", "Tokens that the prefix cache keeps.", func(s *engine.Stats) float64 { return float64(s.SharedTokens) }),
	// vLLM counts prompts whole, cached prefixes included.
	counter("vllm:prompt_tokens_total", "Tokens of prompts, computed or cached.", func(s *engine.Stats) uint64 { return s.PromptTokens + s.PrefixHits }),
	counter("vllm:generation_tokens_total", "Tokens that were generated.", func(s *engine.Stats) uint64 { return s.OutputTokens }),
	counter("vllm:prefix_cache_queries_total", "Tokens that were looked up in the prefix cache.", func(s *engine.Stats) uint64 { return s.PrefixQueries }),
	counter("vllm:prefix_cache_hits_total", "Of them, those that were found.", func(s *engine.Stats) uint64 { return s.PrefixHits }),
	counter("vllm:num_preemptions_total", "Sequences that gave their memory back and were computed again.", func(s *engine.Stats) uint64 { return s.Retractions }),
	counter("foretoken_prefix_cache_evicted_pages_total", "Pages that left the prefix cache for want of room.", func(s *engine.Stats) uint64 { return s.Evicted }),
	counter("foretoken_steps_total", "Steps of the engine.", func(s *engine.Stats) uint64 { return s.Steps }),
}

// Describe is Prometheus's.
func (c *engineCollector) Describe(to chan<- *prometheus.Desc) {
	for _, f := range figures {
		to <- f.desc
	}
	describeSpeculation(to)
}

// Collect is Prometheus's. Before there is a model, there is nothing to tell.
func (c *engineCollector) Collect(to chan<- prometheus.Metric) {
	if !c.s.loaded.Load() {
		return
	}
	stats := c.s.engine.Stats()
	for _, f := range figures {
		to <- prometheus.MustNewConstMetric(f.desc, f.kind, f.of(&stats))
	}
	collectSpeculation(to, &stats)
}
