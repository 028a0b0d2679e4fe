package serve

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Streams whose chunks come every 10 ms, and every 40 ms while a long prompt is
// prefilled. A gap in which a prefill begins or ends belongs to it.
func TestInterference(t *testing.T) {
	for _, c := range []struct {
		name   string
		tokens int                         // of each of two streams
		long   func(w *writer, again bool) // answers a long prompt
		want   Interference
		sent   []time.Duration // when long prompts came
	}{
		{
			name: "half of the time",
			// Chunks at 105, 115, … 205 ms; 215 and, slow, 255 … 415; 425 … 605; 615 and 655 … 815.
			tokens: 1 + 10 + 6 + 19 + 6,
			long:   func(w *writer, _ bool) { w.wait(200 * step); w.text("a"); w.end(50, 1) },
			want: Interference{
				Completed: 2, TTFT: one(200), Apart: one(10),
				During: &Summary{Mean: 35, Median: 40, Std: 11.180339887, P90: 40, P99: 40, Min: 10, Max: 40},
			},
			// As long after the first token as that took, and then as long as the last prompt took.
			sent: []time.Duration{210 * step, 610 * step},
		},
		{
			name:   "the load ends before",
			tokens: 1 + 10 + 6,
			long:   func(w *writer, _ bool) { w.wait(time.Hour) },
			want:   Interference{Apart: one(10), During: &Summary{Mean: 35, Median: 40, Std: 11.180339887, P90: 40, P99: 40, Min: 10, Max: 40}},
			sent:   []time.Duration{210 * step},
		},
		{
			name:   "refused",
			tokens: 1 + 10 + 6 + 40,
			long: func(w *writer, again bool) {
				w.wait(200 * step)
				if again {
					w.WriteHeader(400)
					return
				}
				w.text("a")
				w.end(50, 1)
			},
			want: Interference{
				Completed: 1, Error: "400: Bad Request", TTFT: one(200), Apart: one(10),
				During: &Summary{Mean: 35, Median: 40, Std: 11.180339887, P90: 40, P99: 40, Min: 10, Max: 40},
			},
			sent: []time.Duration{210 * step, 610 * step},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var prefill atomic.Bool
				var seen int
				s := newScript(t, func(w *writer, _ int, r asked) {
					if r.MaxTokens == 1 {
						prefill.Store(true)
						defer prefill.Store(false)
						seen++
						c.long(w, seen > 1)
						return
					}
					w.wait(105 * step)
					w.text("a")
					for range c.tokens - 1 {
						gap := 10 * step
						if prefill.Load() {
							gap = 40 * step
						}
						w.wait(gap)
						w.text("b")
					}
					w.end(5, c.tokens)
				})
				o := options(start(t, s))
				o.Concurrency, o.Output, o.Interfere = 2, Range{c.tokens, c.tokens}, 50
				got, err := Run(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				if got.Completed != 2 || got.Failed+got.Interrupted != 0 || got.MaxConcurrent != 2 || got.InputTokens != 10 {
					t.Errorf("%+v: want the two streams alone", got)
				}
				if diff := cmp.Diff(&c.want, got.Interference, near); diff != "" {
					t.Errorf("interference (-want +got):\n%s", diff)
				}
				var sent []time.Duration
				for _, r := range s.asked {
					if r.MaxTokens == 1 {
						sent = append(sent, r.At)
					}
				}
				if diff := cmp.Diff(c.sent, sent); diff != "" {
					t.Errorf("long prompts came at (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// What is waited for are the requests of the start: one that fails without a
// token is not, and those that take the place of others are not either.
func TestInterferenceAwaitsTheStart(t *testing.T) {
	stream := func(w *writer, first time.Duration, tokens int) {
		w.wait(first * step)
		w.text("a")
		for range tokens - 1 {
			w.wait(10 * step)
			w.text("b")
		}
		w.end(5, tokens)
	}
	failing := func(w *writer) {
		w.wait(50 * step)
		w.WriteHeader(500)
	}
	for _, c := range []struct {
		name          string
		requests      int
		first, others func(w *writer)
		failed        int
		want          time.Duration // when the first long prompt came: twice when all were there
	}{
		{"one fails", 2, failing, func(w *writer) { stream(w, 105, 31) }, 1, 210},
		{"another takes its place", 3, failing, func(w *writer) { stream(w, 105, 31) }, 1, 210},
		{"one is slow, and others come and go", 4, func(w *writer) { stream(w, 305, 61) }, func(w *writer) { stream(w, 20, 2) }, 0, 610},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sent []time.Duration
				s := newScript(t, func(w *writer, i int, r asked) {
					switch {
					case r.MaxTokens == 1: // a long prompt
						sent = append(sent, r.At)
						w.wait(time.Hour)
					case i == 0:
						c.first(w)
					default:
						c.others(w)
					}
				})
				o := options(start(t, s))
				o.Requests, o.Concurrency, o.Output, o.Interfere = c.requests, 2, Range{61, 61}, 50
				got, err := Run(t.Context(), o)
				if err != nil || got.Completed != c.requests-c.failed || got.Failed != c.failed {
					t.Fatalf("%+v, %v; want %d of %d to fail", got, err, c.failed, c.requests)
				}
				if diff := cmp.Diff([]time.Duration{c.want * step}, sent); diff != "" {
					t.Errorf("long prompts came at (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Long prompts wait for all requests that came at the start and had a place,
// and for none that come by a clock.
func TestInterferenceBegins(t *testing.T) {
	for _, c := range []struct {
		name        string
		concurrency int
		arrivals    []time.Duration
		want        int
	}{
		{"closed loop", 4, make([]time.Duration, 10), 4},
		{"at once", 0, make([]time.Duration, 10), 10},
		{"by a clock", 0, []time.Duration{0, step, 2 * step}, 1},
	} {
		o := options(nil)
		o.Concurrency = c.concurrency
		g := &generator{client: &client{prompts: prompts{Options: &o}}}
		for _, at := range c.arrivals {
			g.requests = append(g.requests, Request{At: at})
		}
		if got := g.atStart(); got != c.want {
			t.Errorf("%s: after %d requests, want %d", c.name, got, c.want)
		}
	}
}

// Until all streams run, gaps are of their own prefill and count for neither;
// a prefill that has not ended goes on.
func TestGapsBeforeAndAfter(t *testing.T) {
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * step) }
	n := &interference{began: at(100), spans: []span{{at(200), at(300)}, {at(400), time.Time{}}}}
	n.count(&answer{first: at(20), gaps: []time.Duration{
		79 * step, // to 99
		2 * step,  // 101: it began before
		9 * step,  // 110: apart
		90 * step, // 200: apart, to when a prefill begins
		30 * step, // 230
		70 * step, // 300: to its end
		50 * step, // 350: apart
		60 * step, // 410
		20 * step, // 430
	}})
	if n.apart.len() != 3 || n.apart.high != 90*step || n.during.len() != 4 || n.during.high != 70*step || n.during.low != 20*step {
		t.Errorf("%d gaps apart up to %v, %d during of %v to %v; want 3 up to 90ms, 4 of 20ms to 70ms",
			n.apart.len(), n.apart.high, n.during.len(), n.during.low, n.during.high)
	}
}
