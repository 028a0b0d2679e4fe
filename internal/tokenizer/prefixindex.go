package tokenizer

import (
	"iter"
	"slices"
	"sort"
)

// prefixIndex finds which of a fixed set of strings a text begins with. It is a sorted list read as
// a trie: after k bytes, the strings that still match are a range of it.
type prefixIndex struct {
	keys  []string // sorted, distinct, not empty
	begin [257]int32
}

func newPrefixIndex(keys []string) prefixIndex {
	x := prefixIndex{keys: slices.Clone(keys)}
	slices.Sort(x.keys)
	x.keys = slices.Compact(x.keys)
	for c := range x.begin {
		x.begin[c] = int32(sort.Search(len(x.keys), func(i int) bool { return int(x.keys[i][0]) >= c }))
	}
	return x
}

// canBegin reports whether a key begins with c.
func (x *prefixIndex) canBegin(c byte) bool { return x.begin[c] < x.begin[int(c)+1] }

// prefixesOf yields the indices of the keys that s begins with, shortest first.
func (x *prefixIndex) prefixesOf(s string) iter.Seq[int] {
	return func(yield func(int) bool) {
		if s == "" {
			return
		}
		lo, hi := int(x.begin[s[0]]), int(x.begin[int(s[0])+1])
		for n := 1; lo < hi; n++ { // keys[lo:hi] begin with s[:n]
			if len(x.keys[lo]) == n {
				if !yield(lo) {
					return
				}
				lo++
			}
			if n == len(s) {
				return
			}
			c := s[n]
			lo += sort.Search(hi-lo, func(i int) bool { return x.keys[lo+i][n] >= c })
			hi = lo + sort.Search(hi-lo, func(i int) bool { return x.keys[lo+i][n] > c })
		}
	}
}
