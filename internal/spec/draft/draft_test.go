package draft

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/spec"
)

const anyVocab = 1000

// ask asks for a chain of a sequence of its own.
func ask(id uint64, tokens []int32, prompt, depth int) Ask {
	p := sample.Default()
	return Ask{
		Sequence: &Sequence{ID: id, Tokens: tokens, Prompt: prompt, Row: sample.Row{Params: &p, Position: len(tokens)}},
		Depth:    depth, Nodes: depth, Draft: new(spec.Draft),
	}
}

// propose is Propose of asks that must not fail.
func propose(t *testing.T, d Drafter, asks ...Ask) {
	t.Helper()
	if err := d.Propose(asks, nil); err != nil {
		t.Fatal(err)
	}
	for _, a := range asks {
		if err := a.Draft.Check(anyVocab); err != nil {
			t.Fatal(err)
		}
		if deepest := int(slices.Max(a.Draft.Depths([]int32{0}))); a.Draft.Len() > a.Nodes || deepest > a.Depth {
			t.Fatalf("a draft of %d tokens, %d deep, expected at most %d and %d", a.Draft.Len(), deepest, a.Nodes, a.Depth)
		}
	}
}

func wantDraft(t *testing.T, name string, d *spec.Draft, want ...int32) {
	t.Helper()
	if !slices.Equal(d.Tokens, want) {
		t.Errorf("%s: drafted %v, expected %v", name, d.Tokens, want)
	}
	if d.Parents != nil || len(d.Q) > 0 {
		t.Errorf("%s: parents %v and %d distributions, expected a chain that was chosen", name, d.Parents, len(d.Q))
	}
	if len(d.Confidence) != d.Len() {
		t.Errorf("%s: %d confidences of %d tokens", name, len(d.Confidence), d.Len())
	}
	for _, c := range d.Confidence {
		if !(c > 0 && c < 1) {
			t.Errorf("%s: confidences %v, expected some between 0 and 1", name, d.Confidence)
		}
	}
}

// The draft's memory is used again, whatever it held.
func TestLookup(t *testing.T) {
	l := NewLookup(2, 4)
	a := ask(1, []int32{1, 2, 3, 4, 5, 9, 1, 2, 3}, 4, 3)
	a.Draft.Add(7, -1)
	a.Draft.Q = make([]spec.Row, 2)
	propose(t, l, a)
	wantDraft(t, "three matched", a.Draft, 4, 5, 9)
	if want := []float64{3. / 4, 4. / 5, 5. / 6}; !slices.Equal(a.Draft.Confidence, want) {
		t.Errorf("confidences %v, expected %v", a.Draft.Confidence, want)
	}
	a.Nodes = 1
	propose(t, l, a)
	wantDraft(t, "one node", a.Draft, 4)
	a.Tokens = []int32{1, 2, 3, 4, 5, 9, 6, 3}
	propose(t, l, a)
	wantDraft(t, "one matched, two are least", a.Draft)
}

func TestSuffix(t *testing.T) {
	s := NewSuffix(SuffixOptions{})
	a := ask(1, []int32{1, 2, 3, 4, 5, 9, 1, 2, 3}, 4, 2)
	propose(t, s, a)
	wantDraft(t, "its own text", a.Draft, 4, 5)
	a.Tokens = append(a.Tokens, 7, 8, 2, 3, 7, 2, 3)
	propose(t, s, a)
	wantDraft(t, "after tokens that came since: more often, and latest", a.Draft, 7, 2)

	fresh := ask(2, []int32{100, 2, 3}, 3, 2)
	propose(t, s, fresh)
	wantDraft(t, "another sequence that is running", fresh.Draft)
	s.Ended(a.Sequence)
	s.Forget(1)
	propose(t, s, fresh)
	wantDraft(t, "an output that has ended", fresh.Draft, 7, 2)

	fresh.Sequence = &Sequence{ID: 3, Tokens: []int32{4, 5, 9}, Prompt: 3}
	propose(t, s, fresh)
	wantDraft(t, "of the output, not of its prompt", fresh.Draft, 1, 2)
	fresh.Sequence = &Sequence{ID: 4, Tokens: []int32{1, 2, 3, 4}, Prompt: 4}
	propose(t, s, fresh)
	wantDraft(t, "of the prompt, which no other sees", fresh.Draft)
	s.Ended(&Sequence{Tokens: []int32{60, 61}})
	s.Ended(&Sequence{Tokens: []int32{70, 71}})
	fresh.Sequence = &Sequence{ID: 6, Tokens: []int32{9, 60, 61}, Prompt: 3}
	propose(t, s, fresh)
	wantDraft(t, "across outputs", fresh.Draft)
	fresh.Sequence = &Sequence{ID: 5, Namespace: "other", Tokens: []int32{9, 2, 3}, Prompt: 3}
	propose(t, s, fresh)
	wantDraft(t, "another namespace", fresh.Draft)
}

