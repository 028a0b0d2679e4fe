package bench

import "github.com/foretoken/foretoken/internal/engine"

// traffic is what a decode step reads, in bytes.
type traffic struct {
	weights  func(rows int) int64 // as prepared for products, once for all rows
	perLayer int64                // of the cache, of one token
	windows  []int                // [layers], positions that the layer sees; 0: all
}

func trafficOf(e *engine.Engine) traffic {
	config := e.Config()
	t := traffic{
		weights:  e.WeightBytes,
		perLayer: int64(e.CacheBytesPerToken() / config.Layers),
		windows:  make([]int, config.Layers),
	}
	for i := range t.windows {
		if config.Sliding != nil && config.Sliding[i] {
			t.windows[i] = config.Window
		}
	}
	return t
}

// cache is what is read for a row after context tokens.
func (t traffic) cache(context int) (bytes int64) {
	for _, w := range t.windows {
		seen := context
		if w > 0 {
			seen = min(seen, w)
		}
		bytes += int64(seen) * t.perLayer
	}
	return bytes
}
