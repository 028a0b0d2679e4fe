package bench

import "github.com/foretoken/foretoken/internal/engine"

// traffic is what a decode step reads, in bytes.
type traffic struct {
	weights func(rows int) int64 // as prepared for products, once for all rows
	token   int64                // of the cache, of one token in all layers
	windows []int                // [layers], positions that the layer sees; 0: all
}

func trafficOf(e *engine.Engine) traffic {
	config := e.Config()
	t := traffic{
		weights: e.WeightBytes,
		token:   int64(e.CacheBytesPerToken()),
		windows: make([]int, config.Layers),
	}
	for i := range t.windows {
		if config.Sliding != nil && config.Sliding[i] {
			t.windows[i] = config.Window
		}
	}
	return t
}

// cache is what is read for a row after context tokens.
func (t traffic) cache(context int) int64 {
	var positions int64 // of all layers
	for _, w := range t.windows {
		seen := context
		if w > 0 {
			seen = min(seen, w)
		}
		positions += int64(seen)
	}
	return positions * t.token / int64(len(t.windows))
}
