package model

import (
	"errors"
	"math"

	"github.com/foretoken/foretoken/internal/model/attention"
)

// latent gives all heads the shape of latent attention.
func (c *Config) latent(m attention.MLAConfig) error {
	if err := m.Validate(); err != nil {
		return err
	}
	c.MLA, c.KVHeads, c.HeadDim = &m, c.Heads, m.HeadDim()
	c.QueryScale = 1 / math.Sqrt(float64(m.HeadDim()))
	c.Rope.Dim = m.RopeDim
	return nil
}

// sharpen multiplies q·k by (1 + m·ln factor)², where yarn stretches contexts by
// factor: DeepSeek's own way to do what yarn's factor on cosines and sines does,
// which is 1 then. m is a tenth of mscale_all_dim.
func (c *Config) sharpen(m float64) {
	if s := c.Rope.Scaling; s.Type == "yarn" && s.Factor > 1 {
		magnitude := 1 + m*math.Log(s.Factor)
		c.QueryScale *= magnitude * magnitude
	}
}

// index gives all layers an indexer.
func (c *Config) index(x attention.IndexerConfig) error {
	if c.MLA.QueryRank == 0 {
		return errors.New("q_lora_rank is null, expected a positive number: the queries of indexers are made of low-rank ones")
	}
	c.Indexer = &x
	return x.Validate(c.MLA.RopeDim)
}
