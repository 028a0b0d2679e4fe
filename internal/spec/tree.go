package spec

import "fmt"

// A Tree holds tokens that may follow the anchor. Parents precede children, so
// that the first n nodes of a tree are one too.
type Tree struct {
	Tokens  []int32
	Parents []int32 // of node i: an earlier node, or -1, the anchor; nil: a chain, where it is i-1
}

// Len returns the number of nodes.
func (t *Tree) Len() int { return len(t.Tokens) }

// Parent returns the parent of a node, -1 for the anchor.
func (t *Tree) Parent(node int) int {
	if t.Parents == nil {
		return node - 1
	}
	return int(t.Parents[node])
}

// Check returns an error if a token is not of a vocabulary of that many, or a
// parent does not precede its child.
func (t *Tree) Check(vocab int) error {
	if t.Parents != nil && len(t.Parents) != len(t.Tokens) {
		return fmt.Errorf("draft has %d parents, expected one for each of %d tokens", len(t.Parents), len(t.Tokens))
	}
	for i, token := range t.Tokens {
		if token < 0 || int(token) >= vocab {
			return fmt.Errorf("draft token %d is %d, expected 0 to %d", i, token, vocab-1)
		}
		if p := t.Parent(i); p < -1 || p >= i {
			return fmt.Errorf("draft token %d has parent %d, expected an earlier one, or -1", i, p)
		}
	}
	return nil
}

// Truncate keeps the first n nodes.
func (t *Tree) Truncate(n int) {
	n = min(n, len(t.Tokens))
	t.Tokens = t.Tokens[:n]
	if t.Parents != nil {
		t.Parents = t.Parents[:n]
	}
}

// Reset makes the tree empty, and not a chain. It keeps the memory.
func (t *Tree) Reset() {
	t.Tokens = t.Tokens[:0]
	if t.Parents == nil {
		t.Parents = []int32{}
	}
	t.Parents = t.Parents[:0]
}

// Add appends a node and returns its number.
func (t *Tree) Add(token int32, parent int) int {
	t.Tokens = append(t.Tokens, token)
	t.Parents = append(t.Parents, int32(parent))
	return len(t.Tokens) - 1
}

// Child returns the first child of a row with that token, or -1.
func (t *Tree) Child(row int, token int32) int {
	for node := t.next(row, -1); node >= 0; node = t.next(row, node) {
		if t.Tokens[node] == token {
			return node
		}
	}
	return -1
}

// next returns the next child of a row after a node, -1 if there is none. The
// first comes after -1.
func (t *Tree) next(row, node int) int {
	for node = max(node+1, row); node < len(t.Tokens); node++ {
		if t.Parent(node) == row-1 {
			return node
		}
		if t.Parents == nil {
			break
		}
	}
	return -1
}

// Depths appends the depth of every node to dst: 1 for a child of the anchor.
// A node's token is at the anchor's position plus its depth.
func (t *Tree) Depths(dst []int32) []int32 {
	base := len(dst)
	for i := range t.Tokens {
		depth := int32(1)
		if p := t.Parent(i); p >= 0 {
			depth += dst[base+p]
		}
		dst = append(dst, depth)
	}
	return dst
}
