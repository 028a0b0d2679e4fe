package sample

import (
	"fmt"
	"maps"
	"slices"
)

// A History counts the tokens of one sequence for the penalties. Draft tokens
// are added before the positions after them are sampled and removed when they
// are rejected.
type History struct {
	seen  []seen
	index map[int32]int // token to entry of seen
}

type seen struct {
	token  int32
	output int32 // occurrences in the output
	prompt bool
}

// NewHistory starts a history with the tokens of the prompt.
func NewHistory(prompt []int32) *History {
	h := &History{index: map[int32]int{}}
	for _, t := range prompt {
		h.entry(t).prompt = true
	}
	return h
}

func (h *History) entry(token int32) *seen {
	i, ok := h.index[token]
	if !ok {
		i = len(h.seen)
		h.index[token] = i
		h.seen = append(h.seen, seen{token: token})
	}
	return &h.seen[i]
}

// Add counts tokens of the output.
func (h *History) Add(tokens ...int32) {
	for _, t := range tokens {
		h.entry(t).output++
	}
}

// Remove takes back tokens that were added.
func (h *History) Remove(tokens ...int32) {
	for _, t := range tokens {
		e := h.entry(t)
		if e.output == 0 {
			panic(fmt.Sprintf("sample: token %d removed from a history that does not hold it", t))
		}
		e.output--
	}
}

// Clone returns an independent copy, for another choice of the same prompt.
func (h *History) Clone() *History {
	return &History{seen: slices.Clone(h.seen), index: maps.Clone(h.index)}
}
