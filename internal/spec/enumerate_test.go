package spec

import (
	"fmt"
	"hash/fnv"
	"math/big"
	"slices"
)

// The proof of a rule. A round (draft, cut, verify) is a program that asks for
// random outcomes; outcomes runs it once for every sequence of answers and adds
// up, as fractions, the probability of what it returns. The code under test is
// the code in service: on rows of small integers its float64 arithmetic is
// exact, and if it were not, no law would come out as an equality of fractions.

// branches answers a program's questions. It replays the answers so far and
// takes the first possible one to a new question.
type branches struct {
	asked []question
	at    int
	prob  *big.Rat
}

type question struct {
	probs  []*big.Rat
	answer int
}

func (b *branches) choose(probs func() []*big.Rat) int {
	if b.at == len(b.asked) {
		q := question{probs: probs()}
		for q.probs[q.answer].Sign() == 0 {
			q.answer++
		}
		b.asked = append(b.asked, q)
	}
	q := b.asked[b.at]
	b.at++
	b.prob.Mul(b.prob, q.probs[q.answer])
	return q.answer
}

// next moves to the next sequence of answers, false after the last.
func (b *branches) next() bool {
	for len(b.asked) > 0 {
		q := &b.asked[len(b.asked)-1]
		for q.answer++; q.answer < len(q.probs); q.answer++ {
			if q.probs[q.answer].Sign() > 0 {
				return true
			}
		}
		b.asked = b.asked[:len(b.asked)-1]
	}
	return false
}

// Accept implements Draws.
func (b *branches) Accept(_ int, num, den float64) bool {
	return b.choose(func() []*big.Rat {
		yes := new(big.Rat)
		switch {
		case num < 0 || den < 0:
			panic(fmt.Sprintf("accept with %v/%v", num, den))
		case num > 0 && num >= den:
			yes.SetInt64(1)
		case num > 0:
			yes.Quo(exact(num), exact(den))
		}
		return []*big.Rat{yes, new(big.Rat).Sub(big.NewRat(1, 1), yes)}
	}) == 0
}

// Pick implements Draws.
func (b *branches) Pick(_ int, p Row) int32 {
	return p.token(b.choose(func() []*big.Rat { return fractions(p) }))
}

func exact(x float64) *big.Rat {
	r := new(big.Rat).SetFloat64(x)
	if r == nil {
		panic(fmt.Sprintf("%v in an exact program", x))
	}
	return r
}

// fractions returns the probabilities of a row's weights, and checks its contract.
func fractions(p Row) []*big.Rat {
	probs, total := make([]*big.Rat, len(p.W)), exact(p.Total)
	sum := new(big.Rat)
	for i, w := range p.W {
		if w < 0 {
			panic(fmt.Sprintf("row has weights %v", p.W))
		}
		probs[i] = exact(w)
		sum.Add(sum, probs[i])
		probs[i].Quo(probs[i], total)
	}
	if total.Sign() <= 0 || sum.Cmp(total) != 0 {
		panic(fmt.Sprintf("row has weights %v and total %v", p.W, p.Total))
	}
	return probs
}

// A law is the probability of every possible text.
type law map[string]*big.Rat

// failer is a test of the standard library or of rapid.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func outcomes(t failer, program func(*branches) []int32) law {
	t.Helper()
	l, sum := law{}, new(big.Rat)
	for b := new(branches); ; {
		b.at, b.prob = 0, big.NewRat(1, 1)
		text := fmt.Sprint(program(b))
		if l[text] == nil {
			l[text] = new(big.Rat)
		}
		l[text].Add(l[text], b.prob)
		sum.Add(sum, b.prob)
		if !b.next() {
			break
		}
	}
	if sum.Cmp(big.NewRat(1, 1)) != 0 {
		t.Fatalf("outcomes have probability %v in all, expected 1", sum)
	}
	return l
}

// of is the probability of a text.
func (l law) of(text ...int32) *big.Rat {
	if p := l[fmt.Sprint(text)]; p != nil {
		return p
	}
	return new(big.Rat)
}

// differs describes the first difference of two laws, "" if they are equal.
func (l law) differs(want law) string {
	texts := map[string]bool{}
	for s := range l {
		texts[s] = true
	}
	for s := range want {
		texts[s] = true
	}
	var diffs []string
	for s := range texts {
		got, expected := l[s], want[s]
		if got == nil {
			got = new(big.Rat)
		}
		if expected == nil {
			expected = new(big.Rat)
		}
		if got.Cmp(expected) != 0 {
			diffs = append(diffs, fmt.Sprintf("%s has probability %v, expected %v", s, got, expected))
		}
	}
	slices.Sort(diffs)
	if len(diffs) == 0 {
		return ""
	}
	return diffs[0]
}

// A toy is a pair of models: rows of small integers after every history.
type toy struct{ p, q func(history []int32) Row }

