package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// near compares what is measured, but for rounding.
var near = cmp.Options{cmpopts.EquateApprox(1e-12, 1e-9), cmpopts.IgnoreUnexported(Report{})}

func one(v float64) *Summary {
	return &Summary{Mean: v, Median: v, P90: v, P99: v, Min: v, Max: v}
}

// Two requests, one after the other, of which all is known.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, func(w *writer, i int, _ asked) {
			w.wait(time.Duration(100+50*i) * step) // 100 ms, then 150
			w.text("a")
			for range 3 {
				w.wait(20 * step)
				w.text("b")
			}
			w.end(5, 4)
		})
		o := options(start(t, s))
		o.APIKey = "secret"
		var progress []int
		o.Progress = func(done, total int) { progress = append(progress, done, total) }
		o.Goodput = Limits{TTFT: 120, TPOT: 20}
		got, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		want := &Report{
			URL: "http://server/v1/completions", Model: "m",
			Load: Load{
				Arrivals: "closed loop", Concurrency: 1, Requests: 2, Input: "5", Output: "4", Prompts: "tokens", IgnoreEOS: true,
			},
			Duration: 0.370, Completed: 2, Errors: map[string]Failure{},
			MaxConcurrent: 1, MeanConcurrent: 1,
			InputTokens: 10, CachedTokens: 6, OutputTokens: 8, OutputChunks: 8, CountedByUsage: 2,
			RequestThroughput: 2 / 0.370, InputThroughput: 10 / 0.370, OutputThroughput: 8 / 0.370,
			Goodput: &Goodput{Limits: Limits{TTFT: 120, TPOT: 20}, Requests: 1, Share: 0.5, RequestThroughput: 1 / 0.370},
			TTFT:    &Summary{Mean: 125, Median: 125, Std: 25, P90: 145, P99: 149.5, Min: 100, Max: 150},
			TPOT:    one(20), ITL: one(20),
			E2E: &Summary{Mean: 185, Median: 185, Std: 25, P90: 205, P99: 209.5, Min: 160, Max: 210},
		}
		if diff := cmp.Diff(want, got, near); diff != "" {
			t.Errorf("report (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int{1, 2, 2, 2}, progress); diff != "" {
			t.Errorf("progress: %s", diff)
		}
		for i, r := range s.asked {
			if r.Path != "/v1/completions" || r.Key != "Bearer secret" || r.Model != "m" || r.MaxTokens != 4 || !r.Stream ||
				!r.StreamOptions.IncludeUsage || r.Temperature == nil || *r.Temperature != 0 {
				t.Errorf("request %d: %+v", i, r)
			}
		}
		if s.asked[1].At != 160*step {
			t.Errorf("the second request came at %v, want 160ms: when the first had ended", s.asked[1].At)
		}
	})
}

// A server that speculates sends several tokens in a chunk: the time per token
// follows its usage, and not the chunks.
func TestBursts(t *testing.T) {
	for _, c := range []struct {
		name          string
		usage         int
		input, output int64
		tpot          float64
		perSecond     float64
		counting      string
	}{
		{"usage", 9, 14, 18, 10, 100, "by the server's usage; a chunk has 3.00, and ITL is between chunks"},
		{"no usage", 0, 16, 6, 40, 100. / 3, "as chunks: the server sends no usage"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t, func(w *writer, _ int, _ asked) {
					w.wait(10 * step)
					w.text("x y z")
					w.wait(40 * step)
					w.text("") // special tokens, which have no text
					w.wait(40 * step)
					w.text("x y z")
					w.end(7, c.usage)
				})
				o := options(start(t, s))
				o.Prefix = 3
				got, err := Run(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				if got.InputTokens != c.input || got.OutputTokens != c.output || got.OutputChunks != 6 {
					t.Errorf("%d tokens in, %d out in %d chunks, want %d, %d in 6", got.InputTokens, got.OutputTokens, got.OutputChunks, c.input, c.output)
				}
				if diff := cmp.Diff([]*Summary{one(c.tpot), one(40)}, []*Summary{got.TPOT, got.ITL}, near); diff != "" {
					t.Errorf("TPOT and ITL: %s", diff)
				}
				if diff := cmp.Diff(c.perSecond, got.OutputThroughput, near); diff != "" {
					t.Errorf("tokens/s: %s", diff)
				}
				if got.counting() != c.counting {
					t.Errorf("tokens are counted %s, want %s", got.counting(), c.counting)
				}
			})
		})
	}
}

