package serve

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func idsOf(t *testing.T, p *prompts, i int, r Request) (ids []int) {
	t.Helper()
	if err := json.Unmarshal(p.appendIDs(nil, drawPrompt, i, r), &ids); err != nil {
		t.Fatal(err)
	}
	return ids
}

func textOf(t *testing.T, p *prompts, i int, r Request) (text string) {
	t.Helper()
	if err := json.Unmarshal(p.appendText(nil, drawPrompt, i, r), &text); err != nil {
		t.Fatal(err)
	}
	return text
}

// Prompts have in common what the prefix and the blocks say, and nothing else,
// as token ids and as text.
func TestPrompts(t *testing.T) {
	o := options(nil)
	o.Prefix, o.TokenIDs = 3, Range{1000, 31999}
	p := &prompts{Options: &o, block: 4}
	requests := []Request{
		{Input: 11, Blocks: []int64{7, 8, 9}},
		{Input: 12, Blocks: []int64{7, 8, 10}},
		{Input: 9, Blocks: []int64{7, 11, 9}},
		{Input: 6},
		{Input: 6},
	}
	want := [][]int{ // common tokens from the beginning
		{14, 11, 7, 3, 3},
		{11, 15, 7, 3, 3},
		{7, 7, 12, 3, 3},
		{3, 3, 3, 9, 3},
		{3, 3, 3, 3, 9},
	}
	common := func(a, b []string) int {
		n := 0
		for n < min(len(a), len(b)) && a[n] == b[n] {
			n++
		}
		return n
	}
	for name, tokens := range map[string]func(i int) []string{
		"ids": func(i int) (all []string) {
			for _, id := range idsOf(t, p, i, requests[i]) {
				if id < 1000 || id > 31999 {
					t.Errorf("token %d", id)
				}
				all = append(all, string(rune(id)))
			}
			return all
		},
		"text": func(i int) []string { return strings.Split(textOf(t, p, i, requests[i]), " ") },
	} {
		var got [][]int
		for i := range requests {
			var row []int
			for j := range requests {
				row = append(row, common(tokens(i), tokens(j)))
			}
			got = append(got, row)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: tokens in common (-want +got):\n%s", name, diff)
		}
	}
	// A block is the same wherever it is.
	first, third := idsOf(t, p, 0, requests[0]), idsOf(t, p, 2, requests[2])
	if !slices.Equal(first[11:12], third[11:12]) {
		t.Errorf("block 9 is %v and %v", first[11:], third[11:])
	}
	// Another seed is another load.
	before := idsOf(t, p, 0, requests[0])
	o.Seed++
	if after := idsOf(t, p, 0, requests[0]); slices.Equal(before[:3], after[:3]) || slices.Equal(before[3:7], after[3:7]) {
		t.Errorf("%v and %v with another seed", before, after)
	}
}

// All ids of a range are drawn, both ends included.
func TestTokenIDs(t *testing.T) {
	o := options(nil)
	o.TokenIDs = Range{5, 8}
	seen := map[int]int{}
	for _, id := range idsOf(t, &prompts{Options: &o}, 0, Request{Input: 4000}) {
		seen[id]++
	}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, []int{5, 6, 7, 8}) || slices.Min(slices.Collect(maps.Values(seen))) < 900 {
		t.Errorf("ids %v", seen)
	}
	o.TokenIDs = Range{math.MaxInt32, math.MaxInt32}
	if got := idsOf(t, &prompts{Options: &o}, 0, Request{Input: 1}); !slices.Equal(got, []int{math.MaxInt32}) {
		t.Errorf("ids %v", got)
	}
}

// Words are plain and all different, so that a prompt of n words has n of them.
func TestWords(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range words {
		if seen[w] || strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") != "" {
			t.Errorf("%q is there twice or no plain word", w)
		}
		seen[w] = true
	}
	if len(words) < 256 {
		t.Errorf("%d words", len(words))
	}
}

