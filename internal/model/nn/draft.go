package nn

import (
	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
)

// Draft appends drafted tokens to the span that Add has appended last. They
// are the last nodes of a tree behind an anchor, the row at the last position
// that Add was given: parents has for every node of the tree an earlier one, or
// -1 for the anchor, and is nil for a chain. A node has the anchor's position
// plus its depth, and is kept in a slot of its own: the position behind the
// anchor plus its number.
//
// To verify a draft is to add the anchor and all nodes:
//
//	step.Add(t, pos, tokens[pos:pos+1])
//	step.Draft(parents, drafted)
//
// Nodes before the last len(tokens) have been computed by steps before, and the
// anchor may have been. So a draft model that has a tree of five nodes in the
// cache computes four more, from one or several levels:
//
//	step.Add(t, pos+1, nil)
//	step.Draft(parents[:9], drafted[5:9])
//
// A chain leaves the step as if its tokens had been added: of more of a chain
// that has begun in other steps, Add is what appends them.
func (s *Step) Draft(parents, tokens []int32) {
	before := max(len(parents)-len(tokens), 0)
	for i, token := range tokens {
		node := before + i
		depth := node + 1
		if parents != nil {
			depth = 0
			for n := node; n >= 0; n = int(parents[n]) {
				depth++
			}
		}
		s.add(token, s.behind+depth-1, s.behind+node, s.path(parents, node, depth))
	}
}

// path returns the slots of a node's ancestors and its own, nil if they are
// consecutive, which is what positions are.
func (s *Step) path(parents []int32, node, depth int) []int32 {
	if depth == node+1 {
		return nil
	}
	from := len(s.nodes)
	for range depth {
		s.nodes = append(s.nodes, 0)
	}
	path := s.nodes[from:len(s.nodes):len(s.nodes)]
	for n := node; n >= 0; n = int(parents[n]) {
		depth--
		path[depth] = int32(s.behind + n)
	}
	return path
}

// Keep moves what layers, given as the model's Cache, keep of the drafts that a
// sequence has accepted to their positions: node path[i] of a tree from slot
// base+path[i] to base+i. The nodes ascend. All stores are keys and values in
// blocks.
func (st *State) Keep(layers []kvcache.LayerSpec, t *kvcache.Table, base int, path []int32) {
	st.openViews()
	st.tables = append(st.tables[:0], t)
	for i, stores := range layers {
		for k, s := range stores {
			kv := st.Store(i, k)
			for to, from := range path { // upwards: what is written has been read
				if int(from) != to {
					kernel.CopySlot(kv, 0, kv.DType(), s.Heads, s.KeyDim, s.ValueDim, base+to, base+int(from))
				}
			}
		}
	}
}