// Of more namespaces than may be, those used last are kept.
func TestSuffixForgetsNamespaces(t *testing.T) {
	s := NewSuffix(SuffixOptions{Namespaces: 6})
	end := func(namespace string) {
		s.Ended(&Sequence{Namespace: namespace, Tokens: []int32{1, 2, 3}})
	}
	known := func(namespace string) bool {
		a := ask(9, []int32{1, 2}, 2, 1)
		a.Namespace = namespace
		propose(t, s, a)
		s.Forget(9)
		return a.Draft.Len() == 1
	}
	for _, namespace := range []string{"a", "b", "c", "d", "e", "f"} {
		end(namespace)
	}
	if !known("a") {
		t.Error("a is not known")
	}
	end("g")
	for _, namespace := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		want := namespace != "b"
		if known(namespace) != want {
			t.Errorf("%s: known is %v, expected %v", namespace, !want, want)
		}
	}
	s.Ended(&Sequence{Namespace: "empty", Tokens: []int32{1, 2, 3}, Prompt: 3})
	if !known("a") {
		t.Error("an output of nothing took the place of a namespace")
	}
}

// However long a text is, one Propose takes in a bounded part of it, and all in
// the end; what is kept of it is bounded, too.
func TestSuffixIsBounded(t *testing.T) {
	s := NewSuffix(SuffixOptions{Sequence: 1000, Shared: 1000})
	r := rand.New(rand.NewPCG(1, 2))
	tokens := make([]int32, 10*suffixPiece)
	for i := range tokens {
		tokens[i] = r.Int32N(anyVocab)
	}
	asks := []Ask{ask(1, tokens, len(tokens), 4), ask(2, tokens[:suffixPiece+7], 1, 4)}
	before := 0
	for i := range 12 {
		propose(t, s, asks...)
		taken := s.sequences[1].taken + s.sequences[2].taken
		if taken-before > suffixPiece {
			t.Errorf("Propose %d took %d tokens in, expected at most %d", i, taken-before, suffixPiece)
		}
		before = taken
	}
	if want := 11*suffixPiece + 7; before != want {
		t.Errorf("%d tokens were taken in, expected %d", before, want)
	}
	s.Ended(asks[0].Sequence)
	asks[1].Prompt = 0
	s.Ended(asks[1].Sequence)
	for name, n := range map[string]int{"sequence": s.sequences[1].text.Len(), "namespace": s.shared[""].text.Len()} {
		if n < 500 || n > 1000 {
			t.Errorf("%d tokens are kept of a %s, expected 500 to 1000", n, name)
		}
	}
	s.Forget(1)
	s.Forget(2)
	if len(s.sequences) > 0 {
		t.Error("a sequence is kept that was forgotten")
	}
}

// A simulated pass takes as long as it is to cost.
func TestSimulatedPassTakesTime(t *testing.T) {
	s, err := NewSimulated(SimulatedOptions{Acceptance: []float64{0.5}, Cost: 0.5, Step: func(int) time.Duration { return 4 * time.Millisecond }})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	propose(t, s, ask(1, []int32{1}, 1, 1))
	if took := time.Since(begin); took < 2*time.Millisecond {
		t.Errorf("a pass took %v, expected 2ms at least", took)
	}
}

