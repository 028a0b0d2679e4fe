package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/bench"
)

// The test binary is also every command that peer runs, with figures that
// follow from the arguments.
func TestMain(m *testing.M) {
	if os.Getenv("PEER_COMMAND") != "" {
		stand(filepath.Base(os.Args[0]), os.Args[1:])
		return
	}
	os.Exit(m.Run())
}

func stand(name string, args []string) {
	line := strings.Join(args, " ")
	build := filepath.Dir(filepath.Dir(os.Args[0]))
	log, _ := os.OpenFile(os.Getenv("PEER_COMMAND"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	fmt.Fprintln(log, name, line)
	log.Close()
	switch {
	case strings.Contains(line, "broken"):
		fmt.Fprintln(os.Stderr, "no such model")
		os.Exit(1)
	case name == "llama-server" || strings.HasPrefix(line, "serve "):
		standServer(name, args)
	case name == "foretoken":
		json.NewEncoder(os.Stdout).Encode(bench.Report{
			Prefill: []bench.Prefill{{Tokens: 64, TokS: 300}},
			Decode:  []bench.Decode{{Context: 0, TokS: 50, Probe: 40, OfLimit: 0.875}, {Context: 32, TokS: 45, Probe: 41, OfLimit: 0.9}},
			Verify: []bench.Verify{
				{Context: 0, K: 1, MS: 20}, {Context: 0, K: 4, MS: 21}, {Context: 32, K: 1, MS: 90}, {Context: 32, K: 4, MS: 99},
			},
			CPU: "a processor",
		})
	case name == "llama-bench" && strings.Contains(line, "-n 0"):
		fmt.Println(`[{"n_prompt": 64, "n_gen": 0, "n_depth": 0, "avg_ts": 150}]`)
	case name == "llama-bench" && filepath.Base(build) == "build-threads":
		fmt.Println(`[{"n_prompt": 0, "n_gen": 8, "n_depth": 0, "avg_ts": 40}, {"n_prompt": 0, "n_gen": 8, "n_depth": 32, "avg_ts": 20}]`)
	case name == "llama-bench":
		fmt.Println(`[{"n_prompt": 0, "n_gen": 8, "n_depth": 0, "avg_ts": 25}, {"n_prompt": 0, "n_gen": 8, "n_depth": 32, "avg_ts": 30}]`)
	case name == "foretoken-verify":
		fmt.Println(`{"features": "AVX512 = 1", "verify": [{"k": 1, "ms": [99, 25, 25]}, {"k": 4, "ms": [100, 100, 1]}]}`)
	}
}

// setup makes a directory as peer build leaves it, of stand-ins. commands
// returns those that ran since.
func setup(t *testing.T) (dir string, commands func() []string) {
	dir = t.TempDir()
	l := llama{dir}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tools := []string{filepath.Join(dir, "foretoken")}
	for _, s := range settings {
		os.MkdirAll(filepath.Join(l.build(s), "bin"), 0o755)
		tools = append(tools, l.tool(s, benchTool), l.tool(s, verifyTool), l.tool(s, serverTool))
	}
	for _, tool := range tools {
		if err := os.Symlink(self, tool); err != nil {
			t.Fatal(err)
		}
	}
	log := filepath.Join(dir, "log")
	t.Setenv("PEER_COMMAND", log)
	return dir, func() []string {
		text, _ := os.ReadFile(log)
		os.Remove(log)
		return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	}
}

// output is what f prints to standard output.
func output(t *testing.T, f func() error) (string, error) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stdout
	os.Stdout = w
	err = f()
	os.Stdout = before
	w.Close()
	text, _ := io.ReadAll(r)
	return string(text), err
}

// Both engines take turns, and the better setting of llama.cpp counts for each
// figure on its own.
func TestRunCompares(t *testing.T) {
	dir, commands := setup(t)
	results := filepath.Join(dir, "results.json")
	text, err := output(t, func() error {
		return command(context.Background(), []string{
			"run", "-dir", dir, "-foretoken", filepath.Join(dir, "foretoken"), "-model", "some/model.gguf", "-t", "1", "-rounds", "2",
			"-prefill", "64", "-decode", "8", "-depth", "0,32", "-verify", "1,4", "-args", "--kv-cache-dtype,f16", "-json", results,
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `foretoken on a processor
llama.cpp of llama-cpp-python 0.3.36, AVX512 = 1
Medians of 2 rounds.

| model | threads | foretoken | llama.cpp | ratio | memory limit |
|---|---|---|---|---|---|
| prefill 64, tokens/s | 1 | 300.0 | 150.0 | 2.00 |  |
| decode after 0, tokens/s | 1 | 50.0 | 40.0, own threads | 1.25 | 88 % of 40.0 GB/s |
| decode after 32, tokens/s | 1 | 45.0 | 30.0 | 1.50 | 90 % of 41.0 GB/s |
| verify 1 after 0, ms (to 1) | 1 | 20.0 (1.00) | 25.0 (1.00) | 1.25 |  |
| verify 4 after 0, ms (to 1) | 1 | 21.0 (1.05) | 100.0 (4.00) | 4.76 |  |
`
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}

	ours := "foretoken bench some/model.gguf --json --runs 1 --threads 1 --prefill 64 --decode 8 --context 0,32 --verify 1,4 --batch 1 --kv-cache-dtype f16"
	var peer []string
	for range settings {
		peer = append(peer,
			"llama-bench -m some/model.gguf -t 1 -r 1 -o json -p 64 -n 0",
			"llama-bench -m some/model.gguf -t 1 -r 1 -o json -p 0 -n 8 -d 0,32",
			"foretoken-verify some/model.gguf 1 0 3 1 4")
	}
	turns := append([]string{ours}, peer...)
	turns = append(append(turns, peer...), ours) // who is first alternates
	if diff := cmp.Diff(turns, commands()); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}

	var written []struct {
		Rows []struct {
			Kind, Setting string
			Samples       []float64
			PeerSamples   []float64 `json:"llama.cpp_samples"`
		}
	}
	data, _ := os.ReadFile(results)
	if err := json.Unmarshal(data, &written); err != nil {
		t.Fatal(err)
	}
	if len(written) != 1 || len(written[0].Rows) != 5 {
		t.Fatalf("results: %s", data)
	}
	decode := written[0].Rows[1]
	if diff := cmp.Diff([]float64{50, 50, 40, 40}, append(decode.Samples, decode.PeerSamples...)); diff != "" || decode.Setting != "own threads" {
		t.Errorf("results of decoding: %+v", decode)
	}
}

func TestRunErrors(t *testing.T) {
	dir, _ := setup(t)
	for _, c := range []struct{ args, want string }{
		{"run", "expected a -model"},
		{"run -model m -rounds 0", "-rounds of at least 1"},
		{"run -model m -t 0", "-t 0: expected numbers of at least 1"},
		{"run -model m -verify 1,x", "-verify 1,x: expected numbers"},
		{"run -model m -depth=", "-depth: expected at least one number"},
		{"run -model broken -foretoken " + dir + "/foretoken", "exit status 1\nno such model"},
		{"run -model m -args --kv-cache-dtype,f16,--batch=2", "-args --batch: expected flags that say how Foretoken runs"},
		{"run -model m -args -t,4", "-args -t: expected flags"},
		{"run m", `argument "m": expected flags alone`},
		{"run -dir " + dir + "/none -model m", "none/" + release + ": llama.cpp is not built: go run ./bench/peer build"},
		{"model -shape none", `shape "none"`},
		{"model -shape qwen3-4b -layers 40", "-layers 40: expected 1 to 36"},
		{"walk", `command "walk"`},
	} {
		args := strings.Fields(c.args)
		args = append([]string{args[0], "-dir", dir}, args[1:]...)
		if err := command(context.Background(), args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.args, err, c.want)
		}
	}
}
