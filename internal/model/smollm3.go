package model

import (
	"cmp"
	"fmt"
)

// smollm3 is SmolLM3: Llama in which every fourth layer does not rotate
// queries and keys (NoPE, Yang et al. 2025, "Rope to Nope").
var smollm3 = family{layer: smollm3Layer, defaults: smollm3Defaults, adapt: smollm3Config, adaptGGUF: smollm3GGUF}

func smollm3Defaults(hf *hfConfig) error {
	hf.TieWordEmbeddings = cmp.Or(hf.TieWordEmbeddings, new(true))
	return nil
}

func smollm3Layer(b *builder, i int) Layer {
	a := b.attention(i)
	if b.NoRope[i] {
		a.Rope = nil
	}
	return b.preNorm(i, a, b.mlp(i))
}

// smollm3Config reads no_rope_layers, whose flags say 1 where a layer does
// rotate. A window, which no published model turns on, is for the others.
func smollm3Config(c *Config, hf *hfConfig) error {
	if hf.NoRopeLayers == nil {
		interval := or(hf.NoRopeLayerInterval, 4)
		if interval < 1 {
			return fmt.Errorf("no_rope_layer_interval is %d, expected a positive number", interval)
		}
		c.skipRope(interval)
	} else {
		if len(hf.NoRopeLayers) != c.Layers {
			return fmt.Errorf("no_rope_layers has %d flags, expected %d", len(hf.NoRopeLayers), c.Layers)
		}
		for _, rotates := range hf.NoRopeLayers {
			c.NoRope = append(c.NoRope, rotates == 0)
		}
	}
	if !hf.UseSlidingWindow || hf.SlidingWindow == nil {
		return nil
	}
	return hf.slide(c, *hf.SlidingWindow, func(i int) bool { return c.NoRope[i] })
}

func smollm3GGUF(c *Config, _ *ggufConfig) { c.skipRope(4) }

// skipRope marks the last of every interval layers.
func (c *Config) skipRope(interval int) {
	skip := everyNth(interval)
	for i := range c.Layers {
		c.NoRope = append(c.NoRope, skip(i))
	}
}
