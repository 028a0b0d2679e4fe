package server

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// speculating is a server that drafts all it can: what the bias makes of every
// answer is found in it again, and accepted.
func speculating(t *testing.T, o Options) *testAPI {
	t.Helper()
	path := testmodel.Safetensors(t, testmodel.Family("llama"))
	return serveEngine(t, openEngine(t, path, engine.Options{Speculation: engine.Speculation{Method: "ngram", Tokens: 3, Fixed: true}}), o)
}

var again = object{"temperature": 0, "max_tokens": 40, "ignore_eos": true, "logit_bias": object{"65": 100}}

// check says what cannot be of an answer of 40 tokens.
func (u *speculationUsage) check(t *testing.T, what string, details *completionDetail, answers int) {
	t.Helper()
	if u == nil || details == nil || details.Accepted == nil || details.Rejected == nil {
		t.Fatalf("%s: drafts %+v, details %+v", what, u, details)
	}
	if u.Rounds == 0 || u.Drafted < u.Accepted || u.Accepted == 0 || u.Tokens < u.Accepted+u.Rounds-uint64(answers) || u.Tokens > uint64(40*answers) {
		t.Errorf("%s: %+v", what, u)
	}
	if *details.Accepted != u.Accepted || *details.Rejected != u.Drafted-u.Accepted {
		t.Errorf("%s: %d accepted, %d rejected of %+v", what, *details.Accepted, *details.Rejected, u)
	}
	if want := float64(u.Tokens) / float64(u.Rounds); u.Tau != want || u.Tau <= 1 {
		t.Errorf("%s: τ %v, want %v", what, u.Tau, want)
	}
	if n := len(u.Acceptance); n == 0 || n > 3 {
		t.Errorf("%s: %d positions", what, n)
	}
	for i, a := range u.Acceptance {
		if a <= 0 || a > 1 {
			t.Errorf("%s: position %d: %v", what, i, a)
		}
	}
}

// Every route tells what was drafted, in streams, too; the answer does not.
func TestSpeculationUsage(t *testing.T) {
	a, plain := speculating(t, Options{}), serveModel(t, "llama", Options{})
	q := merge(again, object{"prompt": "hello"})
	one := ask[completion](t, a, completionsPath, q)
	if want := ask[completion](t, plain, completionsPath, q); texts(one)[0] != texts(want)[0] {
		t.Errorf("with drafts %q, without %q", texts(one), texts(want))
	}
	u := usageIn(t, one.Usage)
	u.Speculation.check(t, "completion", u.Details, 1)

	two := ask[completion](t, a, completionsPath, merge(q, object{"prompt": []string{"hello", "a hat"}, "n": 2}))
	u = usageIn(t, two.Usage)
	u.Speculation.check(t, "four answers", u.Details, 4)
	if u.Speculation.Tokens <= 40 {
		t.Errorf("drafts of four answers: %+v", u.Speculation)
	}

	all := chunks[completion](t, a, completionsPath, merge(q, object{"stream": true, "stream_options": object{"include_usage": true}}))
	u = usageIn(t, all[len(all)-1].Usage)
	u.Speculation.check(t, "stream", u.Details, 1)

	chat := merge(sayHello, again)
	u = ask[chatCompletion](t, a, chatPath, chat).Usage
	u.Speculation.check(t, "chat", u.Details, 1)
	ofChat := chunks[chatChunk](t, a, chatPath, merge(chat, object{"stream": true, "stream_options": object{"include_usage": true}}))
	u = usageIn(t, ofChat[len(ofChat)-1].Usage)
	u.Speculation.check(t, "chat stream", u.Details, 1)

	response := merge(again, object{"input": "hello", "max_output_tokens": 40})
	delete(response, "max_tokens")
	r := ask[responseBody](t, a, responsesPath, response).Usage
	r.Speculation.check(t, "response", &r.OutputDetails, 1)
	for _, data := range a.events(t, responsesPath, merge(response, object{"stream": true})) {
		var e responseEvent
		decodeAnswer(t, data, &e)
		if e.Type == "response.incomplete" {
			e.Response.Usage.Speculation.check(t, "response stream", &e.Response.Usage.OutputDetails, 1)
			r = nil
		}
	}
	if r != nil {
		t.Error("the stream of a response has no end")
	}
}

// usageIn is the usage of an answer whose field has several forms.
func usageIn(t *testing.T, v any) *usage {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	u := new(usage)
	decodeAnswer(t, string(text), u)
	return u
}

