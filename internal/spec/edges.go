package spec

// The edges of an automaton: a list per state, to copy a state, and a hash
// table of all, to follow a token.

// find returns the edge of a state and token, or -1.
func (a *Automaton) find(from, token int32) int32 {
	if len(a.table) == 0 {
		return -1
	}
	for i := a.slot(from, token); ; i++ {
		e := a.table[i&(len(a.table)-1)] - 1
		if e < 0 || a.edges[e].from == from && a.edges[e].token == token {
			return e
		}
	}
}

// connect adds an edge, which the state must not have, and returns it.
func (a *Automaton) connect(from, token, to int32) int32 {
	if 2*len(a.edges) >= len(a.table) {
		a.table = make([]int32, max(64, 2*len(a.table)))
		for e := range a.edges {
			a.place(int32(e))
		}
	}
	a.edges = append(a.edges, edge{from, token, to, a.states[from].edges})
	e := int32(len(a.edges) - 1)
	a.states[from].edges = e
	a.place(e)
	return e
}

func (a *Automaton) place(e int32) {
	i := a.slot(a.edges[e].from, a.edges[e].token)
	for ; a.table[i&(len(a.table)-1)] != 0; i++ {
	}
	a.table[i&(len(a.table)-1)] = e + 1
}

func (a *Automaton) slot(from, token int32) int {
	h := (uint64(uint32(from))<<32 | uint64(uint32(token))) ^ a.seed
	h = (h ^ h>>32) * 0x9e3779b97f4a7c15
	h = (h ^ h>>29) * 0xbf58476d1ce4e5b9
	return int(h >> 32 & uint64(len(a.table)-1))
}
