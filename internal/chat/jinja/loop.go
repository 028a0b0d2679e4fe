package jinja

import (
	"github.com/foretoken/foretoken/internal/chat/jinja/parse"
	"github.com/foretoken/foretoken/internal/chat/value"
)

// loop is the variable of that name inside a for: where the loop is, what came before and comes next.
// Looking at the next item takes it from the iterator early.
type loop struct {
	m       *machine
	node    *parse.For
	scope   *scope // around the loop
	src     value.Value
	it      iterator
	index0  int
	depth0  int
	size    int // once known, else -1
	current value.Value
	before  value.Value
	ahead   value.Value
	peeked  bool // ahead is set
	ended   bool // the iterator is used up
	changed []value.Value
	asked   bool // changed was called
}

func (l *loop) TypeName() string { return "LoopContext" }

func (m *machine) execFor(n *parse.For, s *scope) (signal, error) {
	v, err := m.eval(n.Iter, s)
	if err != nil {
		return 0, err
	}
	if !n.Recursive {
		return m.runLoop(n, v, s, 0)
	}
	text, err := m.capture(func() error {
		_, err := m.runLoop(n, v, s, 0)
		return err
	})
	if err != nil {
		return 0, err
	}
	return goOn, m.write(text)
}

// runLoop runs the loop over v. A break or continue ends here.
func (m *machine) runLoop(n *parse.For, v value.Value, s *scope, depth0 int) (signal, error) {
	it, err := m.iterate(v)
	if err != nil {
		return 0, err
	}
	l := &loop{m: m, node: n, scope: s, src: v, it: it, index0: -1, depth0: depth0, size: -1}
	if n.Filter != nil {
		l.src = nil // its length is not the loop's
		l.it = m.filtered(n, it, s)
	}
	inner := &scope{outer: s}
	finished := false // an iteration reached its end: in Jinja only that keeps the else from running
	for {
		ok, err := l.advance()
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		inner.clear()
		inner.set("loop", l)
		if err := m.assign(n.Target, l.current, inner); err != nil {
			return 0, err
		}
		sig, err := m.execAll(n.Body, inner)
		if err != nil {
			return 0, err
		}
		if sig == breakLoop {
			break
		}
		finished = finished || sig == goOn
	}
	if !finished && n.Else != nil {
		return m.execAll(n.Else, &scope{outer: s})
	}
	return goOn, nil
}

// filtered passes the items for which the loop's condition holds, each tested only when it is its turn.
func (m *machine) filtered(n *parse.For, it iterator, s *scope) iterator {
	inner := &scope{outer: s}
	return func() (value.Value, bool, error) {
		for {
			item, ok, err := it()
			if err != nil || !ok {
				return nil, false, err
			}
			inner.clear()
			if err := m.assign(n.Target, item, inner); err != nil {
				return nil, false, err
			}
			if ok, err := m.evalTruth(n.Filter, inner); err != nil || ok {
				return item, ok, err
			}
		}
	}
}

func (l *loop) advance() (bool, error) {
	if err := l.peek(); err != nil || l.ended {
		return false, err
	}
	l.peeked = false
	l.index0++
	l.before, l.current = l.current, l.ahead
	return true, nil
}

// peek takes the next item, unless that has been done.
func (l *loop) peek() error {
	if l.peeked || l.ended {
		return nil
	}
	item, ok, err := l.it()
	if err != nil {
		return err
	}
	l.ahead, l.peeked, l.ended = item, ok, !ok
	return nil
}

// length returns the number of iterations. To know it, a loop over a generator must take all its items.
func (l *loop) length() (int, error) {
	if l.size >= 0 {
		return l.size, nil
	}
	if l.src != nil {
		if n, err := l.m.length(l.src); err == nil {
			l.size = n
			return n, nil
		}
	}
	var rest []value.Value
	for {
		item, ok, err := l.it()
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		if err := l.m.items(1); err != nil {
			return 0, err
		}
		rest = append(rest, item)
	}
	l.it = l.m.counted(len(rest), func(i int) value.Value { return rest[i] })
	l.size = l.index0 + 1 + len(rest)
	if l.peeked {
		l.size++
	}
	return l.size, nil
}

func (l *loop) attr(name string) (v value.Value, found bool, err error) {
	switch name {
	case "index":
		return int64(l.index0 + 1), true, nil
	case "index0":
		return int64(l.index0), true, nil
	case "first":
		return l.index0 == 0, true, nil
	case "depth":
		return int64(l.depth0 + 1), true, nil
	case "depth0":
		return int64(l.depth0), true, nil
	case "previtem":
		if l.index0 == 0 {
			return &undefined{hint: "there is no previous item"}, true, nil
		}
		return l.before, true, nil
	case "last":
		err := l.peek()
		return !l.peeked, true, err
	case "nextitem":
		if err := l.peek(); err != nil {
			return nil, true, err
		}
		if !l.peeked {
			return &undefined{hint: "there is no next item"}, true, nil
		}
		return l.ahead, true, nil
	case "length", "revindex", "revindex0":
		n, err := l.length()
		switch name {
		case "revindex":
			n -= l.index0
		case "revindex0":
			n -= l.index0 + 1
		}
		return int64(n), true, err
	case "cycle":
		return &function{name, l.cycle}, true, nil
	case "changed":
		return &function{name, l.hasChanged}, true, nil
	}
	return nil, false, nil
}

func (l *loop) cycle(m *machine, a args) (value.Value, error) {
	if len(a.pos) == 0 {
		return nil, typeErrorf("no items for cycling given")
	}
	return a.pos[l.index0%len(a.pos)], nil
}

func (l *loop) hasChanged(m *machine, a args) (value.Value, error) {
	if l.asked {
		same, err := m.equalItems(l.changed, a.pos)
		if err != nil || same {
			return false, err
		}
	}
	l.asked, l.changed = true, a.pos
	return true, nil
}

// recurse runs the body of a recursive loop over other items: loop(children).
func (l *loop) recurse(m *machine, a args) (value.Value, error) {
	if !l.node.Recursive {
		return nil, typeErrorf("The loop must have the 'recursive' marker to be called recursively.")
	}
	p, err := a.bind("loop", "iterable")
	if err != nil {
		return nil, err
	}
	return m.capture(func() error {
		_, err := m.runLoop(l.node, p[0], l.scope, l.depth0+1)
		return err
	})
}
