// Package exact proves for tests that something random keeps a law. A program
// asks for random outcomes; Outcomes runs it once for every sequence of answers and
// adds up, as fractions, the probability of what it returns. The code under test is the
// code in service: on weights that are small integers its float64 arithmetic is
// exact, and if it were not, no law would come out as an equality of fractions.
package exact

import (
	"fmt"
	"math/big"
	"slices"
)

// Branches answers a program's questions. It replays the answers so far and
// takes the first possible one to a new question.
type Branches struct {
	asked []question
	at    int
	prob  *big.Rat
}

type question struct {
	probs  []*big.Rat
	answer int
}

// Choose returns the number of an outcome, of those with the given probabilities.
func (b *Branches) Choose(probs func() []*big.Rat) int {
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
func (b *Branches) next() bool {
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

// Accept is an event of probability num/den, sure if that is 1 or more, as
// spec.Draws has it.
func (b *Branches) Accept(_ int, num, den float64) bool {
	return b.Choose(func() []*big.Rat {
		yes := new(big.Rat)
		switch {
		case num < 0 || den < 0:
			panic(fmt.Sprintf("accept with %v/%v", num, den))
		case num > 0 && num >= den:
			yes.SetInt64(1)
		case num > 0:
			yes.Quo(rational(num), rational(den))
		}
		return []*big.Rat{yes, new(big.Rat).Sub(big.NewRat(1, 1), yes)}
	}) == 0
}

// Index is one of some weights, which are those of a spec.Row with its total.
func (b *Branches) Index(weights []float64, total float64) int {
	return b.Choose(func() []*big.Rat { return fractions(weights, total) })
}

func rational(x float64) *big.Rat {
	r := new(big.Rat).SetFloat64(x)
	if r == nil {
		panic(fmt.Sprintf("%v in an exact program", x))
	}
	return r
}

// fractions returns the probabilities of weights, and checks that they are such.
func fractions(weights []float64, total float64) []*big.Rat {
	probs, all := make([]*big.Rat, len(weights)), rational(total)
	sum := new(big.Rat)
	for i, w := range weights {
		if w < 0 {
			panic(fmt.Sprintf("row has weights %v", weights))
		}
		probs[i] = rational(w)
		sum.Add(sum, probs[i])
		probs[i].Quo(probs[i], all)
	}
	if all.Sign() <= 0 || sum.Cmp(all) != 0 {
		panic(fmt.Sprintf("row has weights %v and total %v", weights, total))
	}
	return probs
}

// A Law is the probability of every possible text.
type Law map[string]*big.Rat

// A Failer is a test of the standard library or of rapid.
type Failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Outcomes returns the law of what a program returns.
func Outcomes(t Failer, program func(*Branches) []int32) Law {
	t.Helper()
	l, sum := Law{}, new(big.Rat)
	for b := new(Branches); ; {
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

// Of is the probability of a text.
func (l Law) Of(text ...int32) *big.Rat {
	if p := l[fmt.Sprint(text)]; p != nil {
		return p
	}
	return new(big.Rat)
}

// Differs describes the first difference of two laws, "" if they are equal.
func (l Law) Differs(want Law) string {
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
