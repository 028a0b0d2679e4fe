package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/bench/serve"
	"github.com/foretoken/foretoken/internal/checkpoint"
)

// standServer is every server that peer runs. It answers at once, and ends
// when it is interrupted.
func standServer(name string, args []string) {
	flag := func(name string) string { return args[slices.Index(args, name)+1] }
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	var loaded atomic.Bool
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if name != "foretoken" || !loaded.Swap(true) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		if name == "foretoken" && !loaded.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		io.WriteString(w, `{"data":[{"id":"m"}]}`)
	})
	mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Prompt any // ids, or a text
			Tokens int `json:"max_tokens"`
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		prompt := 7
		if ids, ok := request.Prompt.([]any); ok {
			prompt = len(ids)
		}
		tokens := request.Tokens
		if strings.Contains(strings.Join(args, " "), "lazy") {
			tokens--
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for range tokens {
			io.WriteString(w, "data: {\"choices\":[{\"text\":\"a\"}]}\n\n")
		}
		fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n", prompt, tokens)
	})
	l, err := net.Listen("tcp", net.JoinHostPort(flag("--host"), flag("--port")))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	http.Serve(l, mux)
}

// words writes a file that has a vocabulary.
func words(t *testing.T, path string) string {
	t.Helper()
	err := writeFile(path, func(w io.Writer) error {
		return checkpoint.WriteGGUF(w, vocabulary(300), []checkpoint.TensorWriter{norm("x", 32)})
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Each load has servers of its own, one at a time and in turns, each with as
// many places and as much context as the load takes.
func TestServeCompares(t *testing.T) {
	dir, commands := setup(t)
	model, results := words(t, filepath.Join(dir, "m.gguf")), filepath.Join(dir, "results.json")
	text, err := output(t, func() error {
		return command(context.Background(), []string{
			"serve", "-dir", dir, "-foretoken", filepath.Join(dir, "foretoken"), "-model", model, "-t", "1", "-rounds", "2",
			"-streams", "2", "-input", "10", "-output", "4", "-interfere", "", "-prefix", "20", "-args", "--kv-cache-dtype,f16", "-json", results,
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile(`(?m)^\| (.*?) \| (?:threads|1) \| .* \| .* \| .* \|$`).FindAllStringSubmatch(text, -1)
	var got []string
	for _, line := range table {
		got = append(got, line[1])
	}
	want := []string{
		"m", "2 streams of 10 + 4: output, tokens/s", "2 streams of 10 + 4: TTFT median, ms", "2 streams of 10 + 4: ITL median, ms", "2 streams of 10 + 4: ITL p99, ms",
		"prompts of 20 + 32: TTFT, ms", "prompts of 20 + 32: TTFT, prefix cached, ms", "prompts of 20 + 32: TTFT to that with the prefix cached",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("figures of\n%s\n(-want +got):\n%s", text, diff)
	}

	ours := "foretoken serve " + model + " --threads 1 --max-num-seqs %d --kv-cache-dtype f16 --host 127.0.0.1 --port"
	peer := "llama-server -m " + model + " -t 1 -np %d -c %d --offline --no-ui --cache-ram 0%s --host 127.0.0.1 --port"
	streams := []string{fmt.Sprintf(ours, 2), fmt.Sprintf(peer, 2, 60, " --no-cache-prompt"), fmt.Sprintf(peer, 2, 60, " --no-cache-prompt")}
	prefix := []string{fmt.Sprintf(ours, 1), fmt.Sprintf(peer, 1, 68, ""), fmt.Sprintf(peer, 1, 68, "")}
	turns := slices.Concat(streams, prefix)
	slices.Reverse(streams) // who is first alternates
	slices.Reverse(prefix)
	turns = slices.Concat(turns, streams, prefix)
	var ran []string
	for _, c := range commands() {
		ran = append(ran, c[:strings.LastIndexByte(c, ' ')])
	}
	if diff := cmp.Diff(turns, ran); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}

	var written []struct{ Rows []servingRow }
	data, _ := os.ReadFile(results)
	if err := json.Unmarshal(data, &written); err != nil {
		t.Fatal(err)
	}
	if len(written) != 1 || len(written[0].Rows) != 7 || len(written[0].Rows[6].Samples) != 2 || len(written[0].Rows[6].PeerSamples) != 2 {
		t.Errorf("results: %s", data)
	}
}

func TestServeErrors(t *testing.T) {
	dir, _ := setup(t)
	model := words(t, filepath.Join(dir, "m.gguf"))
	lazy := words(t, filepath.Join(dir, "lazy.gguf"))
	broken := words(t, filepath.Join(dir, "broken.gguf"))
	mute := filepath.Join(dir, "mute.gguf")
	err := writeFile(mute, func(w io.Writer) error {
		return checkpoint.WriteGGUF(w, []checkpoint.Pair{{Key: "tokenizer.ggml.model", Value: "no_vocab"}}, []checkpoint.TensorWriter{norm("x", 32)})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"serve", "expected a -model"},
		{"serve -model m -rounds 0", "-rounds and lengths of at least 1"},
		{"serve -model m -output 0", "lengths of at least 1"},
		{"serve -model m -prefix -1", "no negative number"},
		{"serve -model m -interfere 9,x", "-interfere 9,x: expected numbers of at least 1"},
		{"serve -model m -t=", "a number of threads"},
		{"serve -model m -builds openmp,cuda", "-builds cuda: expected some of openmp,threads"},
		{"serve -model none.gguf -foretoken " + dir + "/foretoken", "none.gguf"},
		{"serve -model " + mute + " -foretoken " + dir + "/foretoken", "its tokens have no text"},
		{"serve -model " + broken + " -foretoken " + dir + "/foretoken", "exit status 1\nno such model"},
		{"serve -streams 1 -output 3 -model " + lazy + " -foretoken " + dir + "/foretoken", "foretoken: the server counts 1024 tokens in and 4 out, expected 1024 and 6"},
		{"serve -model " + model + " -foretoken " + dir + "/none", "no such file"},
	} {
		args := strings.Fields(c.args)
		args = append([]string{args[0], "-dir", dir}, args[1:]...)
		if err := command(context.Background(), args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.args, err, c.want)
		}
	}
}

// What servers are asked, and what follows from their reports.
func TestLoads(t *testing.T) {
	s := serving{streams: 16, requests: 32, input: 512, output: 128, interfere: []int{4096}, beside: 4, besideOutput: 700, prefix: 2048}
	loads := s.loads()
	var got []string
	for _, l := range loads {
		for _, o := range l.asked {
			if err := o.Check(); err != nil {
				t.Error(err)
			}
			got = append(got, fmt.Sprintf("%d of %v (%d common) + %v, %d at a time, beside %d", o.Requests, o.Input, o.Prefix, o.Output, o.Concurrency, o.Interfere))
		}
	}
	want := []string{
		"32 of 512 (0 common) + 128, 16 at a time, beside 0",
		"4 of 512 (0 common) + 700, 4 at a time, beside 4096",
		"5 of 2080 (0 common) + 1, 1 at a time, beside 0",
		"20 of 32 (2048 common) + 1, 1 at a time, beside 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("loads (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(capacity{slots: 5, context: 4112}, loads[1].capacity, cmp.AllowUnexported(capacity{})); diff != "" {
		t.Errorf("capacity beside long prompts (-want +got):\n%s", diff)
	}

	at := func(median, p99 float64) *serve.Summary { return &serve.Summary{Median: median, P99: p99} }
	for _, c := range []struct {
		name    string
		load    load
		reports []*serve.Report
		want    []float64
		err     string
	}{
		{"throughput", loads[0], []*serve.Report{{OutputThroughput: 200, TTFT: at(900, 0), ITL: at(20, 90)}}, []float64{200, 900, 20, 90}, ""},
		{"a single chunk", loads[0], []*serve.Report{{TTFT: at(900, 0)}}, nil, "a chunk brought all tokens"},
		{
			"interference", loads[1],
			[]*serve.Report{{Interference: &serve.Interference{Completed: 1, TTFT: at(8000, 0), During: at(0, 60), Apart: at(0, 24)}}},
			[]float64{24, 60, 2.5, 8000},
			"",
		},
		{"a refused prompt", loads[1], []*serve.Report{{Interference: &serve.Interference{Error: "400: too long"}}}, nil, "a prompt of 4096 tokens: 400: too long"},
		{"short streams", loads[1], []*serve.Report{{Interference: &serve.Interference{During: at(0, 60), Apart: at(0, 24)}}}, nil, "expected a larger -beside-output"},
		{"prefix", loads[2], []*serve.Report{{TTFT: at(3000, 0)}, {TTFT: at(150, 0)}}, []float64{3000, 150, 20}, ""},
	} {
		got, err := c.load.values(c.reports)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %s", c.name, err, c.err)
			}
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", c.name, err, diff)
		}
		if len(got) != len(c.load.figures) {
			t.Errorf("%s: %d values of %d figures", c.name, len(got), len(c.load.figures))
		}
	}
}

// The better setting counts for each figure on its own, and a ratio above 1
// says that Foretoken is better.
func TestServingRows(t *testing.T) {
	c := servingComparison{
		model:    "some/model.gguf",
		loads:    []load{{figures: []servingFigure{{name: "speed", higher: true}, {name: "time"}, {name: "times", within: true}}}},
		settings: settings, values: map[servingKey][]float64{},
	}
	for setting, medians := range map[string][]float64{ourselves: {300, 20, 2.5}, settings[0].name: {100, 50, 40}, settings[1].name: {120, 55.5, 41}} {
		for i, f := range c.loads[0].figures {
			c.values[servingKey{setting, 2, f.name}] = []float64{9999, medians[i], 0} // one is slow, one is fast
		}
	}
	var got strings.Builder
	c.write(&got)
	want := `| model | threads | foretoken | llama.cpp | ratio |
|---|---|---|---|---|
| speed | 2 | 300 | 120, own threads | 2.50 |
| time | 2 | 20.0 | 50.0 | 2.50 |
| times | 2 | 2.50 | 40.0 |  |
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	c.settings = nil
	if got := c.rows()[1]; got.Ours != 20 || got.Peer != 0 || got.Ratio != 0 {
		t.Errorf("without llama.cpp: %+v", got)
	}
}
