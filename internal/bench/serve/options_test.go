package serve

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestOptionErrors(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"no server", func(o *Options) { o.BaseURL = "" }, `"": expected the address of a server, such as http://127.0.0.1:8000`},
		{"no scheme", func(o *Options) { o.BaseURL = "localhost:8000" }, "expected the address of a server"},
		{"another scheme", func(o *Options) { o.BaseURL = "ftp://server" }, "expected the address of a server"},
		{"a password", func(o *Options) { o.BaseURL = "http://me:secret@server" }, "expected the address of a server"},
		{"endpoint", func(o *Options) { o.Endpoint = "/v1/embeddings" }, `endpoint "/v1/embeddings": expected /v1/completions or /v1/chat/completions`},
		{"timeout", func(o *Options) { o.Timeout = 0 }, "timeout 0s"},
		{"no requests", func(o *Options) { o.Requests = 0 }, "0 requests: expected 1 to 1000000"},
		{"many requests", func(o *Options) { o.Requests = 1e6 + 1 }, "1000001 requests"},
		{"rate", func(o *Options) { o.Rate = -1 }, "-1 requests a second: expected at least 0.001"},
		{"no number", func(o *Options) { o.Rate = math.NaN() }, "NaN requests a second"},
		{"empty prompts", func(o *Options) { o.Input.Min = 0 }, "lengths of 0-5: expected 1 to 1048576 tokens"},
		{"long answers", func(o *Options) { o.Output.Max = 1 << 21 }, "lengths of 4-2097152"},
		{"reversed", func(o *Options) { o.Output = Range{5, 4} }, "lengths of 5-4"},
		{"prefix", func(o *Options) { o.Prefix = -1 }, "prefix of -1 tokens"},
		{"concurrency", func(o *Options) { o.Concurrency = -1 }, "concurrency -1"},
		{"warm-ups", func(o *Options) { o.Warmups = -1 }, "-1 warm-ups"},
		{"interference", func(o *Options) { o.Interfere = -1 }, "interference of prompts of -1 tokens: expected at most 1048576"},
		{"token ids", func(o *Options) { o.TokenIDs = Range{10, 5} }, "token ids of 10-5"},
		{"extra", func(o *Options) { o.Extra = map[string]json.RawMessage{"prompt": nil} }, `extra field "prompt": it is part of what is measured`},
		{"no JSON", func(o *Options) { o.Extra = map[string]json.RawMessage{"x": json.RawMessage("{")} }, "extra fields: "},
		{"time scale", func(o *Options) { o.Trace, o.TimeScale, o.LengthScale = &Trace{}, -1, 1 }, "time × -1, lengths × 1"},
		{"length scale", func(o *Options) { o.Trace, o.TimeScale, o.LengthScale = &Trace{}, 1, math.Inf(1) }, "time × 1, lengths × +Inf"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(nil)
			o.Model = "m"
			c.change(&o)
			if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

// More fields are added to every request, and replace those that have a default.
func TestExtraFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, func(w *writer, _ int, _ asked) { w.text("a"); w.end(5, 4) })
		o := options(start(t, s))
		o.IgnoreEOS, o.Text, o.Timeout = false, true, time.Second
		o.Extra = map[string]json.RawMessage{"temperature": json.RawMessage("1"), "model": json.RawMessage(`"x"`)}
		if _, err := Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		for _, r := range s.asked {
			var prompt string
			err := json.Unmarshal(r.Prompt, &prompt)
			if err != nil || len(strings.Fields(prompt)) != 5 || *r.Temperature != 1 || r.Model != "x" || r.IgnoreEOS {
				t.Errorf("%+v", r)
			}
		}
	})
}