// Lengths and arrivals follow their laws, and are the same for the same seed.
func TestPlan(t *testing.T) {
	o := options(nil)
	o.Requests, o.Input, o.Output, o.Rate, o.Seed = 20000, Range{10, 19}, Range{1, 3}, 50, 3
	plan, err := o.plan()
	if err != nil {
		t.Fatal(err)
	}
	again, _ := o.plan()
	if diff := cmp.Diff(plan, again); diff != "" {
		t.Errorf("the same load differs: %s", diff)
	}
	var inputs, outputs [20]int
	var gaps []time.Duration
	for i, r := range plan.Requests {
		inputs[r.Input]++
		outputs[r.Output]++
		if i > 0 {
			gaps = append(gaps, r.At-plan.Requests[i-1].At)
		}
	}
	if plan.Requests[0].At != 0 {
		t.Errorf("the first request arrives at %v", plan.Requests[0].At)
	}
	if low, high := slices.Min(inputs[10:]), slices.Max(inputs[10:]); low < 1800 || high > 2200 {
		t.Errorf("lengths of prompts: %v", inputs)
	}
	if low, high := slices.Min(outputs[1:4]), slices.Max(outputs[1:4]); low < 6400 || high > 6900 {
		t.Errorf("tokens to generate: %v", outputs)
	}
	// An exponential distribution has its mean as deviation, and ln 2 of it as median.
	s := summarise(newSamples(gaps))
	for _, v := range []struct{ got, want float64 }{{s.Mean, 20}, {s.Std, 20}, {s.Median, 20 * math.Ln2}} {
		if math.Abs(v.got/v.want-1) > 0.02 {
			t.Errorf("gaps between arrivals: %+v, want a mean of 20 ms", s)
		}
	}
	// The seed changes lengths and arrivals; the rate leaves lengths as they are.
	o.Rate = math.Inf(1)
	at, _ := o.plan()
	for i, r := range at.Requests {
		if r.At != 0 || r.Input != plan.Requests[i].Input {
			t.Fatalf("request %d: %+v, want the length of %+v, at once", i, r, plan.Requests[i])
		}
	}
	o.Seed, o.Rate = 4, 50
	other, _ := o.plan()
	if cmp.Equal(plan.Requests[:10], other.Requests[:10]) {
		t.Error("another seed makes the same load")
	}
}

// A trace says when and how much; a rate replaces its arrivals, a limit its end.
func TestPlanOfATrace(t *testing.T) {
	trace, err := ReadTrace(strings.NewReader(azure))
	if err != nil {
		t.Fatal(err)
	}
	o := options(nil)
	o.Trace, o.TimeScale, o.LengthScale, o.Requests = trace, 2, 1, 2
	got, err := o.plan()
	want := []Request{{Input: 4808, Output: 10}, {At: 104 * step, Input: 3180, Output: 8}}
	if diff := cmp.Diff(want, got.Requests); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
	o.Rate, o.Requests = 1, 0
	got, _ = o.plan()
	if len(got.Requests) != 3 || got.Requests[1].Input != 3180 || got.Requests[1].At == 104*step || got.Requests[2].At > time.Minute {
		t.Errorf("with a rate: %+v", got.Requests)
	}
}

func TestRange(t *testing.T) {
	for text, want := range map[string]Range{"5": {5, 5}, "0-3": {0, 3}, "7-7": {7, 7}} {
		var r Range
		if err := r.UnmarshalText([]byte(text)); err != nil || r != want {
			t.Errorf("%s: %v, %v", text, r, err)
		}
	}
	for _, text := range []string{"", "-", "-5", "5-", "9-3", "a", "1-2-3", "1.5"} {
		if err := new(Range).UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), "such as 512 or 100-900") {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

// Prompts that are given are sent as they are, in turn; a warm-up is another.
func TestGivenPrompts(t *testing.T) {
	o := Options{Prompts: []string{"one \"1\"", "two"}, Endpoint: Completions, Input: Range{2, 2}, TokenIDs: Range{7, 7}}
	c := client{prompts: prompts{Options: &o}, head: []byte("{")}
	var got []string
	for i := range 3 {
		got = append(got, string(c.body(drawPrompt, i, Request{Input: 2, Output: 4})))
	}
	got = append(got, string(c.body(drawWarmup, 0, Request{Input: 2, Output: 4})))
	want := []string{
		`{"max_tokens":4,"prompt":"one \"1\""}`, `{"max_tokens":4,"prompt":"two"}`, `{"max_tokens":4,"prompt":"one \"1\""}`, `{"max_tokens":4,"prompt":[7,7]}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bodies (-want +got):\n%s", diff)
	}
	o.Endpoint = Chat
	const chat = `{"max_tokens":4,"messages":[{"role":"user","content":"two"}]}`
	if got := string(c.body(drawPrompt, 1, Request{Input: 2, Output: 4})); got != chat {
		t.Errorf("a chat of %s, want %s", got, chat)
	}
	o = Options{Endpoint: Completions, Timeout: time.Second, Requests: 1, Input: Range{1, 1}, Output: Range{1, 1}, Prompts: []string{"a"}, Prefix: 1}
	if err := o.Check(); err == nil || !strings.Contains(err.Error(), "beside a trace or a prefix") {
		t.Errorf("error %v, want that there is no prefix before prompts that are given", err)
	}
}
