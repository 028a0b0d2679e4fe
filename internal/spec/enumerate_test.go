package spec

import (
	"fmt"
	"hash/fnv"
	"math/big"
	"slices"

	"github.com/foretoken/foretoken/internal/spec/exact"
)

// branches are the draws of a program that is run once for every sequence of
// outcomes.
type branches struct{ *exact.Branches }

// Pick implements Draws.
func (b *branches) Pick(_ int, p Row) int32 { return p.token(b.Index(p.W, p.Total)) }

type law = exact.Law

func outcomes(t exact.Failer, program func(*branches) []int32) law {
	t.Helper()
	return exact.Outcomes(t, func(b *exact.Branches) []int32 { return program(&branches{b}) })
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
func (m toy) target(t exact.Failer, n int) law {
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
func generate(t exact.Failer, n int, next round) law {
	return outcomes(t, func(b *branches) (text []int32) {
		for len(text) < n {
			text = append(text, next(b, text, n-len(text)-1)...)
		}
		return text
	})
}

// expectedTokens is how many tokens a first round commits in expectation.
func expectedTokens(t exact.Failer, next round, depth int) *big.Rat {
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
