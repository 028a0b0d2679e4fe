package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/bench/spec"
)

// Each way has a server of its own for each load, in turns, with the same texts.
func TestSpecCompares(t *testing.T) {
	dir, commands := setup(t)
	model, results := words(t, filepath.Join(dir, "m.gguf")), filepath.Join(dir, "results.json")
	prompts := filepath.Join(dir, "p.jsonl")
	if err := os.WriteFile(prompts, []byte(`{"prompt": "`+strings.Repeat("a", 50)+`"}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := output(t, func() error {
		return command(context.Background(), []string{
			"spec", "-dir", dir, "-foretoken", filepath.Join(dir, "foretoken"), "-model", model, "-draft", "d.gguf", "-t", "1", "-rounds", "2",
			"-prompts", "mini=" + prompts, "-streams", "2", "-requests", "3", "-output", "200", "-methods", "ngram", "-types", "ngram-mod", "-builds", "threads",
			"-json", results,
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	ours := "foretoken serve " + model + " --threads 1 --max-num-seqs 2%s --host 127.0.0.1 --port"
	peer := "llama-server -m " + model + " -t 1 -np 2 -c 532 --offline --no-ui --cache-ram 0 --no-cache-prompt%s --host 127.0.0.1 --port" // 2 · (50 + 200 + 16)
	turns := []string{
		fmt.Sprintf(ours, ""), fmt.Sprintf(ours, ` --speculative-config {"method":"ngram"}`), fmt.Sprintf(ours, ` --speculative-config {"method":"draft_model","model":"d.gguf"}`),
		fmt.Sprintf(peer, ""), fmt.Sprintf(peer, " --spec-type ngram-mod"), fmt.Sprintf(peer, " --spec-type draft-simple --spec-draft-model d.gguf"),
	}
	back := slices.Clone(turns) // who is first alternates
	slices.Reverse(back)
	turns = append(turns, back...)
	var ran []string
	for _, c := range commands() {
		ran = append(ran, c[:strings.LastIndexByte(c, ' ')])
	}
	if diff := cmp.Diff(turns, ran); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	var written []struct{ Rows []specRow }
	data, _ := os.ReadFile(results)
	if err := json.Unmarshal(data, &written); err != nil {
		t.Fatal(err)
	}
	if len(written) != 1 || len(written[0].Rows) != 2 || len(written[0].Rows[0].Ours.Others) != 2 || len(written[0].Rows[1].Peer.Plain.Samples) != 2 {
		t.Errorf("results: %s", data)
	}
}

// The better build counts for each of llama.cpp's types on its own, and of all
// methods the fastest, which may be none.
func TestSpecRows(t *testing.T) {
	l := specLoad(spec.Set{Name: "code", Prompts: []spec.Prompt{{Text: "a"}}}, 1, 1, 8)
	l.figures = l.figures[:1]
	c := specComparison{
		model: "some/model.gguf", loads: []load{l}, values: map[specKey][]float64{},
		ways: specWays(llama{}, "", nil, []string{"ngram"}, []string{"ngram-mod", "ngram-cache"}, settings, ""),
	}
	set := func(engine, method string, median float64) {
		c.values[specKey{engine, method, 2, l.figures[0].name}] = []float64{9999, median, 0} // one is slow, one is fast
	}
	set(ourselves, "", 100)
	set(ourselves, "ngram", 150)
	for i, v := range []float64{80, 40} {
		set(settings[i].name, "", v)
		set(settings[i].name, "ngram-mod", v+float64(50*i)) // the second build is the faster one
		set(settings[i].name, "ngram-cache", v-20)
	}
	const header = "| model | threads | foretoken, plain | best | gain | llama.cpp, plain | best | gain | ratio of the best |\n|---|---|---|---|---|---|---|---|---|\n"
	for _, step := range []struct {
		change func()
		want   string
	}{
		{func() {}, "| code, 1 streams: output, tokens/s | 2 | 100 | 150, ngram | 1.50 | 80.0 | 90.0, ngram-mod, own threads | 1.12 | 1.67 |\n"},
		{func() { set(ourselves, "ngram", 90) }, "| code, 1 streams: output, tokens/s | 2 | 100 | 100 | 1.00 | 80.0 | 90.0, ngram-mod, own threads | 1.12 | 1.11 |\n"},
		{func() { c.ways = c.ways[:2] }, "| code, 1 streams: output, tokens/s | 2 | 100 | 100 | 1.00 |  |  |  |  |\n"},
	} {
		step.change()
		var got strings.Builder
		c.write(&got)
		if diff := cmp.Diff(header+step.want, got.String()); diff != "" {
			t.Errorf("table (-want +got):\n%s", diff)
		}
	}
}

// A load asks for the first prompts of a set, and a server has room for the longest.
func TestSpecLoads(t *testing.T) {
	loads, err := specLoads([]string{"code-edit", "summarise"}, []int{1, 16}, 4, 128)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range loads {
		o := l.asked[0]
		if err := o.Check(); err != nil {
			t.Error(err)
		}
		longest := 0
		for _, p := range o.Prompts {
			longest = max(longest, len(p))
		}
		if l.context != longest+128+spare {
			t.Errorf("a context of %d for prompts of up to %d", l.context, longest)
		}
		got = append(got, fmt.Sprintf("%s %d prompts, %d requests, %d at a time", l.figures[0].name, len(o.Prompts), o.Requests, o.Concurrency))
	}
	want := []string{
		"code-edit, 1 streams: output, tokens/s 4 prompts, 4 requests, 1 at a time",
		"code-edit, 16 streams: output, tokens/s 8 prompts, 16 requests, 16 at a time",
		"summarise, 1 streams: output, tokens/s 4 prompts, 4 requests, 1 at a time",
		"summarise, 16 streams: output, tokens/s 8 prompts, 16 requests, 16 at a time",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("loads (-want +got):\n%s", diff)
	}
}

func TestSpecErrors(t *testing.T) {
	dir, _ := setup(t)
	for _, c := range []struct{ args, want string }{
		{"spec", "expected a -model"},
		{"spec -model m -output 1", "-output of at least 2"},
		{"spec -model m -streams 0", "-streams 0: expected numbers of at least 1"},
		{"spec -model m -prompts gsm8k", "-prompts gsm8k: expected NAME=FILE, code-edit or summarise"},
		{"spec -model m -prompts gsm8k=none.jsonl", "none.jsonl: no such file"},
		{"spec -model m -builds cuda", "-builds cuda: expected some of openmp,threads"},
	} {
		args := strings.Fields(c.args)
		args = append([]string{args[0], "-dir", dir}, args[1:]...)
		if err := command(context.Background(), args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.args, err, c.want)
		}
	}
}
