package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/engine"
)

// parseSpeculation is what flags of run say of speculation.
func parseSpeculation(args ...string) (engine.Speculation, error) {
	var v verbs
	k := newParser(&v)
	if _, err := k.Parse(spellOut(k, append([]string{"run"}, args...))); err != nil {
		return engine.Speculation{}, err
	}
	return v.Run.speculation()
}

// Speculation is said in vLLM's form, by SGLang's names or by llama.cpp's.
func TestSpeculationFlags(t *testing.T) {
	config := func(json string) []string { return []string{"--speculative-config", json} }
	for _, tc := range []struct {
		args []string
		want engine.Speculation
	}{
		{nil, engine.Speculation{}},
		{config(`{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 2, "prompt_lookup_max": 5}`), engine.Speculation{Method: "ngram", Tokens: 4, LookupMin: 2, LookupMax: 5}},
		{config(`{"method": "suffix"}`), engine.Speculation{Method: "suffix"}},
		{config(`{"model": "small", "num_speculative_tokens": 5}`), engine.Speculation{Method: "draft_model", Model: "small", Tokens: 5}},
		{config(`{"method": "draft_model", "model": "self:layers=0-5,8"}`), engine.Speculation{Method: "draft_model", Model: "self:layers=0-5,8"}},
		{config(`{"method": "auto", "model": "small"}`), engine.Speculation{Method: "auto", Model: "small"}},
		{
			config(`{"method": "draft_model", "model": "m", "topk": 4, "nodes": 12, "tree": "dynamic", "adaptive": false, "asynchronous": true, "floor": 0.25, "verify": "rejection"}`),
			engine.Speculation{Method: "draft_model", Model: "m", TopK: 4, Nodes: 12, Tree: "dynamic", Fixed: true, Async: true, Floor: 0.25, Verify: "rejection"},
		},
		{config(`{"method": "mtp", "adaptive": true, "asynchronous": false, "floor": 1}`), engine.Speculation{Method: "mtp", Floor: 1}},
		// What vLLM does by itself, or null, asks for nothing.
		{config(`{"method": "mtp", "model": null, "draft_tensor_parallel_size": 1, "quantization": null, "parallel_drafting": false}`), engine.Speculation{Method: "mtp"}},
		{config(`{"method": "mtp", "rejection_sample_method": "standard", "enable_adaptive_verification": true}`), engine.Speculation{Method: "mtp", Verify: "rejection"}},
		{config(`{"method": "mtp", "rejection_sample_method": "block", "enable_adaptive_verification": false}`), engine.Speculation{Method: "mtp", Verify: "block", Fixed: true}},

		{[]string{"--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "12"}, engine.Speculation{Method: "ngram", Tokens: 11}},
		{[]string{"--speculative-algorithm", "nextn", "--speculative-num-steps", "3", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4"}, engine.Speculation{Method: "mtp", Tokens: 3, TopK: 1}},
		{
			[]string{"--speculative-algorithm", "STANDALONE", "--speculative-draft-model-path", "m", "--speculative-num-steps", "3", "--speculative-eagle-topk", "4", "--speculative-num-draft-tokens", "13"},
			engine.Speculation{Method: "draft_model", Model: "m", Tokens: 3, TopK: 4, Nodes: 12},
		},
		{[]string{"--speculative-accept-threshold-single", "1", "--speculative-accept-threshold-acc", "1.0"}, engine.Speculation{}},

		{[]string{"-md", "m", "--draft-max", "8"}, engine.Speculation{Method: "draft_model", Model: "m", Tokens: 8}},
		{[]string{"--model-draft=self:q4", "--spec-verify=rejection"}, engine.Speculation{Method: "draft_model", Model: "self:q4", Verify: "rejection"}},

		// Both forms at once, if they agree.
		{append(config(`{"method": "ngram", "num_speculative_tokens": 4}`), "--speculative-algorithm", "NGRAM", "--speculative-num-steps", "4", "--spec-verify", "block"), engine.Speculation{Method: "ngram", Tokens: 4, Verify: "block"}},
		{append(config(`{"tree": "static"}`), "-md", "m", "--speculative-num-draft-tokens", "26"), engine.Speculation{Method: "draft_model", Model: "m", Tree: "static", Nodes: 25}},
	} {
		got, err := parseSpeculation(tc.args...)
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%q: %v; -want +got:\n%s", tc.args, err, diff)
		}
	}
}

// What cannot be meant is refused by name, and nothing is left out silently.
func TestSpeculationFlagsThatAreRefused(t *testing.T) {
	for _, tc := range [][2]string{
		{``, "offset 0"},
		{`[]`, "a list: expected a JSON object"},
		{`"ngram"`, `"ngram": expected a JSON object, such as {"method": "auto"}`},
		{`{"method": "ngram"`, "offset 18"},
		{`{"method": "ngram"} {}`, "data after the value"},
		{`{"method": "ngram", "method": "mtp"}`, "twice"},
		{"{\"method\": \"ngr\xffm\"}", "expected ngram"},
		{strings.Repeat(`{"model":`, 1000), "offset"},
		{strings.Repeat(`[`, 100000), "offset"},
		{`{"model": [` + strings.Repeat("1,", 1000) + `1]}`, "offset"},
		{`{` + manyKeys(100) + `}`, "offset"},
		{`{"num_speculative_tokens": 1` + strings.Repeat("0", 5000) + `}`, "offset"},

		{`{}`, ""}, // asks for nothing
		{`{"num_speculative_tokens": 3}`, "--speculative-config num_speculative_tokens, and nothing names a method"},
		{`{"metod": "ngram"}`, `unknown key "metod", did you mean method?`},
		{`{"temperature": 1}`, `unknown key "temperature"`},
		{`{"` + strings.Repeat("x", 1e5) + `": 1}`, `unknown key "xxx`},

		{`{"method": 5}`, "method is 5, expected ngram, suffix, draft_model, mtp, auto"},
		{`{"method": {}}`, "method is an object"},
		{`{"method": ""}`, `method is "", expected`},
		{`{"method": "NGRAM"}`, `method is "NGRAM", expected ngram`},
		{`{"method": "eagle3"}`, `method is "eagle3", drafters that were trained to read a model's states`},
		{`{"method": "deepseek_mtp"}`, `expected mtp`},
		{`{"method": "` + strings.Repeat("x", 1e5) + `"}`, "expected ngram"},
		{`{"model": ""}`, "expected the path or name of a model"},
		{`{"model": false}`, "model is false"},
		{`{"num_speculative_tokens": 0}`, "num_speculative_tokens is 0, expected a whole number, 1 or more"},
		{`{"num_speculative_tokens": -1}`, "num_speculative_tokens is -1"},
		{`{"num_speculative_tokens": 1.5}`, "num_speculative_tokens is 1.5"},
		{`{"num_speculative_tokens": "5"}`, `num_speculative_tokens is "5"`},
		{`{"num_speculative_tokens": 1e300}`, "expected a whole number"},
		{`{"num_speculative_tokens": 9223372036854775807}`, "expected a whole number"},
		{`{"num_speculative_tokens": 99999999999999999999}`, "expected a whole number"},
		{`{"method": "ngram", "prompt_lookup_min": 5, "prompt_lookup_max": 2}`, "prompt_lookup_min is 5 and prompt_lookup_max 2"},
		{`{"topk": true}`, "topk is true"},
		{`{"nodes": []}`, "nodes is a list"},
		{`{"tree": "wide"}`, `tree is "wide", expected dynamic or static`},
		{`{"tree": 1}`, "tree is 1"},
		{`{"adaptive": "yes"}`, `adaptive is "yes", expected true or false`},
		{`{"asynchronous": 1}`, "asynchronous is 1, expected true or false"},
		{`{"floor": 0}`, "floor is 0, expected a number above 0"},
		{`{"floor": 1.01}`, "floor is 1.01"},
		{`{"floor": "0.1"}`, `floor is "0.1"`},
		{`{"verify": "maybe"}`, `verify is "maybe", expected coupled, rejection or block`},
		{`{"verify": true}`, "verify is true"},
		{`{"method": "mtp", "adaptive": true, "enable_adaptive_verification": false}`, "--speculative-config adaptive says true and --speculative-config enable_adaptive_verification says false"},

		{`{"rejection_sample_method": "synthetic"}`, "would not be the model's text"},
		{`{"rejection_sample_method": "strict"}`, `"strict", expected standard or block`},
		{`{"synthetic_acceptance_rates": [0.5]}`, "would not be the model's text"},
		{`{"draft_tensor_parallel_size": 2}`, "draft_tensor_parallel_size: the draft model runs where the model does"},
		{`{"quantization": "fp8"}`, "quantization: a draft model is used as its files have it"},
		{`{"suffix_decoding_max_tree_depth": 24}`, "suffix_decoding_max_tree_depth: "},
		{`{"num_speculative_tokens_per_batch_size": [[1, 4, 5]]}`, "decided for every step"},
		{`{"draft_sample_method": "greedy"}`, "--spec-verify"},
		{`{"parallel_drafting": true}`, "one token after another"},
		{`{"attention_backend": "x"}`, "attention_backend: "},
	} {
		_, err := parseSpeculation("--speculative-config", tc[0])
		checkRefusal(t, tc[0], err, tc[1])
	}
	for _, tc := range [][2]string{
		{"--speculative-algorithm EAGLE3", "not supported yet"},
		{"--speculative-algorithm DFLASH", "not supported yet"},
		{"--speculative-algorithm LOOKAHEAD", `"LOOKAHEAD": expected NGRAM, STANDALONE or NEXTN`},
		{"--spec-verify coupled", "--spec-verify, and nothing names a method"},
		{"--spec-verify typical", "--spec-verify must be one of"},
		{"--speculative-num-steps 0 -md m", "--speculative-num-steps is 0, expected a whole number"},
		{"--speculative-num-steps -3 -md m", "--speculative-num-steps is -3"},
		{"--draft-max many", "many"},
		{"--speculative-eagle-topk 0 -md m", "--speculative-eagle-topk is 0"},
		{"--speculative-num-draft-tokens 1 -md m", "expected 2 or more: it counts the root, too"},
		{"--speculative-accept-threshold-single 0.9", "--speculative-accept-threshold-single is 0.9: to accept what the model did not choose"},
		{"--speculative-accept-threshold-acc 0", "--speculative-accept-threshold-acc is 0"},
		{"--speculative-accept-threshold-acc NaN", "expected 1"},
		{"-md m --speculative-algorithm STANDALONE --speculative-num-steps 3 --speculative-num-draft-tokens 8", "--speculative-num-steps says 3 and --speculative-num-draft-tokens, less the root, says 7: one will do"},
		{`--speculative-algorithm NGRAM --speculative-config {"method":"suffix"}`, "--speculative-config method says suffix and --speculative-algorithm says ngram: one will do"},
		{`-md one --speculative-config {"model":"two"}`, "--speculative-config model says two and --speculative-draft-model-path says one"},
		{`--spec-verify coupled --speculative-config {"method":"mtp","rejection_sample_method":"block"}`, "--speculative-config rejection_sample_method says block and --spec-verify says coupled"},
	} {
		_, err := parseSpeculation(strings.Fields(tc[0])...)
		checkRefusal(t, tc[0], err, tc[1])
	}
}

func manyKeys(n int) string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = `"` + strings.Repeat("k", i+1) + `": 1`
	}
	return strings.Join(keys, ", ")
}

// checkRefusal checks an error that says want, "" for none, in a few words.
func checkRefusal(t *testing.T, given string, err error, want string) {
	t.Helper()
	switch {
	case want == "":
		if err != nil {
			t.Errorf("%.80s: %v", given, err)
		}
	case err == nil:
		t.Errorf("%.80s: no error, want %q", given, want)
	case !strings.Contains(err.Error(), want) || len(err.Error()) > 500:
		t.Errorf("%.80s: %.600q, want %q", given, err, want)
	}
}

// -md is the value of a flag where one wants a value, and a prompt behind --.
func TestSpellOut(t *testing.T) {
	k := newParser(&verbs{})
	for args, want := range map[string]string{
		"run -md m":             "run --model-draft m",
		"serve model -md m":     "serve model --model-draft m",
		"run --stop -md":        "run --stop -md",
		"run -t -md":            "run -t -md",
		"run --verbose -md m":   "run --verbose --model-draft m",
		"run --raw -- -md":      "run --raw -- -md",
		"run --seed=1 -md m hi": "run --seed=1 --model-draft m hi",
	} {
		if got := spellOut(k, strings.Fields(args)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: %q, want %s", args, got, want)
		}
	}
}

// The environment and --config have these flags, too; in YAML the JSON may be
// written as YAML.
func TestSpeculationOfFiles(t *testing.T) {
	want := engine.Speculation{Method: "suffix", Tokens: 3, Verify: "block"}
	for name, yaml := range map[string]string{
		"yaml":  "speculative-config: {method: suffix, num_speculative_tokens: 3}\nspec-verify: block\n",
		"block": "speculative_config:\n  method: suffix\n  num_speculative_tokens: 3\n  rejection_sample_method: block\n",
		"json":  "speculative-config: '{\"method\": \"suffix\", \"num_speculative_tokens\": 3}'\nspec-verify: block\n",
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		var v verbs
		if _, err := newParser(&v).Parse([]string{"serve", "--config", path}); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := v.Serve.speculation()
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v: %s", name, err, diff)
		}
	}
	for yaml, want := range map[string]string{
		"speculative-config: {method: suffix, 1: 2}":    `"1"`,
		"speculative-config: {method: suffix, x: .nan}": "speculative-config: ",
		"speculative-config: [suffix]":                  "expected one value",
		"speculative-config: {metod: suffix}":           "did you mean method?",
		"spec-verify: {a: b}":                           "expected one value",
	} {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := newParser(&verbs{}).Parse([]string{"serve", "--config", path})
		checkRefusal(t, yaml, err, want)
	}
	t.Setenv("FORETOKEN_SPECULATIVE_CONFIG", `{"method": "suffix", "num_speculative_tokens": 3}`)
	t.Setenv("FORETOKEN_SPEC_VERIFY", "block")
	got, err := parseSpeculation()
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
}

// What drafts is said in one line.
func TestDraftLine(t *testing.T) {
	if got := draftLine(engine.SpeculationStats{}, 5); got != "" {
		t.Errorf("without drafts: %q", got)
	}
	s := engine.SpeculationStats{Rounds: 4, Drafted: 10, Accepted: 6, Tokens: 10, Drafts: []uint64{4, 4, 2}, Accepts: []uint64{4, 2, 0}}
	if got, want := draftLine(s, 12.34), "10 tokens drafted, 6 accepted, τ 2.50, accepted by position 1.00 0.50 0.00, 12.3 tokens/s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