// The chunk that begins a chat is no token; reasoning and tool calls are, and
// comments are nothing.
func TestChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		delta := func(w *writer, d string) { w.data(`{"choices":[{"index":0,"delta":%s,"finish_reason":null}]}`, d) }
		s := newScript(t, func(w *writer, _ int, _ asked) {
			w.wait(5 * step)
			delta(w, `{"role":"assistant","content":""}`)
			w.raw(": ping\n\n")
			w.wait(25 * step)
			delta(w, `{"reasoning_content":"hm"}`)
			w.wait(10 * step)
			delta(w, `{"content":"yes","reasoning_content":null}`)
			w.wait(10 * step)
			w.raw("data: {\"choices\":[{\"delta\":{\"tool_calls\":\ndata: [{\"index\":0}]}}]}\r\n\r\n")
			w.wait(10 * step)
			w.data(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
			w.data("[DONE]")
		})
		o := options(start(t, s))
		o.Endpoint, o.Model, o.BaseURL = Chat, "other", "http://server/"
		got, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]*Summary{one(30), one(10), one(50)}, []*Summary{got.TTFT, got.TPOT, got.E2E}, near); diff != "" {
			t.Errorf("TTFT, TPOT and E2E: %s", diff)
		}
		if got.Duration != 0.120 || got.Load.Prompts != "text" {
			t.Errorf("duration %v, prompts of %s; want 0.12 and text", got.Duration, got.Load.Prompts)
		}
		for i, r := range s.asked {
			if r.Path != "/v1/chat/completions" || r.Model != "other" || len(r.Messages) != 1 || r.Messages[0].Role != "user" ||
				len(strings.Fields(r.Messages[0].Content)) != 5 {
				t.Errorf("request %d: %+v", i, r)
			}
		}
	})
}

// Arrivals do not wait for answers, unless they are more than may run at a time;
// that wait is delay.
func TestPoisson(t *testing.T) {
	for _, concurrency := range []int{0, 1} {
		t.Run(fmt.Sprint("concurrency ", concurrency), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t, func(w *writer, _ int, _ asked) {
					w.wait(time.Second)
					w.text("a")
					w.end(5, 1)
				})
				o := options(start(t, s))
				o.Model, o.Requests, o.Rate, o.Concurrency, o.Seed = "m", 20, 10, concurrency, 7
				plan, err := o.plan()
				if err != nil {
					t.Fatal(err)
				}
				var sent, want []time.Duration
				var delay, free time.Duration
				for _, r := range plan.Requests {
					at := r.At
					if concurrency == 1 {
						at = max(at, free)
						free = at + time.Second
					}
					delay += at - r.At
					sent, want = append(sent, 0), append(want, at)
				}
				got, err := Run(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				for i, r := range s.asked {
					sent[i] = r.At
				}
				slices.Sort(sent)
				if diff := cmp.Diff(want, sent); diff != "" {
					t.Errorf("arrivals at the server: %s", diff)
				}
				if diff := cmp.Diff(one(1000), got.TTFT, near); diff != "" {
					t.Errorf("TTFT: %s", diff)
				}
				if diff := cmp.Diff(ms(delay)/20, got.Delay.Mean, near); diff != "" {
					t.Errorf("delay: %s", diff)
				}
				if got.TPOT != nil || got.ITL != nil {
					t.Errorf("TPOT %v and ITL %v of answers with one token", got.TPOT, got.ITL)
				}
				if concurrency == 1 && got.MaxConcurrent != 1 || concurrency == 0 && got.MaxConcurrent < 5 {
					t.Errorf("%d requests ran together", got.MaxConcurrent)
				}
			})
		})
	}
}

