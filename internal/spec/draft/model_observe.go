package draft

import "fmt"

// Observe implements Drafter: drafts that were committed stay computed, and rows
// of prompts are computed with the target's, where the model has not fallen
// behind.
func (m *Model) Observe(_ Target, rows []Observed) error {
	if m.o.Shared {
		return nil
	}
	m.step.Reset()
	m.seen = m.seen[:0]
	for _, o := range rows {
		m.settle(o.Sequence)
		from, to := m.o.Cache.Marked(o.Table), min(o.From+len(o.Rows), o.Prompt)
		if from < o.From || from >= to {
			continue
		}
		m.tokens = m.o.Vocab.tokens(m.tokens[:0], o.Tokens[from:to])
		if n := len(m.tokens); n > 0 {
			m.step.Add(o.Table, from, m.tokens)
			m.seen = append(m.seen, seen{o.Table, from + n})
		}
	}
	if m.step.Rows() == 0 {
		return nil
	}
	if err := m.runner.Run(&m.step, nil); err != nil {
		return fmt.Errorf("draft model: %w", err)
	}
	for _, s := range m.seen {
		m.o.Cache.Mark(s.table, s.to)
	}
	return nil
}

// settle marks what was computed of drafts that are now committed, of the
// sequence's own pages: those that are shared since may be others.
func (m *Model) settle(s *Sequence) {
	r := m.ran[s.ID]
	if r == nil || r.Len() == 0 {
		return
	}
	base, cache := r.anchor+1, m.o.Cache
	m.path = m.path[:0]
	if cache.Marked(s.Table) == base && cache.Shared(s.Table) <= base {
		for row := 0; base+len(m.path) < len(s.Tokens)-1; {
			node := r.Child(row, s.Tokens[base+len(m.path)])
			if node < 0 {
				break
			}
			m.path = append(m.path, int32(node))
			row = node + 1
		}
		// Of slots behind those that the sequence still has nothing can be moved.
		if m.runner.Keep(s.Table, base, m.path) == nil {
			cache.Mark(s.Table, base+len(m.path))
		}
	}
	r.Reset()
}