// Where nothing was drafted, nothing is said of it.
func TestUsageWithoutSpeculation(t *testing.T) {
	a, plain := speculating(t, Options{}), serveModel(t, "llama", Options{})
	q := merge(again, object{"prompt": "hello"})
	for name, text := range map[string]func() (int, string){
		"a server without": func() (int, string) { return plain.post(t, completionsPath, q) },
		"off":              func() (int, string) { return a.post(t, completionsPath, merge(q, object{"speculation": "off"})) },
		"not enabled": func() (int, string) {
			return a.post(t, completionsPath, merge(q, object{"speculation": object{"enabled": false}}))
		},
		"one token": func() (int, string) { return a.post(t, completionsPath, merge(q, object{"max_tokens": 1})) },
		"chat off":  func() (int, string) { return a.post(t, chatPath, merge(sayHello, again, object{"speculation": "off"})) },
	} {
		if status, answer := text(); status != http.StatusOK || strings.Contains(answer, "speculation") || strings.Contains(answer, "prediction") {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
}

// A request drafts less than the server does, by its own field.
func TestRequestSpeculation(t *testing.T) {
	a := speculating(t, Options{})
	q := merge(again, object{"prompt": "hello"})
	for depth, settings := range map[int]object{
		3: {"enabled": true, "method": "ngram"},
		2: {"method": "auto", "num_speculative_tokens": 2},
		1: {"method": "ngram", "num_speculative_tokens": 1},
	} {
		u := usageIn(t, ask[completion](t, a, completionsPath, merge(q, object{"speculation": settings})).Usage)
		u.Speculation.check(t, "drafts", u.Details, 1)
		if got := len(u.Speculation.Acceptance); got != depth {
			t.Errorf("%v: drafts of %d tokens, want %d", settings, got, depth)
		}
	}
}

func TestSpeculationRefusals(t *testing.T) {
	a, plain := speculating(t, Options{}), serveModel(t, "llama", Options{})
	deep := any("x")
	for range 200 {
		deep = []any{deep}
	}
	for _, tc := range []struct {
		of    *testAPI
		value any
		param string // "": it is served
		words string
	}{
		{a, "on", "speculation", `speculation is "on", expected "off" or an object`},
		{a, true, "speculation", "speculation is true"},
		{a, 1, "speculation", "speculation is 1"},
		{a, []any{}, "speculation", "speculation is a list"},
		{a, deep, "", "not what this server reads as JSON"},
		{a, strings.Repeat("x", 1e5), "speculation", "speculation is a string"},
		{a, object{"enabled": "no"}, "speculation.enabled", `"no", expected true or false`},
		{a, object{"enable": false}, "speculation.enable", "unknown field"},
		{a, object{"method": 1}, "speculation.method", "method is 1, expected a string"},
		{a, object{"method": "suffix"}, "speculation.method", `"suffix", expected one that this server drafts with: ngram`},
		{a, object{"method": strings.Repeat("x", 1e4)}, "speculation.method", "this server drafts with: ngram"},
		{a, object{"num_speculative_tokens": 0}, "speculation.num_speculative_tokens", "is 0, expected 1 or more"},
		{a, object{"num_speculative_tokens": -1}, "speculation.num_speculative_tokens", "is -1"},
		{a, object{"num_speculative_tokens": 1.5}, "speculation.num_speculative_tokens", "1.5, expected an integer"},
		{a, object{"num_speculative_tokens": 1000}, "speculation", "num_speculative_tokens is 1000, expected"},
		{a, object{"num_speculative_tokens": math.MaxInt64}, "speculation", "expected"},
		{a, object{"enabled": false, "method": "ngram"}, "speculation", "one will do"},
		{plain, object{"enabled": true}, "speculation", "this server does not speculate"},
		{plain, object{"method": "ngram"}, "speculation", "this server does not speculate"},
		{plain, object{"num_speculative_tokens": 2}, "speculation", "this server does not speculate"},
	} {
		for path, q := range map[string]object{completionsPath: {"prompt": "hello"}, chatPath: sayHello, responsesPath: {"input": "hello"}} {
			status, text := tc.of.post(t, path, merge(q, object{"speculation": tc.value}))
			if e := refusal(t, text); status != http.StatusBadRequest || e.Param != tc.param || !strings.Contains(e.Message, tc.words) || len(text) > 1000 {
				t.Errorf("%s %.60v: %d %.300s; want the parameter %q and %q", path, tc.value, status, text, tc.param, tc.words)
			}
		}
	}
	for _, nothing := range []any{nil, "off", object{}, object{"enabled": false}, object{"method": nil}} {
		if status, text := plain.post(t, completionsPath, merge(hello, object{"speculation": nothing})); status != http.StatusOK {
			t.Errorf("%v: %d %s", nothing, status, text)
		}
	}
}

// Metrics of speculation have vLLM's names, without a method, and ours with one.
func TestSpeculationMetrics(t *testing.T) {
	a := speculating(t, Options{})
	u := usageIn(t, ask[completion](t, a, completionsPath, merge(again, object{"prompt": "hello"})).Usage).Speculation
	_, text := a.send(t, "GET", "/metrics", "")
	for name, want := range map[string]uint64{
		`vllm:spec_decode_num_drafts_total{model_name="tiny"}`:                          u.Rounds,
		`vllm:spec_decode_num_draft_tokens_total{model_name="tiny"}`:                    u.Drafted,
		`vllm:spec_decode_num_accepted_tokens_total{model_name="tiny"}`:                 u.Accepted,
		`foretoken_speculation_rounds_total{method="ngram",model_name="tiny"}`:          u.Rounds,
		`foretoken_speculation_draft_tokens_total{method="ngram",model_name="tiny"}`:    u.Drafted,
		`foretoken_speculation_accepted_tokens_total{method="ngram",model_name="tiny"}`: u.Accepted,
		`foretoken_speculation_tokens_total{method="ngram",model_name="tiny"}`:          u.Tokens,
	} {
		if !strings.Contains(text, "\n"+name+" "+strconv.FormatUint(want, 10)+"\n") {
			t.Errorf("no %s %d in\n%s", name, want, grep(text, "spec"))
		}
	}
	for _, name := range []string{
		`vllm:spec_decode_num_accepted_tokens_per_pos_total{model_name="tiny",position="0"}`,
		`vllm:spec_decode_num_accepted_tokens_per_pos_total{model_name="tiny",position="2"}`,
		`foretoken_speculation_drafts_per_pos_total{method="ngram",model_name="tiny",position="2"}`,
		`foretoken_speculation_accepted_tokens_per_pos_total{method="ngram",model_name="tiny",position="0"}`,
	} {
		if !strings.Contains(text, "\n"+name+" ") {
			t.Errorf("no %s in\n%s", name, grep(text, "spec"))
		}
	}
	if _, text := serveModel(t, "llama", Options{}).send(t, "GET", "/metrics", ""); strings.Contains(text, "spec") {
		t.Errorf("a server that does not speculate has\n%s", grep(text, "spec"))
	}
}

// What is not known of the speed-up is not told.
func TestSpeedupMetrics(t *testing.T) {
	tell := func(s engine.Stats) (n int) {
		to := make(chan prometheus.Metric, 100)
		collectSpeculation(to, &s)
		close(to)
		for m := range to {
			if strings.Contains(m.Desc().String(), "speedup") {
				n++
			}
		}
		return n
	}
	s := engine.Stats{Speculation: map[string]engine.SpeculationStats{"ngram": {}}}
	if n := tell(s); n != 0 {
		t.Errorf("%d figures of an unknown speed-up", n)
	}
	s.Predicted, s.Measured = 1.5, 1.25
	if n := tell(s); n != 2 {
		t.Errorf("%d figures of a speed-up, want 2", n)
	}
}

// Log and table tell of drafts, where there were some.
func TestSpeculationIsSeen(t *testing.T) {
	var log bytes.Buffer
	a := speculating(t, Options{Log: slog.New(slog.NewJSONHandler(&log, nil))})
	a.send(t, "POST", completionsPath, `{"prompt": "hello", "max_tokens": 40, "ignore_eos": true, "logit_bias": {"65": 100}, "speculation": "off"}`)
	<-a.left
	if strings.Contains(log.String(), "drafted_tokens") {
		t.Errorf("without drafts the log has %s", &log)
	}
	_, text := a.send(t, "GET", "/debug/requests", "")
	if strings.Contains(text, "drafted") {
		t.Errorf("without drafts the table has %s", text)
	}
	<-a.left
	a.send(t, "POST", completionsPath, `{"prompt": "hello", "max_tokens": 40, "ignore_eos": true, "logit_bias": {"65": 100}}`)
	<-a.left
	if !strings.Contains(log.String(), `"drafted_tokens":`) || !strings.Contains(log.String(), `"accepted_tokens":`) {
		t.Errorf("the log has %s", &log)
	}
	_, text = a.send(t, "GET", "/debug/requests", "")
	if _, line, ok := strings.Cut(text, "\nngram: "); !ok || !strings.Contains(line, " tokens drafted, ") || !strings.Contains(line, "τ ") {
		t.Errorf("the table has %s", text)
	}
	_, text = a.send(t, "GET", "/debug/requests", "", "Accept", "application/json")
	var table debugTable
	decodeAnswer(t, text, &table)
	if table.Engine.Speculation["ngram"] == nil || table.Engine.Speculation["ngram"].Drafted == 0 {
		t.Error(text)
	}
}

// grep are the lines of a text with a word in them.
func grep(text, word string) string {
	var lines strings.Builder
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			lines.WriteString(line)
		}
	}
	return lines.String()
}