// Whatever a server does is a failure of a kind, and the other requests count.
func TestHostileServers(t *testing.T) {
	ok := func(w *writer) { w.text("a"); w.end(5, 4) }
	for _, c := range []struct {
		name    string
		answer  func(w *writer)
		kind    string
		example string
	}{
		{"busy", func(w *writer) { w.WriteHeader(503); w.raw(`{"error":{"message":"queue is full","code":503}}`) }, "503", "queue is full"},
		{"error as a string", func(w *writer) { w.WriteHeader(400); w.raw(`{"error":"no such\nmodel"}`) }, "400", "no such model"},
		{"no text", func(w *writer) { w.WriteHeader(500) }, "500", "Internal Server Error"},
		{"redirection", func(w *writer) { w.Header().Set("Location", "http://elsewhere/"); w.WriteHeader(307) }, "307", "Temporary Redirect"},
		{"junk", func(w *writer) { w.raw("\x00\xff\x1b[2J\n\n\n"); w.data("[DONE]") }, kindEmpty, "a stream without a token"},
		{"no JSON", func(w *writer) { w.data("{") }, kindInvalid, "an event that is no chunk of /v1/completions: unexpected end of JSON input"},
		{"other JSON", func(w *writer) { w.data(`{"choices":[{"text":1}]}`) }, kindInvalid, "an event that is no chunk"},
		{"a list", func(w *writer) { w.data(`[]`) }, kindInvalid, "an event that is no chunk"},
		{"deep", func(w *writer) { w.data("%s", strings.Repeat("[", 1e5)) }, kindInvalid, "an event that is no chunk"},
		{"huge line", func(w *writer) { w.raw("data: " + strings.Repeat("x", maxEvent+1)) }, kindInvalid, "a line of more than 1048576 bytes"},
		{"huge event", func(w *writer) { w.raw(strings.Repeat("data: 0123456789abcdef\n", 1<<17)) }, kindInvalid, "an event of more than 1048576 bytes"},
		{"no stream", func(w *writer) { w.Header().Set("Content-Type", "application/json"); w.raw(`{}`) }, kindInvalid, "content of type application/json"},
		{"half a stream", func(w *writer) { w.text("a"); panic(http.ErrAbortHandler) }, kindCut, "unexpected EOF"},
		{"no end", func(w *writer) { w.text("a") }, kindCut, "the stream ended without [DONE]"},
		{"nothing", func(w *writer) { w.raw("") }, kindCut, "the stream ended without [DONE]"},
		{"no token", func(w *writer) { w.end(5, 4) }, kindEmpty, "a stream without a token"},
		{"error", func(w *writer) { w.text("a"); w.data(`{"error":{"message":"out of pages"}}`) }, kindStream, "out of pages"},
		{"named error", func(w *writer) { w.raw("event: error\ndata: gone\n\n") }, kindStream, "gone"},
		{"error of llama.cpp", func(w *writer) { w.raw("error: {\"message\":\"broken\"}\n\n") }, kindStream, "broken"},
		{"negative usage", func(w *writer) { w.text("a"); w.data(`{"usage":{"completion_tokens":-1}}`) }, kindInvalid, "usage"},
		{"huge usage", func(w *writer) { w.text("a"); w.data(`{"usage":{"completion_tokens":1e18}}`) }, kindInvalid, "an event that is no chunk"},
		{"endless", func(w *writer) {
			for {
				w.text("a")
				w.wait(0)
			}
		}, kindInvalid, "more than 80 chunks"},
		{"slow to begin", func(w *writer) { w.wait(time.Hour) }, kindTimeout, "no whole answer in time"},
		{"slow to go on", func(w *writer) { w.text("a"); w.wait(time.Hour) }, kindTimeout, "no whole answer in time"},
		{"comments only", func(w *writer) {
			for {
				w.raw(": ping\n\n")
				w.wait(time.Second)
			}
		}, kindTimeout, "no whole answer in time"},
		{"closes", func(w *writer) { panic(http.ErrAbortHandler) }, kindConnection, "EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t, func(w *writer, i int, _ asked) {
					if i != 0 {
						ok(w)
						return
					}
					c.answer(w)
				})
				o := options(start(t, s))
				o.Model = "m" // the first request is the first on its connection
				got, err := Run(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				if got.Completed != 1 || got.Failed != 1 || got.OutputTokens != 4 || got.Interrupted != 0 {
					t.Errorf("%d completed with %d tokens, %d failed; want 1 with 4, and 1", got.Completed, got.OutputTokens, got.Failed)
				}
				if e := got.Errors[c.kind]; len(got.Errors) != 1 || e.Count != 1 || !strings.Contains(e.Example, c.example) {
					t.Errorf("errors %+v, want one of kind %s: %q", got.Errors, c.kind, c.example)
				}
				if c.kind == kindTimeout && got.Duration != 60 {
					t.Errorf("the run took %v s, want the timeout, 60", got.Duration)
				}
			})
		})
	}
}

// A server that closes each connection when a second request comes is no
// reason for that to fail: it is sent on another.
func TestKeptConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		defer p.Close()
		connections := 0
		go func() {
			for {
				conn, err := p.Accept()
				if err != nil {
					return
				}
				connections++
				in := bufio.NewReader(conn)
				if r, err := http.ReadRequest(in); err == nil {
					io.Copy(io.Discard, r.Body)
					const stream = "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: [DONE]\n\n"
					fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", len(stream), stream)
					in.Peek(1)
				}
				conn.Close()
			}
		}()
		o := options(&http.Transport{DialContext: p.dial})
		o.Model, o.Requests = "m", 4
		got, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if got.Completed != 4 || connections != 4 {
			t.Errorf("%d completed on %d connections, want 4 on as many; errors: %v", got.Completed, connections, got.Errors)
		}
	})
}

func TestNoServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		p.Close()
		o := options(&http.Transport{DialContext: p.dial})
		if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "http://server/v1/models: ") {
			t.Errorf("error %v, want one of /v1/models", err)
		}
		o.Model = "m"
		got, err := Run(t.Context(), o)
		if err != nil || got.Failed != 2 || got.Errors[kindConnect].Count != 2 || got.RequestThroughput != 0 {
			t.Errorf("%+v, %v; want 2 errors of connect", got, err)
		}
		if _, err := json.Marshal(got); err != nil {
			t.Error(err)
		}
		o.Warmups = 1
		if _, err := Run(t.Context(), o); err == nil || !strings.HasPrefix(err.Error(), "warm-up: connect: ") {
			t.Errorf("error %v, want one of the warm-up", err)
		}
	})
}

// Without a model's name the server is asked for the only one it has.
func TestModelNames(t *testing.T) {
	for _, c := range []struct{ answer, want string }{
		{`{"data":[]}`, "has 0 models ()"},
		{`{"data":[{"id":"a"},{"id":"b"}]}`, "has 2 models (a, b): say which one to measure"},
		{`[]`, "expected a list of models"},
		{`{`, "expected a list of models"},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := options(start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, c.answer) })))
			if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v, want %q", c.answer, err, c.want)
			}
		})
	}
}

// When the user has seen enough, requests that run are given up, and what had
// ended is reported.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, func(w *writer, i int, _ asked) {
			w.wait(100 * step)
			w.text("a")
			if i >= 2 {
				w.wait(time.Hour)
			}
			w.end(5, 1)
		})
		o := options(start(t, s))
		o.Model, o.Requests, o.Concurrency = "m", 10, 2
		ctx, cancel := context.WithTimeout(t.Context(), 250*step)
		defer cancel()
		got, err := Run(ctx, o)
		if !errors.Is(err, context.DeadlineExceeded) || got == nil {
			t.Fatalf("error %v, report %v; want both", err, got)
		}
		if got.Completed != 2 || got.Interrupted != 2 || got.Unsent != 6 || got.Failed != 0 || got.Duration != 0.250 {
			t.Errorf("%d completed, %d given up, %d not sent, %d failed in %v s; want 2, 2, 6, 0 in 0.25", got.Completed, got.Interrupted, got.Unsent, got.Failed, got.Duration)
		}
		if diff := cmp.Diff(one(100), got.TTFT, near); diff != "" {
			t.Errorf("TTFT: %s", diff)
		}
	})
}

// Warm-ups have come and gone before what counts, and share only the prefix.
func TestWarmups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, func(w *writer, i int, _ asked) {
			w.wait(time.Duration(100-i) * step)
			w.text("a")
			w.end(5, 4)
		})
		o := options(start(t, s))
		o.Warmups, o.Prefix = 3, 2
		got, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if got.Completed != 2 || got.TTFT.Max != 97 || got.Duration != 0.193 {
			t.Errorf("%d completed in %v s, TTFT %+v", got.Completed, got.Duration, got.TTFT)
		}
		var prompts [][]int
		for _, r := range s.asked {
			var ids []int
			if err := json.Unmarshal(r.Prompt, &ids); err != nil {
				t.Fatal(err)
			}
			prompts = append(prompts, ids)
		}
		for i, p := range prompts {
			for _, q := range prompts[:i] {
				if len(p) != 7 || !slices.Equal(p[:2], q[:2]) || slices.Equal(p[2:], q[2:]) {
					t.Errorf("prompts %v and %v: want 7 tokens, of which the first 2 are the same", p, q)
				}
			}
		}
	})
}

// A trace's blocks are not in a cache when they count for the first time.
func TestWarmupsOfATrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, func(w *writer, _ int, _ asked) { w.text("a"); w.end(5, 4) })
		o := options(start(t, s))
		o.Requests, o.Warmups, o.TimeScale, o.LengthScale = 0, 1, 1, 1
		o.Trace = &Trace{BlockSize: 5, Requests: []Request{{Input: 5, Output: 1, Blocks: []int64{1}}, {Input: 5, Output: 1, Blocks: []int64{1}}}}
		if _, err := Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		warmup, first, second := string(s.asked[0].Prompt), string(s.asked[1].Prompt), string(s.asked[2].Prompt)
		if first != second || warmup == first {
			t.Errorf("prompts %s, then %s and %s: want the same twice, and another before", warmup, first, second)
		}
	})
}

// A server that does not end its stream after [DONE] holds a place for no more
// than a moment.
func TestStreamThatStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, func(w *writer, _ int, _ asked) {
			w.text("a")
			w.end(5, 4)
			w.wait(time.Hour)
		})
		got, err := Run(t.Context(), options(start(t, s)))
		if err != nil || got.Completed != 2 || got.E2E.Max != 0 {
			t.Errorf("%+v, %v", got, err)
		}
		if at := s.asked[1].At; at != drainTime {
			t.Errorf("the second request came at %v, want %v", at, drainTime)
		}
	})
}
