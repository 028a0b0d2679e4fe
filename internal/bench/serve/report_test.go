package serve

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"math"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// example is a report of three requests, one of which failed, and one of which
// has no usage.
func example() *generator {
	o := options(nil)
	o.Model, o.Rate, o.Seed = "a <b>model</b>", 2, 9
	o.Goodput = Limits{TTFT: 300}
	g := &generator{
		client:   &client{prompts: prompts{Options: &o}, base: "http://server"},
		requests: make([]Request, 5),
		records: []record{
			{due: 0, sent: 0, end: 1000 * step, ttft: 200 * step, e2e: 950 * step, input: 5, output: 4, chunks: 2, cached: 2, usage: true},
			{due: 500 * step, sent: 501 * step, end: 601 * step, err: failuref("503", "busy\n\x1b[31m<script>")},
			{due: 1000 * step, sent: 1002 * step, end: 4000 * step, ttft: 400 * step, e2e: 2950 * step, input: 5, output: 4, chunks: 4},
			{due: 1500 * step, sent: 3000 * step, end: 4000 * step, err: errInterrupted},
		},
	}
	for _, gap := range []int{750, 850, 850, 850} {
		g.gaps.add(time.Duration(gap) * step)
	}
	return g
}

func TestTable(t *testing.T) {
	var got strings.Builder
	if err := example().report().WriteTable(&got); err != nil {
		t.Fatal(err)
	}
	want := `requests            2 completed, 1 failed; interrupted: 1 given up, 1 not sent
duration            4.00 s, 1.3 requests at a time, at most 2
requests/s          0.500
input tokens/s      2.50 (10 in all, 2 of them cached)
output tokens/s     2.00 (8 in all)
goodput             0.250 requests/s, 33.3% within ttft:300 ms
tokens are counted  by the server's usage for 1 requests, as chunks for the 1 that had none
error 503           1 × busy  [31m<script>

ms     mean  median  std   p90   p99   max
TTFT   300   300     100   380   398   400
TPOT   550   550     300   790   844   850
ITL    825   850     43.3  850   850   850
E2E    1950  1950    1000  2750  2930  2950
delay  376   1.50    649   1051  1455  1500
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

// With long prompts between, what they did follows.
func TestTableOfInterference(t *testing.T) {
	g := example()
	g.Interfere = 4096
	g.long = &interference{ttft: []time.Duration{8000 * step, 9000 * step}, err: failuref("400", "too long")}
	g.long.during.add(60 * step)
	g.long.apart.add(25 * step)
	report := g.report()
	var got strings.Builder
	if err := report.WriteTable(&got); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\nlong prompts        2 of 4096 tokens, during which p99 of ITL is 2.40 times as long; then 400: too long\n",
		"\nTTFT, long prompts   8500  8500    500   8900  8990  9000\n",
		"\nITL during these     60.0  60.0",
		"\nITL apart from them  25.0  25.0",
	} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("table:\n%s\nwant %s", got.String(), want)
		}
	}
	var page strings.Builder
	if err := report.WriteHTML(&page); err != nil || !strings.Contains(page.String(), "long prompts between</th><td>4096") {
		t.Errorf("page (%v):\n%s", err, page.String())
	}
}

func TestSignificant(t *testing.T) {
	for v, want := range map[float64]string{0: "0.00", 0.0126: "0.013", 0.9996: "1.000", 1: "1.00", 9.876: "9.88", 10: "10.0", 99.94: "99.9", 100: "100", 123456.7: "123457"} {
		if got := significant(v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
}

// How many requests ran together follows from when each began and ended; one
// that begins when another ends does not run together with it.
func TestConcurrency(t *testing.T) {
	for _, c := range []struct {
		name           string
		spans          [][2]int // ms
		duration, mean float64
		most           int
	}{
		{"none", nil, 0, 0, 0},
		{"one", [][2]int{{100, 300}}, 0.2, 1, 1},
		{"one after the other", [][2]int{{0, 100}, {100, 200}, {200, 300}}, 0.3, 1, 1},
		{"together", [][2]int{{0, 100}, {0, 100}, {50, 200}}, 0.2, 1.75, 3},
		{"a pause", [][2]int{{300, 400}, {0, 100}}, 0.4, 0.5, 1},
		{"no time at all", [][2]int{{7, 7}, {7, 7}}, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var records []record
			first := math.MaxInt
			for _, s := range c.spans {
				first = min(first, s[0])
				records = append(records, record{sent: time.Duration(s[0]) * step, end: time.Duration(s[1]) * step})
			}
			var r Report
			r.concurrency(records)
			if r.Duration != c.duration || r.MaxConcurrent != c.most || math.Abs(r.MeanConcurrent-c.mean) > 1e-12 {
				t.Errorf("%v s, %v at a time, at most %d; want %v, %v, %d", r.Duration, r.MeanConcurrent, r.MaxConcurrent, c.duration, c.mean, c.most)
			}
			for i, busy := range r.busy {
				at := float64(first) + (float64(i)+0.5)/busyParts*r.Duration*1e3
				want := 0.0
				for _, s := range c.spans {
					if at > float64(s[0]) && at < float64(s[1]) {
						want++
					}
				}
				if math.Abs(busy-want) > 1e-9 {
					t.Fatalf("%v requests ran after %v ms, want %v", busy, at, want)
				}
			}
		})
	}
}

// The page is complete in itself, and what the server said is only text in it.
func TestHTML(t *testing.T) {
	var page bytes.Buffer
	if err := example().report().WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	if n := strings.Count(text, "<svg "); n != 5 {
		t.Errorf("%d plots, want 5", n)
	}
	for _, want := range []string{"a &lt;b&gt;model&lt;/b&gt;", "http://server/v1/completions", "busy  [31m&lt;script&gt;", "prefers-color-scheme: dark", "by the server&#39;s usage for 1"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the page", want)
		}
	}
	if bad := regexp.MustCompile(`(?i)src=|href=|url\(|@import|<script|NaN|Inf|ZgotmplZ|%!`).FindString(text); bad != "" {
		t.Errorf("%q is in the page", bad)
	}
	decoder := xml.NewDecoder(&page)
	decoder.Strict, decoder.AutoClose, decoder.Entity = false, []string{"meta"}, xml.HTMLEntity
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("the page is no XML: %v", err)
		}
		// What is drawn lies on the paper.
		for _, a := range attributes(token) {
			switch a.Name.Local {
			case "x", "x1", "x2", "y", "y1", "y2", "points":
				for _, number := range regexp.MustCompile(`[^ ,]+`).FindAllString(a.Value, -1) {
					var v float64
					if err := json.Unmarshal([]byte(number), &v); err != nil || v < 0 || v > 640 {
						t.Errorf("%s=%q", a.Name.Local, a.Value)
					}
				}
			}
		}
	}
}

func attributes(token xml.Token) []xml.Attr {
	element, _ := token.(xml.StartElement)
	return element.Attr
}

// A run without a completed request has a page too.
func TestHTMLOfNothing(t *testing.T) {
	var o Options
	g := &generator{client: &client{prompts: prompts{Options: &o}}}
	if err := g.report().WriteHTML(io.Discard); err != nil {
		t.Error(err)
	}
}

func TestAxis(t *testing.T) {
	for _, c := range []struct {
		name      string
		low, high float64
		want      []float64
	}{
		{"linear", 0.9, 7.3, []float64{2, 4, 6}},
		{"from 0", 0, 100, []float64{0, 20, 40, 60, 80, 100}},
		{"a single value", 5, 5, []float64{0, 2, 4, 6, 8, 10}},
		{"zero", 0, 0, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{"logarithmic", 0.9, 110, []float64{1, 2, 5, 10, 20, 50, 100}},
		{"powers of ten", 3, 2e5, []float64{10, 100, 1000, 1e4, 1e5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAxis(c.low, c.high)
			if diff := cmp.Diff(c.want, a.ticks(), near); diff != "" {
				t.Errorf("ticks (-want +got):\n%s", diff)
			}
			for _, v := range append(c.want, c.low, c.high) {
				part := a.of(v)
				if back := a.value(part); part < -1e-9 || part > 1+1e-9 || math.Abs(back-v) > 1e-9*max(v, 1) {
					t.Errorf("%v is at %v, which is %v", v, part, back)
				}
			}
		})
	}
}

// The histogram has the shape of its values, and the curve rises from the least
// to the greatest.
func TestPlot(t *testing.T) {
	var d []time.Duration
	for i := range 100 { // 25 of 10 ms, 75 of 20 to 27.4
		d = append(d, 10*step)
		if i >= 25 {
			d[i] = 20*step + time.Duration(i-25)*100*time.Microsecond
		}
	}
	p := newPlot("x", newSamples(d))
	if first := p.Bars[0]; first.X != plotLeft || first.Y != plotTop || first.Height != plotBottom-plotTop {
		t.Errorf("first bar %+v", first)
	}
	for _, b := range p.Bars[1:] {
		if b.X < horizontal(0.55) || b.Height > 29.2 { // 4 of the 25
			t.Errorf("bar %+v", b)
		}
	}
	if !strings.HasPrefix(p.Curve, "56,196 ") || !strings.HasSuffix(p.Curve, " 628,14") {
		t.Errorf("curve %s", p.Curve)
	}
	if p50 := horizontal((22.45 - 10) / 17.4); math.Abs(p.Marks[0].At-p50) > 0.2 {
		t.Errorf("p50 at %v, want %v", p.Marks[0].At, p50)
	}
}

// Every field of the JSON is described.
func TestFieldsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/benchmarking.md")
	if err != nil {
		t.Fatal(err)
	}
	fields := 0
	var check func(reflect.Type)
	check = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Map:
			check(typ.Elem())
		case reflect.Struct:
			for field := range typ.Fields() {
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				if name == "" {
					continue
				}
				fields++
				if !bytes.Contains(page, []byte("`"+name+"`")) {
					t.Errorf("docs/benchmarking.md does not describe %q of %v", name, typ)
				}
				check(field.Type)
			}
		}
	}
	check(reflect.TypeFor[Report]())
	for _, kind := range []string{kindConnect, kindConnection, kindTimeout, kindCut, kindInvalid, kindStream, kindEmpty} {
		if !bytes.Contains(page, []byte("`"+kind+"`")) {
			t.Errorf("docs/benchmarking.md does not describe errors of kind %q", kind)
		}
	}
	if fields < 40 {
		t.Errorf("only %d fields were checked", fields)
	}
}

// What is kept of a request is a record: neither its prompt, nor its answer, nor
// the times of its tokens.
func TestMemory(t *testing.T) {
	if size := reflect.TypeFor[record]().Size(); size > 96 {
		t.Errorf("a record has %d bytes", size)
	}
	const requests, tokens = 100_000, 100
	heap := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	o := options(nil)
	o.Requests = requests
	g := &generator{client: &client{prompts: prompts{Options: &o}}, requests: make([]Request, requests)}
	before := heap()
	a := &answer{gaps: make([]time.Duration, tokens-1)}
	for i := range requests {
		for j := range a.gaps {
			a.gaps[j] = time.Duration(1+(i*31+j*17)%5000) * 10 * time.Microsecond
		}
		g.keep(record{end: time.Duration(i + 1), ttft: step, e2e: step, output: tokens}, a)
	}
	if used := heap() - before; used > 16<<20 {
		t.Errorf("%d requests take %d MiB, want at most 16", requests, used>>20)
	}
	r := g.report()
	before = heap() - before
	if r.Completed != requests || r.ITL.Max != 50 || before > 24<<20 {
		t.Errorf("%d requests, ITL up to %v ms, %d MiB with the report", r.Completed, r.ITL.Max, before>>20)
	}
	runtime.KeepAlive(g)
}