// Drafts are accepted as often as is asked for, and cost what is asked for.
func TestSimulated(t *testing.T) {
	s, err := NewSimulated(SimulatedOptions{
		Acceptance: []float64{0.9, 0.5, 0.25}, Cost: 0.5, Step: func(sequences int) time.Duration { return time.Duration(sequences) * 4 * time.Millisecond },
	})
	if err != nil {
		t.Fatal(err)
	}
	var waited []time.Duration
	s.wait = func(d time.Duration) { waited = append(waited, d) }
	a, b := ask(1, []int32{1, 2, 3}, 3, 5), ask(2, []int32{4}, 1, 2)
	propose(t, s, a, b)
	wantDraft(t, "five deep", a.Draft, 3, 3, 3, 3, 3)
	wantDraft(t, "two deep", b.Draft, 4, 4)
	if want := []float64{0.9, 0.5, 0.25, 0.25, 0.25}; !slices.Equal(a.Draft.Confidence, want) {
		t.Errorf("confidences %v, expected %v", a.Draft.Confidence, want)
	}
	if err := s.Propose([]Ask{a, b}, func(int) bool { return false }); err != nil {
		t.Fatal(err)
	}
	wantDraft(t, "without a pass", a.Draft)
	if want := []time.Duration{4 * time.Millisecond}; !slices.Equal(waited, want) {
		t.Errorf("waited %v, expected %v: once for all depths", waited, want)
	}

	const rounds = 20000
	accepted := make([]int, 5)
	for i := range rounds {
		key := sample.Key{Seed: 7, Choice: uint32(i % 3), Position: i}
		n := s.Accepted(key, 4)
		accepted[n]++
		if short := s.Accepted(key, 2); short != min(n, 2) {
			t.Fatalf("of a shorter draft %d are accepted, expected %d", short, min(n, 2))
		}
	}
	p := 1.0
	for depth, a := range []float64{0.9, 0.5, 0.25, 0.25} {
		want := p * (1 - a) * rounds
		if d := float64(accepted[depth]) - want; math.Abs(d) > 5*math.Sqrt(want) {
			t.Errorf("%d drafts were accepted %d times, expected about %.0f", depth, accepted[depth], want)
		}
		p *= a
	}
}

func TestSimulatedRefuses(t *testing.T) {
	for want, o := range map[string]SimulatedOptions{
		"has no values":                      {},
		"position 2 is 1.5, expected 0 to 1": {Acceptance: []float64{1, 1.5}},
		"position 1 is NaN":                  {Acceptance: []float64{math.NaN()}},
		"pass is -1":                         {Acceptance: []float64{1}, Cost: -1},
		"pass is +Inf":                       {Acceptance: []float64{1}, Cost: math.Inf(1)},
	} {
		if _, err := NewSimulated(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q in it", err, want)
		}
	}
}

// Once texts have been taken in, drafting allocates nothing.
func TestFreeDraftersAllocateNothing(t *testing.T) {
	simulated, err := NewSimulated(SimulatedOptions{Acceptance: []float64{1}})
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]Drafter{"ngram": NewLookup(1, 4), "suffix": NewSuffix(SuffixOptions{}), "simulated": simulated} {
		asks := []Ask{ask(1, []int32{1, 2, 3, 1, 2, 3, 1, 2}, 4, 5)}
		if n := testing.AllocsPerRun(10, func() { _ = d.Propose(asks, nil) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		if asks[0].Draft.Len() != 5 {
			t.Errorf("%s: drafted %v", name, asks[0].Draft.Tokens)
		}
	}
}

// A prompt of 32k tokens, and what a Propose takes in of it.
func BenchmarkSuffixPrompt(b *testing.B) {
	z := rand.NewZipf(rand.New(rand.NewPCG(3, 4)), 1.1, 3, 30_000)
	tokens := make([]int32, 32<<10)
	for i := range tokens {
		tokens[i] = int32(z.Uint64())
	}
	for b.Loop() {
		s := NewSuffix(SuffixOptions{})
		for range len(tokens) / suffixPiece {
			_ = s.Propose([]Ask{ask(1, tokens, len(tokens), 8)}, nil)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N*len(tokens)/suffixPiece), "ms/propose")
}
