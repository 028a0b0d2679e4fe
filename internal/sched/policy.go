package sched

import (
	"cmp"
	"math"
	"slices"
)

const (
	// maxMatched is the longest queue whose cached prefixes are looked up for
	// the sake of its order (A3); a longer one is served as it came.
	maxMatched = 128
	// InBatchPrefix is how many tokens of a prefix that waits make it worth
	// computing once (A3).
	InBatchPrefix = 32
)

// sortWaiting puts the queue in order of class, and within it those first
// whose patience has ended, then those that were retracted, then by policy.
func (p *step) sortWaiting() {
	if p.sorted {
		return
	}
	p.sorted = true
	for _, q := range p.waiting {
		q.matched, q.rank = false, 0
		q.overdue, q.class = p.impatient(q), 0
		if p.cfg.Policy == Priority {
			q.class = q.Priority
			if q.overdue {
				q.class = math.MaxInt
			}
		}
	}
	slices.SortFunc(p.waiting, byArrival)
	if len(p.waiting) <= maxMatched {
		switch p.cfg.Policy {
		case LPM:
			p.rankByMatch()
		case DFSWeight:
			p.rankByWeight()
		}
	}
	slices.SortStableFunc(p.waiting, func(a, b *sequence) int {
		switch {
		case a.class != b.class:
			return cmp.Compare(b.class, a.class)
		case a.overdue != b.overdue:
			return first(a.overdue)
		case a.overdue:
			return 0 // in order of arrival
		case a.returned != b.returned:
			return first(a.returned)
		}
		return cmp.Compare(a.rank, b.rank)
	})
}

func first(a bool) int {
	if a {
		return -1
	}
	return 1
}

// impatient reports whether q arrived longer ago than patience lasts.
func (p *step) impatient(q *sequence) bool { return p.now.Sub(q.since) >= p.cfg.Patience }

// match is the cached prefix of a waiting sequence, looked up once in a plan.
func (p *step) match(q *sequence) Match {
	if !q.matched {
		q.match, q.matched = p.cache.Match(q.ID), true
	}
	return q.match
}

// rankByMatch ranks by cached tokens, the most first. Of requests that begin
// alike with what is not cached all but the first come last: when their turn
// comes it has filled the cache.
func (p *step) rankByMatch() {
	seen := make(map[uint64]bool)
	for _, q := range p.waiting {
		q.rank = -p.match(q).Tokens
		if q.match.Tokens > InBatchPrefix || q.Prefix == 0 {
			continue
		}
		if seen[q.Prefix] {
			q.rank = 1
		}
		seen[q.Prefix] = true
	}
}

// rankByWeight ranks in the order of a walk through the prefix tree. The
// weight of a node is the number of requests whose match ends at or below it;
// of a node's children the heaviest is entered first, and the node's own
// requests come after them. So requests that share most run together.
func (p *step) rankByWeight() {
	type node struct {
		weight   int
		children []uint64 // in order of arrival
		own      []*sequence
	}
	nodes := map[uint64]*node{0: {}}
	for _, q := range p.waiting {
		path := append(p.cache.Path(q.ID), 0)
		child := uint64(0)
		for _, n := range path {
			known := nodes[n]
			if known == nil {
				known = &node{}
				nodes[n] = known
			}
			if child != 0 && nodes[child].weight == 1 {
				known.children = append(known.children, child) // it is new
			}
			known.weight++
			child = n
		}
		nodes[path[0]].own = append(nodes[path[0]].own, q)
	}
	// The stack has the node to enter next on top; one that was entered is
	// left below its children.
	type visit struct {
		id      uint64
		entered bool
	}
	rank := 0
	for stack := []visit{{}}; len(stack) > 0; {
		top := &stack[len(stack)-1]
		n := nodes[top.id]
		if top.entered {
			for _, q := range n.own {
				q.rank = rank
				rank++
			}
			stack = stack[:len(stack)-1]
			continue
		}
		top.entered = true
		slices.SortStableFunc(n.children, func(a, b uint64) int { return cmp.Compare(nodes[b].weight, nodes[a].weight) })
		for _, c := range slices.Backward(n.children) {
			stack = append(stack, visit{id: c})
		}
	}
}
