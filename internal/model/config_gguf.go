package model

import (
	"fmt"
	"math"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// ggufConfig reads the metadata of one architecture, whose name prefixes
// every key. It remembers the first key whose value is of the wrong kind.
type ggufConfig struct {
	*checkpoint.Metadata
	source *checkpoint.Checkpoint
	arch   string
	err    error
}

// size reads a positive number; absent is what it is without the key, 0: the
// key must be there.
func (m *ggufConfig) size(key string, absent int) int {
	n := m.intOr(key, absent)
	switch {
	case n > 0 || m.err != nil:
	case m.Get(m.arch+"."+key) == nil:
		m.err = fmt.Errorf("key %s.%s is missing", m.arch, key)
	default:
		m.err = fmt.Errorf("key %s.%s is %d, expected a positive number", m.arch, key, n)
	}
	return max(n, 1) // callers divide by it before they look at err
}

func (m *ggufConfig) intOr(key string, absent int) int {
	key = m.arch + "." + key
	v, ok := m.Int(key)
	if ok && v >= math.MinInt32 && v <= math.MaxInt32 {
		return int(v)
	}
	m.refuse(key, "a 32-bit integer")
	return absent
}

func (m *ggufConfig) floatOr(key string, absent float64) float64 {
	key = m.arch + "." + key
	if v, ok := m.Float(key); ok {
		return v
	}
	if v, ok := m.Int(key); ok {
		return float64(v)
	}
	m.refuse(key, "a number")
	return absent
}

func (m *ggufConfig) textOr(key, absent string) string {
	key = m.arch + "." + key
	if v, ok := m.String(key); ok {
		return v
	}
	m.refuse(key, "text")
	return absent
}

func (m *ggufConfig) boolOr(key string, absent bool) bool {
	key = m.arch + "." + key
	if v, ok := m.Bool(key); ok {
		return v
	}
	m.refuse(key, "true or false")
	return absent
}

// ints reads a list of integers, nil without the key.
func (m *ggufConfig) ints(key string) []int32 {
	key = m.arch + "." + key
	list, ok := m.Ints(key)
	if !ok {
		m.refuse(key, "a list of 32-bit integers")
	}
	return list
}

// floats reads a list of numbers, nil without the key.
func (m *ggufConfig) floats(key string) []float32 {
	key = m.arch + "." + key
	list, ok := m.Floats(key)
	if !ok {
		m.refuse(key, "a list of numbers")
	}
	return list
}

// fail notes an error, if it is the first.
func (m *ggufConfig) fail(format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf(format, args...)
	}
}

// token reads the id of a special token; -1: there is none.
func (m *ggufConfig) token(key string) int32 {
	v, ok := m.Int(key)
	if ok && v >= 0 && v <= math.MaxInt32 {
		return int32(v)
	}
	m.refuse(key, "a token id")
	return -1
}

// refuse notes that key, which could not be read, has a value after all.
func (m *ggufConfig) refuse(key, want string) {
	if v := m.Get(key); v != nil && m.err == nil {
		m.err = fmt.Errorf("key %s is %.40q of type %T, expected %s", key, fmt.Sprint(v), v, want)
	}
}

// Interleaved reports whether GGUF files of an architecture have the rows of
// query and key projections permuted so that rotary pairs are neighbours.
func Interleaved(arch string) bool { return arch == "llama" || arch == "smollm3" }

func ggufToConfig(metadata *checkpoint.Metadata, source *checkpoint.Checkpoint) (*Config, error) {
	m := &ggufConfig{Metadata: metadata, source: source, arch: metadata.Arch()}
	f, err := findFamily(m.arch)
	if err != nil {
		return nil, err
	}
	if n := m.intOr("expert_count", 0); n > 0 && !f.experts {
		return nil, fmt.Errorf("key %s.expert_count is %d: mixtures of experts are not supported for %s", m.arch, n, m.arch)
	}
	c := &Config{
		Architecture: m.arch,
		Hidden:       m.size("embedding_length", 0),
		Layers:       m.size("block_count", 0),
		Heads:        m.size("attention.head_count", 0),
		Intermediate: m.size("feed_forward_length", 0),
		Context:      m.size("context_length", 0),
		NormEps:      m.floatOr("attention.layer_norm_rms_epsilon", 1e-5),
		BOS:          m.token("tokenizer.ggml.bos_token_id"),
	}
	if id := m.token("tokenizer.ggml.eos_token_id"); id >= 0 {
		c.EOS = []int32{id}
	}
	if m.err != nil {
		return nil, m.err
	}
	if err := c.checkCounts(); err != nil {
		return nil, err
	}
	heads := (*ggufConfig).heads
	if f.headsGGUF != nil {
		heads = f.headsGGUF
	}
	if err := heads(m, c); err != nil {
		return nil, err
	}
	embedding, err := source.Matrix("model.embed_tokens.weight")
	if err != nil {
		return nil, err
	}
	c.Vocab = embedding.Rows
	_, untied := source.Info("lm_head.weight")
	c.TieEmbeddings = !untied
	if err := m.rope(c); err != nil {
		return nil, err
	}
	if f.adaptGGUF != nil {
		f.adaptGGUF(c, m)
	}
	if m.err != nil {
		return nil, m.err
	}
	return c, nil
}

// heads reads the shape of grouped-query attention. All of a head is rotated.
func (m *ggufConfig) heads(c *Config) error {
	c.KVHeads = m.size("attention.head_count_kv", c.Heads)
	c.HeadDim = m.size("attention.key_length", c.Hidden/c.Heads)
	if v := m.intOr("attention.value_length", c.HeadDim); v != c.HeadDim {
		return fmt.Errorf("key %s.attention.value_length is %d, expected the key_length %d", m.arch, v, c.HeadDim)
	}
	if d := m.intOr("rope.dimension_count", c.HeadDim); d != c.HeadDim {
		return fmt.Errorf("key %s.rope.dimension_count is %d, expected the head width %d", m.arch, d, c.HeadDim)
	}
	c.Rope.Dim, c.QueryScale = c.HeadDim, 1/math.Sqrt(float64(c.HeadDim))
	return nil
}

// rope reads the angles; heads have said how many there are.
func (m *ggufConfig) rope(c *Config) error {
	c.Rope.Theta, c.Rope.Interleaved = m.floatOr("rope.freq_base", 10000), Interleaved(m.arch)
	factor := m.floatOr("rope.scaling.factor", m.floatOr("rope.scale_linear", 1))
	if factor == 0 {
		factor = 1 // as good as absent
	}
	kind := m.textOr("rope.scaling.type", "")
	if kind == "" && factor != 1 {
		kind = "linear"
	}
	// On top of yarn's own; no other kind of scaling here has one.
	attention := m.floatOr("rope.scaling.attn_factor", 1)
	if kind != "yarn" && attention != 1 {
		return fmt.Errorf("key %s.rope.scaling.attn_factor is %v, expected 1 without yarn", m.arch, attention)
	}
	if kind == "" || kind == "none" {
		return nil
	}
	c.Rope.Scaling = nn.RopeScaling{
		Type:     kind,
		Factor:   factor,
		Original: m.floatOr("rope.scaling.original_context_length", float64(c.Context)),
		BetaFast: m.floatOr("rope.scaling.yarn_beta_fast", 32),
		BetaSlow: m.floatOr("rope.scaling.yarn_beta_slow", 1),
	}
	if attention != 1 {
		c.Rope.Scaling.Attention = attention * (0.1*math.Log(factor) + 1)
	}
	return nil
}
