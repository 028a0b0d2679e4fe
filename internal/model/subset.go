package model

import "fmt"

// Subset returns m without all layers but some: a model that drafts for m, with
// its weights and its cache, in less time (Draft & Verify, 2309.08168). layers
// are their numbers in order.
func Subset(m Model, layers []int) (Model, error) {
	all := m.Layers()
	s := &subset{Model: m}
	before := -1
	for _, i := range layers {
		if i <= before || i >= len(all) {
			return nil, fmt.Errorf("layers %v: expected numbers in ascending order, 0 to %d", layers, len(all)-1)
		}
		s.layers = append(s.layers, all[i])
		before = i
	}
	if len(s.layers) == 0 {
		return nil, fmt.Errorf("no layers: expected some of 0 to %d", len(all)-1)
	}
	return s, nil
}

type subset struct {
	Model
	layers []Layer
}

func (s *subset) Layers() []Layer { return s.layers }
