package model

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/model/attention"
)

// checkRounding reports why Options.RoundCache cannot be honoured.
func (c *Config) checkRounding() error {
	switch {
	case c.V4 != nil:
		if n := c.HeadDim - c.Rope.Dim; n%attention.FP8Block != 0 {
			return fmt.Errorf("head_dim less qk_rope_head_dim is %d, expected blocks of %d to round caches in", n, attention.FP8Block)
		}
		return hadamard(c.V4.IndexDim, attention.FP4Block)
	case c.Indexer != nil:
		return hadamard(c.Indexer.Dim, 1)
	}
	return fmt.Errorf("caches of %s are not rounded: expected DeepSeek V3.2 or V4", c.Architecture)
}

// hadamard reports that index keys of n values cannot be rotated before they are
// rounded in blocks.
func hadamard(n, block int) error {
	if n < block || n&(n-1) != 0 {
		return fmt.Errorf("index_head_dim is %d, expected a power of two from %d on to round caches", n, block)
	}
	return nil
}
