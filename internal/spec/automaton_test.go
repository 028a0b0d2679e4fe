package spec

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A naive text answers what an automaton does by looking at every place.
type naive struct {
	text  []int32
	depth int
}

// after returns, of all tokens that follow a context, the one that does most
// often, of equals the one that did last; how often; and how often any does.
func (n naive) after(context []int32) (best int32, count, total int) {
	counts := map[int32]int{}
	last := map[int32]int{}
	for at := len(context); at < len(n.text); at++ {
		if slices.Equal(n.text[at-len(context):at], context) {
			counts[n.text[at]]++
			last[n.text[at]] = at
			total++
		}
	}
	for token, c := range counts {
		if c > count || c == count && last[token] > last[best] {
			best, count = token, c
		}
	}
	return best, count, total
}

// longest is the longest end of a context that some token follows.
func (n naive) longest(context []int32) []int32 {
	for from := max(0, len(context)-n.depth); ; from++ {
		if _, _, total := n.after(context[from:]); total > 0 || from == len(context) {
			return context[from:]
		}
	}
}

func (n naive) propose(context []int32, length, least int) (draft []int32, confidence []float64, matched int) {
	context = n.longest(context)
	if matched = len(context); matched < least {
		return nil, nil, 0
	}
	for len(draft) < length {
		if context = n.longest(context); len(context) < least {
			break
		}
		best, count, total := n.after(context)
		if best == separator {
			break
		}
		draft = append(draft, best)
		confidence = append(confidence, float64(count)/float64(total+1))
		context = append(slices.Clone(context), best)
	}
	return draft, confidence, matched
}

// texts with few tokens, and repetitions of what was there.
var texts = rapid.Custom(func(t *rapid.T) (text []int32) {
	alphabet := rapid.Int32Range(0, rapid.Int32Range(0, 3).Draw(t, "alphabet"))
	for range rapid.IntRange(0, 8).Draw(t, "parts") {
		switch rapid.IntRange(0, 3).Draw(t, "part") {
		case 0:
			text = append(text, separator)
		case 1:
			from := rapid.IntRange(0, len(text)).Draw(t, "from")
			text = append(text, text[from:rapid.IntRange(from, len(text)).Draw(t, "to")]...)
		default:
			text = append(text, rapid.SliceOfN(alphabet, 0, 9).Draw(t, "tokens")...)
		}
	}
	return text
})

// After every token, the automaton answers as if it looked at the whole text,
// for the end of the text itself and for other contexts.
func TestAutomaton(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		depth := rapid.IntRange(1, 7).Draw(t, "depth")
		a := NewAutomaton(depth)
		if rapid.Bool().Draw(t, "used before") {
			for _, token := range texts.Draw(t, "text before") {
				a.Append(token)
			}
			a.Reset()
		}
		other := slices.DeleteFunc(texts.Draw(t, "other context"), func(x int32) bool { return x == separator })
		text := texts.Draw(t, "text")
		least := rapid.IntRange(1, 3).Draw(t, "least")
		d := new(Draft)
		for i := range text {
			a.Append(text[i])
			if a.Len() != i+1 {
				t.Fatalf("length is %d, expected %d", a.Len(), i+1)
			}
			n := naive{text[:i+1], depth}
			own := ownContext(text[:i+1])
			for _, context := range [][]int32{own, other} {
				want, confidence, matched := n.propose(context, 6, least)
				got := proposeFrom(a, d, context, 6, least)
				if got != matched || !slices.Equal(d.Tokens, want) || !slices.Equal(d.Confidence, confidence) {
					t.Fatalf("after %v, context %v: match of %d, %v, %v; expected %d, %v, %v",
						n.text, context, got, d.Tokens, d.Confidence, matched, want, confidence)
				}
			}
		}
		if s, e := len(a.states), len(a.edges); s > 2*len(text)+1 || e > 3*len(text)+1 {
			t.Fatalf("%d tokens have %d states and %d edges", len(text), s, e)
		}
	})
}