// weights makes a row of small integers.
func weights(w ...float64) Row {
	r := Row{W: w}
	for _, x := range w {
		r.Total += x
	}
	return r
}

// randomToy makes a toy of a seed. Its rows have zeros, as truncation makes
// them; every third is sparse.
func randomToy(seed uint64, vocab, most int) toy {
	row := func(model byte, history []int32) Row {
		h := fnv.New64a()
		fmt.Fprint(h, seed, model, history)
		x := h.Sum64()
		next := func(n int) int {
			x = x*6364136223846793005 + 1442695040888963407
			return int(x>>33) % n
		}
		r := Row{W: make([]float64, vocab)}
		for r.Total == 0 {
			r.Total = 0
			for i := range r.W {
				r.W[i] = float64(max(next(most+3)-2, 0))
				r.Total += r.W[i]
			}
		}
		for next(2) == 0 && r.W[len(r.W)-1] == 0 {
			r.W = r.W[:len(r.W)-1] // a model of a smaller vocabulary
		}
		if next(3) == 0 {
			r.IDs = []int32{}
			w := r.W
			r.W = nil
			for i, x := range w {
				if x > 0 || next(2) == 0 {
					r.IDs, r.W = append(r.IDs, int32(i)), append(r.W, x)
				}
			}
		}
		return r
	}
	return toy{
		p: func(h []int32) Row { return row('p', h) },
		q: func(h []int32) Row { return row('q', h) },
	}
}

// target is the law of n tokens of the target alone.
func (m toy) target(t failer, n int) law {
	return outcomes(t, func(b *branches) (text []int32) {
		for range n {
			text = append(text, b.Pick(0, m.p(text)))
		}
		return text
	})
}

// history is the text after a row of a draft.
func history(text []int32, d *Draft, row int) []int32 {
	var path []int32
	for node := row - 1; node >= 0; node = d.Parent(node) {
		path = append(path, d.Tokens[node])
	}
	slices.Reverse(path)
	return slices.Concat(text, path)
}

// rows are the target's rows of a draft after a text.
func (m toy) rows(text []int32, d *Draft) Target {
	asked := map[int]bool{}
	return func(row int) (Row, error) {
		if asked[row] {
			panic(fmt.Sprintf("row %d asked for twice", row))
		}
		asked[row] = true
		return m.p(history(text, d, row)), nil
	}
}

// A round drafts after a text, at most so many tokens deep, and verifies.
type round func(b *branches, text []int32, depth int) (accepted []int32)

// generate is the law of n tokens that rounds commit.
func generate(t failer, n int, next round) law {
	return outcomes(t, func(b *branches) (text []int32) {
		for len(text) < n {
			text = append(text, next(b, text, n-len(text)-1)...)
		}
		return text
	})
}

// expectedTokens is how many tokens a first round commits in expectation.
func expectedTokens(t failer, next round, depth int) *big.Rat {
	sum := new(big.Rat)
	for tokens, p := range outcomes(t, func(b *branches) []int32 {
		return []int32{int32(len(next(b, nil, depth)))}
	}) {
		var n int64
		fmt.Sscanf(tokens, "[%d]", &n)
		sum.Add(sum, p.Mul(p, big.NewRat(n, 1)))
	}
	return sum
}

// accepted are the tokens of a verdict.
func accepted(d *Draft, v Verdict) (tokens []int32) {
	for _, node := range v.Path {
		tokens = append(tokens, d.Tokens[node])
	}
	return append(tokens, v.Next)
}

// drawChain draws a chain from the draft model.
func (m toy) drawChain(b *branches, text []int32, n int) *Draft {
	d := new(Draft)
	for i := range n {
		q := m.q(history(text, d, i))
		d.Q = append(d.Q, q)
		d.Tokens = append(d.Tokens, b.Pick(0, q))
	}
	return d
}

// drawTree draws a tree level by level: fanout[i] siblings at depth i+1 under
// every node, without replacement or with it, as many as q can give.
func (m toy) drawTree(b *branches, text []int32, fanout []int, replace bool) *Draft {
	d := new(Draft)
	d.Reset()
	level := []int{0} // rows
	for _, n := range fanout {
		var below []int
		for _, row := range level {
			q := m.q(history(text, d, row))
			d.Q = append(d.Q, make([]Row, row+1-len(d.Q))...)
			d.Q[row] = q
			for range n {
				if q.Total == 0 {
					break
				}
				x := b.Pick(0, q)
				below = append(below, d.Add(x, row-1)+1)
				if !replace {
					var rest Row
					rest.without(q, x)
					q = rest
				}
			}
		}
		level = below
	}
	return d
}

// verify fails the program on an error: the rows have none.
func verify(d *Draft, v Verdict, err error) []int32 {
	if err != nil {
		panic(err)
	}
	return accepted(d, v)
}
