package engine

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/spec/draft"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// twin drafts with the model itself, without change: all is accepted.
func twin(tokens int) Speculation {
	return Speculation{Method: draftModel, Model: "self:layers=0-1", Tokens: tokens, Fixed: true}
}

// repeats makes an answer of one token, which prompt lookup finds in it again.
func repeats(maxTokens int) Request {
	r := Request{Prompt: prompt(1, 9), Params: greedy(maxTokens)}
	r.Params.LogitBias = map[int32]float32{65: 100}
	return r
}

// A text that ends inside a draft ends as it does without, and the token that ended
// it was accepted: whoever learns of it must not take it for wrong.
func TestTextEndsInsideDraft(t *testing.T) {
	spec := testmodel.Family("llama")
	spec.Layers = 2
	plain := idle(t, spec, Options{Threads: 1})
	all := submitTo(t, plain, Request{Prompt: prompt(3, 12), Params: greedy(20)})
	for !all.done() {
		plain.advance()
	}
	end := 2 // of a token that has not come before, so that it ends the text there
	for slices.Index(all.ids, all.ids[end]) != end {
		end++
	}
	for _, verify := range []string{coupled, rejection, block} {
		o := twin(len(all.ids) - 2)
		o.Verify = verify
		e := idle(t, spec, Options{Threads: 1, Speculation: o})
		r := Request{Prompt: prompt(3, 12), Params: greedy(20)}
		r.Params.StopIDs = []int32{all.ids[end]}
		if verify != coupled { // drafts are drawn, of one token
			r.Params.Temperature, r.Params.TopK = 1, 1
		}
		l := submitTo(t, e, r)
		for !l.done() {
			e.advance()
			if err := balanced(e); err != nil {
				t.Fatal(err)
			}
		}
		if l.err != nil || !slices.Equal(l.ids, all.ids[:end+1]) {
			t.Errorf("%s: %v, %v; want %v", verify, l.ids, l.err, all.ids[:end+1])
		}
		n := uint64(end) // the first token came with the prompt
		want := SpeculationStats{Rounds: 1, Drafted: n, Accepted: n, Tokens: n, Drafts: slices.Repeat([]uint64{1}, end), Accepts: slices.Repeat([]uint64{1}, end)}
		if diff := cmp.Diff(want, l.out.Progress().Speculation); diff != "" {
			t.Errorf("%s: counted (-want +got):\n%s", verify, diff)
		}
	}
}

// A request that panics while its draft is verified fails alone: drafts beside it,
// of the same step, are verified.
func TestPanicInVerificationFailsAlone(t *testing.T) {
	e := idle(t, testmodel.Family("llama"), Options{Threads: 1, Speculation: Speculation{Method: ngram, LookupMin: 1, Tokens: 3, Fixed: true}})
	broken, beside := submitTo(t, e, repeats(60)), submitTo(t, e, repeats(60))
	for rounds := uint64(0); rounds < 3; rounds = beside.out.Progress().Speculation.Rounds {
		e.advance()
	}
	broken.stop = nil
	before := beside.out.Progress().Speculation.Rounds
	e.advance()
	if !broken.done() || broken.err == nil || !strings.Contains(broken.err.Error(), "broken invariant") {
		t.Errorf("the broken request: %v, want a broken invariant", broken.err)
	}
	if n := beside.out.Progress().Speculation.Rounds; n != before+1 {
		t.Errorf("%d rounds of the one beside it, want %d", n, before+1)
	}
	for !beside.done() {
		e.advance()
	}
	if beside.err != nil || !slices.Equal(beside.ids, slices.Repeat([]int32{65}, 60)) {
		t.Errorf("the one beside it: %v, %v", beside.ids, beside.err)
	}
	if err := balanced(e); err != nil {
		t.Error(err)
	}
}

// failing is a drafter that drafts nothing and fails in one of its methods.
type failing struct{ in string }

func (f failing) fail(in string) error {
	if f.in == in {
		return errors.New("failed in " + in)
	}
	if f.in == in+" by a panic" {
		panic("failed in " + in)
	}
	return nil
}

func (f failing) Propose([]draft.Ask, func(int) bool) error    { return f.fail("Propose") }
func (f failing) Observe(draft.Target, []draft.Observed) error { return f.fail("Observe") }
func (f failing) Ended(*draft.Sequence)                        { _ = f.fail("Ended") }
func (f failing) Forget(uint64)                                {}

// A drafter that fails, wherever it does, is switched off; answers stay as they are.
func TestFailingDraftersAreSwitchedOff(t *testing.T) {
	plain := idle(t, testmodel.Family("llama"), Options{Threads: 1})
	want := submitTo(t, plain, repeats(10))
	for !want.done() {
		plain.advance()
	}
	for _, in := range []string{"Propose", "Propose by a panic", "Observe", "Observe by a panic", "Ended by a panic"} {
		var log bytes.Buffer
		e := idle(t, testmodel.Family("llama"), Options{Threads: 1, Speculation: Speculation{Method: ngram, Fixed: true}, Log: slog.New(slog.NewTextHandler(&log, nil))})
		a := e.speculator.arms[0]
		a.drafter, a.watches = failing{in}, true
		for range 2 {
			l := submitTo(t, e, repeats(10))
			for !l.done() {
				e.advance()
			}
			if l.err != nil || !slices.Equal(l.ids, want.ids) {
				t.Errorf("%s: %v, %v; want %v", in, l.ids, l.err, want.ids)
			}
		}
		if !a.off || strings.Count(log.String(), "switched off") != 1 {
			t.Errorf("%s: off %v, the log says %q, want that it is switched off, once", in, a.off, log.String())
		}
	}
}

// A draft model whose tokens cannot be compared with the model's is refused.
func TestDraftModelWithoutTokenizer(t *testing.T) {
	with, without := testmodel.Safetensors(t, testmodel.Family("llama")), testmodel.Safetensors(t, testmodel.Family("llama"))
	if err := os.Remove(filepath.Join(without, "tokenizer.json")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ model, draft, want string }{
		{with, without, "it has no tokenizer, expected the model's own"},
		{without, with, "nothing says which of its tokens are the model's"},
		{without, without, "it has no tokenizer"},
	} {
		_, err := Open(t.Context(), c.model, Options{Threads: 1, Speculation: Speculation{Method: draftModel, Model: c.draft}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}