// ownContext is the text after its last separator.
func ownContext(text []int32) []int32 {
	for i, x := range slices.Backward(text) {
		if x == separator {
			return text[i+1:]
		}
	}
	return text
}

func proposeFrom(a *Automaton, d *Draft, context []int32, n, least int) (matched int) {
	return Propose(d, context, n, least, &Suffixes{limit: 1 << 30, young: a, old: NewAutomaton(1)})
}

func TestPropose(t *testing.T) {
	a, b, c, d := int32(1), int32(2), int32(3), int32(4)
	text := func(limit int, parts ...[]int32) *Suffixes {
		s := NewSuffixes(8, limit)
		for _, p := range parts {
			s.Append(p...)
			s.End()
		}
		return s
	}
	for _, k := range []struct {
		name       string
		texts      []*Suffixes
		context    []int32
		want       []int32
		confidence []float64
		matched    int
	}{
		{"no text", nil, []int32{a}, nil, nil, 0},
		{"empty text", []*Suffixes{text(99)}, []int32{a}, nil, nil, 0},
		{"no context", []*Suffixes{text(99, []int32{a, b})}, nil, nil, nil, 0},
		{"seen once", []*Suffixes{text(99, []int32{a, b, c})}, []int32{a}, []int32{b, c}, []float64{1. / 2, 1. / 2}, 1},
		{
			"the most frequent",
			[]*Suffixes{text(99, []int32{a, b}, []int32{a, c}, []int32{a, b}, []int32{a, d})},
			[]int32{a},
			[]int32{b},
			[]float64{2. / 5},
			1,
		},
		{"of equals the latest", []*Suffixes{text(99, []int32{a, b}, []int32{a, c})}, []int32{a}, []int32{c}, []float64{1. / 3}, 1},
		{"the end of a text is no proposal", []*Suffixes{text(99, []int32{a, b})}, []int32{b}, nil, nil, 1},
		{
			"the longer match",
			[]*Suffixes{text(99, []int32{b, c}), text(99, []int32{a, b, d})},
			[]int32{a, b},
			[]int32{d},
			[]float64{1. / 2},
			2,
		},
		{
			"of equals the first text",
			[]*Suffixes{text(99, []int32{a, b, c}), text(99, []int32{a, b, d})},
			[]int32{a, b},
			[]int32{c},
			[]float64{1. / 2},
			2,
		},
		{"forgotten", []*Suffixes{text(6, []int32{a, b}, []int32{c, d}, []int32{c, d})}, []int32{a}, nil, nil, 0},
		{"not yet forgotten", []*Suffixes{text(6, []int32{a, b}, []int32{c, d})}, []int32{a}, []int32{b}, []float64{1. / 2}, 1},
	} {
		draft := new(Draft)
		matched := Propose(draft, k.context, 4, 1, k.texts...)
		if matched != k.matched || !slices.Equal(draft.Tokens, k.want) || !slices.Equal(draft.Confidence, k.confidence) {
			t.Errorf("%s: match of %d, %v, %v; expected %d, %v, %v",
				k.name, matched, draft.Tokens, draft.Confidence, k.matched, k.want, k.confidence)
		}
		if err := draft.Check(5); err != nil || draft.Parents != nil {
			t.Errorf("%s: %v, parents %v, expected a chain", k.name, err, draft.Parents)
		}
	}
}

// What is remembered is the young half and the old one, never more than the
// limit, and memory that was taken is used again.
func TestSuffixesAreBounded(t *testing.T) {
	const limit = 100
	s := NewSuffixes(4, limit)
	var states, edges int
	for i := range 50 * limit {
		s.Append(int32(i * i % 97))
		if n := s.Len(); n > limit || i >= limit && n < limit/2 {
			t.Fatalf("after %d tokens %d are remembered, limit %d", i+1, n, limit)
		}
		states, edges = max(states, cap(s.young.states)), max(edges, cap(s.young.edges))
	}
	if states > 4*limit || edges > 6*limit {
		t.Errorf("room for %d states and %d edges was taken, for %d tokens", states, edges, limit/2)
	}
}
