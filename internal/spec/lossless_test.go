package spec

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// rules are the ways to make and verify a round of at most so many tokens of
// drafts.
var rules = map[string]func(m toy) round{
	"no draft": func(m toy) round {
		return func(b *branches, text []int32, _ int) []int32 {
			d := new(Draft)
			v, err := new(Verifier).Rejection(d, m.rows(text, d), b)
			return verify(d, v, err)
		}
	},
	"rejection of a chain": func(m toy) round {
		return func(b *branches, text []int32, depth int) []int32 {
			d := m.drawChain(b, text, depth)
			v, err := new(Verifier).Rejection(d, m.rows(text, d), b)
			return verify(d, v, err)
		}
	},
	"rejection of a chosen chain": func(m toy) round {
		return func(b *branches, text []int32, depth int) []int32 {
			d := m.bestChain(text, depth)
			v, err := new(Verifier).Rejection(d, m.rows(text, d), b)
			return verify(d, v, err)
		}
	},
	"rejection of a chain chosen, then drawn": func(m toy) round {
		return func(b *branches, text []int32, depth int) []int32 {
			d := m.drawChain(b, text, depth)
			if depth > 0 {
				best := m.bestChain(text, depth)
				d.Tokens[0], d.Q[0] = best.Tokens[0], Row{}
				for i := 1; i < depth; i++ {
					d.Q[i] = m.q(history(text, d, i))
					d.Tokens[i] = b.Pick(0, d.Q[i])
				}
			}
			v, err := new(Verifier).Rejection(d, m.rows(text, d), b)
			return verify(d, v, err)
		}
	},
	"block": func(m toy) round {
		return func(b *branches, text []int32, depth int) []int32 {
			d := m.drawChain(b, text, depth)
			v, err := new(Verifier).Block(d, m.rows(text, d), b)
			return verify(d, v, err)
		}
	},
	"block of a chosen chain": func(m toy) round {
		return func(b *branches, text []int32, depth int) []int32 {
			d := m.bestChain(text, depth)
			v, err := new(Verifier).Block(d, m.rows(text, d), b)
			return verify(d, v, err)
		}
	},
	"tree drawn without replacement": func(m toy) round {
		return func(b *branches, text []int32, depth int) []int32 {
			d := m.drawTree(b, text, []int{3, 1}[:min(depth, 2)], false)
			v, err := new(Verifier).Rejection(d, m.rows(text, d), b)
			return verify(d, v, err)
		}
	},
	"tree drawn with replacement": func(m toy) round {
		return func(b *branches, text []int32, depth int) []int32 {
			d := m.drawTree(b, text, []int{2, 2}[:min(depth, 2)], true)
			v, err := new(Verifier).Rejection(d, m.rows(text, d), b)
			return verify(d, v, err)
		}
	},
	"sample and match": func(m toy) round {
		return func(b *branches, text []int32, depth int) []int32 {
			d := m.bestTree(text, min(depth, 2))
			v, err := new(Verifier).Match(&d.Tree, func(row int) (int32, error) {
				return b.Pick(row, m.p(history(text, d, row))), nil
			})
			return verify(d, v, err)
		}
	},
	"sample and match of a drawn tree": func(m toy) round {
		return func(b *branches, text []int32, depth int) []int32 {
			d := m.drawTree(b, text, []int{2, 1}[:min(depth, 2)], true)
			v, err := new(Verifier).Match(&d.Tree, func(row int) (int32, error) {
				return b.Pick(row, m.p(history(text, d, row))), nil
			})
			return verify(d, v, err)
		}
	},
	"rejection of a chosen tree": func(m toy) round {
		return func(b *branches, text []int32, depth int) []int32 {
			d := m.bestTree(text, min(depth, 2))
			v, err := new(Verifier).Rejection(d, m.rows(text, d), b)
			return verify(d, v, err)
		}
	},
}

// bestChain is the chain of the draft model's likeliest tokens.
func (m toy) bestChain(text []int32, n int) *Draft {
	d := new(Draft)
	for i := range n {
		d.Tokens = append(d.Tokens, ranked(m.q(history(text, d, i)))[0])
	}
	return d
}

// bestTree has two children of every node, the likeliest, and the first of them
// again, with a child of its own.
func (m toy) bestTree(text []int32, depth int) *Draft {
	d := new(Draft)
	d.Reset()
	level := []int{0}
	for range depth {
		var below []int
		for _, row := range level {
			best := ranked(m.q(history(text, d, row)))
			for _, x := range append(best[:min(2, len(best))], best[0]) {
				below = append(below, d.Add(x, row-1)+1)
			}
		}
		level = below
	}
	return d
}

// ranked are the tokens of a row, likeliest first.
func ranked(r Row) []int32 {
	ids := make([]int32, len(r.W))
	for i := range ids {
		ids[i] = r.token(i)
	}
	slices.SortStableFunc(ids, func(a, b int32) int {
		return int(r.Weight(b) - r.Weight(a))
	})
	return ids
}

// Every rule keeps the law of the target, for any pair of models: exactly.
func TestLossless(t *testing.T) {
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := randomToy(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 3).Draw(t, "vocab"), 9)
				n := rapid.IntRange(1, 3).Draw(t, "tokens")
				if diff := generate(t, n, rule(m)).Differs(m.target(t, n)); diff != "" {
					t.Fatal(diff)
				}
			})
		})
	}
}
