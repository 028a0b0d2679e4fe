package draft

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/testmodel"
)

func rejectAll(int) int { return 0 }

// Prompts of more rows than a pass has give the same drafts.
func TestMTPLongPrompts(t *testing.T) {
	w := newMTPWorld(t, "deepseek_v4", 2)
	texts := []*mtpText{w.start(400, nil), w.start(300, nil), w.start(30, nil)}
	w.serve(texts, 400, rejectAll)
	if m := w.drafter.(*mtp); len(m.states) > mtpRows*m.width {
		t.Errorf("a pass had %d rows, expected at most %d", len(m.states)/m.width, mtpRows)
	}
	w.propose(texts, 3, false)
	w.check(texts, 3, false)
}

// As many sequences as there are give the drafts that each gives alone.
func TestMTPManySequences(t *testing.T) {
	w := newMTPWorld(t, "deepseek_v3", 1)
	var texts []*mtpText
	for i := range mtpLogits + 3 {
		texts = append(texts, w.start(1+i%7, nil))
	}
	w.prefill(texts, 8)
	w.propose(texts, 2, false)
	w.check(texts, 2, false)
}

// Once its memory has grown, a draft allocates nothing.
func TestMTPAllocatesNothing(t *testing.T) {
	w := newMTPWorld(t, "deepseek_v4", 2)
	texts := []*mtpText{w.start(20, nil), w.start(30, nil)}
	w.prefill(texts, 30)
	var asks []Ask
	for _, x := range texts {
		w.grow(x, x.computed+5)
		asks = append(asks, x.ask(4, false))
	}
	if n := testing.AllocsPerRun(10, func() {
		if err := w.drafter.Propose(asks, nil); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("a draft allocates %v times", n)
	}
}

// Drafts are drawn as the target's tokens are: with the parameters of their own
// positions, under their own keys, or for rejection of a distribution that the
// draft tells.
func TestMTPDraws(t *testing.T) {
	w := newMTPWorld(t, "deepseek_v3", 1)
	for _, drawn := range []bool{false, true} {
		texts := []*mtpText{
			w.start(20, func(p *sample.Params) { p.Temperature = 1 }),
			w.start(21, func(p *sample.Params) { p.Temperature, p.TopK, p.PresencePenalty, p.LogProbs = 2, 40, 1.5, 3 }),
			w.start(22, func(p *sample.Params) { p.Temperature, p.TopP, p.RepetitionPenalty = 0.7, 0.9, 1.3 }),
		}
		w.prefill(texts, 30)
		for range 3 {
			w.propose(texts, 4, drawn)
			w.check(texts, 4, drawn)
			w.serve(texts, 1, func(drafted int) int { return w.random.IntN(drafted + 1) })
		}
	}
}

// No draft is deeper than its ask says, or than more allows, which is asked
// before each pass.
func TestMTPLimits(t *testing.T) {
	w := newMTPWorld(t, "deepseek_v3", 2)
	texts := []*mtpText{w.start(10, nil), w.start(11, nil), w.start(12, nil)}
	w.prefill(texts, 30)
	propose := func(most int) (lengths, asked []int) {
		var asks []Ask
		for i, x := range texts {
			w.grow(x, x.computed+6)
			a := x.ask(2*i+1, false)
			if i == 2 {
				a.Nodes = 4
			}
			asks = append(asks, a)
		}
		err := w.drafter.Propose(asks, func(depth int) bool {
			for i, x := range texts {
				if want := min(depth-1, 2*i+1); x.draft.Len() != want {
					t.Errorf("before depth %d draft %d has %d tokens, want %d", depth, i, x.draft.Len(), want)
				}
			}
			asked = append(asked, depth)
			return depth <= most
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range texts {
			lengths = append(lengths, x.draft.Len())
		}
		return lengths, asked
	}
	for most, want := range [][2][]int{
		{{0, 0, 0}, {1}}, {{1, 1, 1}, {1, 2}}, {{1, 2, 2}, {1, 2, 3}}, {{1, 3, 3}, {1, 2, 3, 4}}, {{1, 3, 4}, {1, 2, 3, 4}},
	} {
		if lengths, asked := propose(most); !slices.Equal(lengths, want[0]) || !slices.Equal(asked, want[1]) {
			t.Errorf("%d passes: drafts of %v tokens, asked for depths %v; want %v and %v", most, lengths, asked, want[0], want[1])
		}
	}
}

// Nothing is drafted behind a token that ends the text, which is one from
// min_tokens on.
func TestMTPEnds(t *testing.T) {
	w := newMTPWorld(t, "deepseek_v3", 1)
	texts := []*mtpText{w.start(15, nil)}
	w.prefill(texts, 30)
	w.propose(texts, 4, false)
	want := slices.Clone(texts[0].draft.Tokens[:2])
	if want[0] == want[1] {
		t.Fatalf("drafts begin with %v, expected two tokens for this test", want)
	}
	texts[0].Row.EOG, texts[0].Row.Params.MinTokens = want[1:], 2 // one is there
	w.propose(texts, 4, false)
	if got := texts[0].draft.Tokens; !slices.Equal(got, want) {
		t.Errorf("drafts %v, want %v, of which the last ends the text", got, want)
	}
}

// What a grammar allows is known of the first token.
func TestMTPAllowed(t *testing.T) {
	w := newMTPWorld(t, "deepseek_v3", 1)
	texts := []*mtpText{w.start(15, nil)}
	w.prefill(texts, 30)
	texts[0].Row.Allowed = make([]uint64, (w.model.Config().Vocab+63)/64)
	texts[0].Row.Allowed[1] = 1 << 7
	w.propose(texts, 3, false)
	w.check(texts, 3, false)
	if got := texts[0].draft.Tokens; got[0] != 71 || got[1] == 71 {
		t.Errorf("drafts %v, want 71 and others behind it", got)
	}
}

// What is not known is not drafted: of a sequence that was never observed, was
// forgotten, or has moved on without the drafter. From where it is observed
// again it is drafted again.
func TestMTPMissedRows(t *testing.T) {
	for modules := 1; modules <= 3; modules++ {
		w := newMTPWorld(t, "deepseek_v4", modules)
		x, unknown := w.start(40, nil), w.start(30, nil)
		texts := []*mtpText{x}
		w.prefill(texts, 40)
		empty := func(what string, x *mtpText) {
			t.Helper()
			x.draft.Add(1, -1)
			w.propose([]*mtpText{x}, 2, false)
			if x.draft.Len() != 0 {
				t.Errorf("%d modules, %s: %d tokens are drafted, want none", modules, what, x.draft.Len())
			}
		}
		empty("never observed", unknown)
		w.drafter.Forget(x.ID)
		empty("forgotten", x)
		w.serve(texts, 1, rejectAll)
		w.propose(texts, 4, false)
		if modules == 1 { // all its rows are still in the pages
			w.check(texts, 4, false)
		} else if x.draft.Len() != 4 {
			t.Errorf("%d modules: %d tokens are drafted, want 4", modules, x.draft.Len())
		}
		x.Tokens = append(x.Tokens, 7)
		empty("behind", x)

		// As after a loss of its memory, whether that is told or not.
		for _, told := range []bool{true, false} {
			if told {
				w.drafter.Forget(x.ID)
			}
			w.cache.Release(x.Table)
			x.computed = 0
			for x.computed < len(x.Tokens)-1 {
				w.serve(texts, min(13, len(x.Tokens)-1-x.computed), rejectAll)
			}
			w.serve(texts, 1, rejectAll)
			w.propose(texts, 4, false)
			w.check(texts, 4, false)
		}
	}
}

// A token that is known only after its row was observed is as good.
func TestMTPLateTokens(t *testing.T) {
	w := newMTPWorld(t, "deepseek_v3", 2)
	x := w.start(20, nil)
	w.prefill([]*mtpText{x}, 20)
	for _, token := range w.tokens(3) {
		w.step.Reset()
		w.grow(x, x.computed+1)
		w.step.Add(x.Table, x.computed, x.Tokens[x.computed:])
		w.run()
		if err := w.drafter.Observe(w.runner, []Observed{{Sequence: &x.Sequence, From: x.computed, Rows: []int{0}}}); err != nil {
			t.Fatal(err)
		}
		x.computed++
		x.Tokens = append(x.Tokens, token)
		x.Row.History.Add(token)
		w.propose([]*mtpText{x}, 3, false)
		w.check([]*mtpText{x}, 3, false)
	}
}

// A pass that fails is told, and its sequences are drafted for no more until
// they are observed again.
func TestMTPFails(t *testing.T) {
	w := newMTPWorld(t, "deepseek_v3", 1)
	texts := []*mtpText{w.start(20, nil)}
	x := texts[0]
	w.prefill(texts, 20)
	w.grow(x, x.computed+1)
	w.step.Reset()
	w.step.Add(x.Table, x.computed, x.Tokens[x.computed:])
	w.run()
	x.Tokens = append(x.Tokens, int32(w.model.Config().Vocab))
	err := w.drafter.Observe(w.runner, []Observed{{Sequence: &x.Sequence, From: x.computed, Rows: []int{0}}})
	if want := "module 1 of multi-token prediction: token"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, expected %q", err, want)
	}
	x.computed++
	x.Tokens[x.computed] = 3
	w.propose(texts, 2, false)
	if n := x.draft.Len(); n != 0 {
		t.Errorf("%d tokens are drafted, want none", n)
	}
	w.serve(texts, 1, rejectAll)
	if w.propose(texts, 2, false); x.draft.Len() != 2 {
		t.Errorf("%d tokens are drafted, want 2", x.draft.Len())
	}
}

// A prefix that is shared brings the modules' part with it.
func TestMTPSharedPrefix(t *testing.T) {
	for _, family := range []string{"deepseek_v3", "deepseek_v4"} {
		w := newMTPWorld(t, family, 1)
		tree, err := kvcache.NewTree(w.cache, kvcache.TreeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		page := w.cache.PageSize()
		first, second := w.start(2*page+9, nil), w.start(2*page+9, nil)
		second.Tokens = slices.Clone(first.Tokens[:2*page+5])
		second.Tokens, second.Prompt = append(second.Tokens, w.tokens(4)...), len(first.Tokens)
		second.Row.History = sample.NewHistory(second.Tokens)
		for first.computed < 2*page {
			w.serve([]*mtpText{first}, page, rejectAll)
		}
		tree.Insert(first.Table, "", first.Tokens[:first.computed])
		w.prefill([]*mtpText{first}, page)
		if second.computed = tree.Attach(second.Table, "", second.Tokens[:len(second.Tokens)-1]); second.computed != 2*page {
			t.Fatalf("%s: %d positions are shared, want %d", family, second.computed, 2*page)
		}
		texts := []*mtpText{first, second}
		w.prefill(texts[1:], page)
		for range 3 {
			w.propose(texts, 3, false)
			w.check(texts, 3, false)
			w.serve(texts, 1, func(drafted int) int { return w.random.IntN(drafted + 1) })
		}
	}
}

// States that are not finite cost drafts, not the step.
func TestMTPNotFinite(t *testing.T) {
	w := newMTPWorld(t, "deepseek_v3", 1)
	texts := []*mtpText{w.start(10, nil), w.start(12, nil)}
	w.prefill(texts, 30)
	clear(w.drafter.(*mtp).sequences[texts[0].ID].head)
	w.drafter.(*mtp).sequences[texts[0].ID].head[0] = float32(math.Inf(1))
	w.propose(texts, 3, false)
	if n := texts[0].draft.Len(); n != 0 {
		t.Errorf("%d tokens are drafted", n)
	}
	w.check(texts[1:], 3, false)
}

// A model that has no modules, or was loaded without them, is refused.
func TestMTPWithoutModules(t *testing.T) {
	for modules := range 2 {
		s := testmodel.Family("deepseek_v3")
		s.MTP = modules
		c, err := checkpoint.Open(testmodel.Safetensors(t, s))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		m, err := model.Load(c, model.Options{MTP: modules == 0})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewMTP(m, nil, nil); err == nil || !strings.Contains(err.Error(), "no modules of multi-token prediction; expected num_nextn_predict_layers of 1 or more") {
			t.Errorf("%d modules, asked for %v: error %v", modules, modules == 0, err)
		}
	}
}
