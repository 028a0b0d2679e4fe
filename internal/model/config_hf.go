package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// hfConfig is config.json. Pointers tell an absent field from a zero.
type hfConfig struct {
	ModelType string `json:"model_type"`

	HiddenSize            *int            `json:"hidden_size"`
	NumHiddenLayers       *int            `json:"num_hidden_layers"`
	NumAttentionHeads     *int            `json:"num_attention_heads"`
	NumKeyValueHeads      *int            `json:"num_key_value_heads"`
	HeadDim               *int            `json:"head_dim"`
	IntermediateSize      *int            `json:"intermediate_size"`
	VocabSize             *int            `json:"vocab_size"`
	MaxPositionEmbeddings *int            `json:"max_position_embeddings"`
	RMSNormEps            *float64        `json:"rms_norm_eps"`
	TieWordEmbeddings     *bool           `json:"tie_word_embeddings"`
	HiddenAct             string          `json:"hidden_act"`
	HiddenActivation      string          `json:"hidden_activation"`
	BOSTokenID            json.RawMessage `json:"bos_token_id"`
	EOSTokenID            json.RawMessage `json:"eos_token_id"`

	RopeTheta         *float64        `json:"rope_theta"`
	RopeScaling       *hfRope         `json:"rope_scaling"`
	RopeParameters    json.RawMessage `json:"rope_parameters"`
	RopeLocalBaseFreq *float64        `json:"rope_local_base_freq"`
	PartialRotary     *float64        `json:"partial_rotary_factor"`

	SlidingWindow         *int     `json:"sliding_window"`
	SlidingWindowPattern  *int     `json:"sliding_window_pattern"`
	SlidingWindowPattern2 *int     `json:"_sliding_window_pattern"`
	UseSlidingWindow      bool     `json:"use_sliding_window"`
	MaxWindowLayers       *int     `json:"max_window_layers"`
	LayerTypes            []string `json:"layer_types"`
	NoRopeLayers          []int    `json:"no_rope_layers"`
	NoRopeLayerInterval   *int     `json:"no_rope_layer_interval"`

	QueryPreAttnScalar    *float64 `json:"query_pre_attn_scalar"`
	AttnLogitSoftcapping  *float64 `json:"attn_logit_softcapping"`
	FinalLogitSoftcapping *float64 `json:"final_logit_softcapping"`

	UseBidirectionalAttention bool `json:"use_bidirectional_attention"`

	field  string // where the configuration stands in the file; "": it is the file
	source json.RawMessage
}

// read reads the fields that only some families have.
func (hf *hfConfig) read(fields any) error { return unmarshal(hf.field, hf.source, fields) }

// hfRope is rope_scaling, rope_parameters, or an entry of it.
type hfRope struct {
	Type            string   `json:"rope_type"`
	OldType         string   `json:"type"`
	Theta           *float64 `json:"rope_theta"`
	Factor          *float64 `json:"factor"`
	Original        *float64 `json:"original_max_position_embeddings"`
	LowFreqFactor   *float64 `json:"low_freq_factor"`
	HighFreqFactor  *float64 `json:"high_freq_factor"`
	BetaFast        *float64 `json:"beta_fast"`
	BetaSlow        *float64 `json:"beta_slow"`
	AttentionFactor *float64 `json:"attention_factor"`
	MScale          *float64 `json:"mscale"`
	MScaleAllDim    *float64 `json:"mscale_all_dim"`
	PartialRotary   *float64 `json:"partial_rotary_factor"`
	Truncate        *bool    `json:"truncate"`
}

// hfToConfig reads config.json. Models that hold several parts keep that of
// the language model under text_config.
func hfToConfig(data []byte) (*Config, error) {
	if data == nil {
		return nil, errors.New("the file is missing beside the weights")
	}
	var outer struct {
		ModelType         string          `json:"model_type"`
		TextConfig        json.RawMessage `json:"text_config"`
		TieWordEmbeddings *bool           `json:"tie_word_embeddings"`
		BOSTokenID        json.RawMessage `json:"bos_token_id"`
		EOSTokenID        json.RawMessage `json:"eos_token_id"`
	}
	if err := unmarshal("", data, &outer); err != nil {
		return nil, err
	}
	field, text := "", data
	if !isNull(outer.TextConfig) {
		field, text = "text_config", outer.TextConfig
	}
	// The name first: fields of unknown models may be of any type.
	var inner struct {
		ModelType string `json:"model_type"`
	}
	if err := unmarshal(field, text, &inner); err != nil {
		return nil, err
	}
	f, err := findFamily(cmp.Or(inner.ModelType, outer.ModelType))
	if err != nil {
		return nil, err
	}
	// What the parts share may stand outside.
	hf := hfConfig{
		TieWordEmbeddings: outer.TieWordEmbeddings, BOSTokenID: outer.BOSTokenID, EOSTokenID: outer.EOSTokenID,
		field: field, source: text,
	}
	if err := unmarshal(field, text, &hf); err != nil {
		return nil, err
	}
	hf.ModelType = cmp.Or(inner.ModelType, outer.ModelType)
	c, err := hf.common(f)
	if err != nil {
		return nil, err
	}
	if f.adapt != nil {
		if err := f.adapt(c, &hf); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// common reads the fields that all families have.
func (hf *hfConfig) common(f family) (*Config, error) {
	if f.defaults != nil {
		if err := f.defaults(hf); err != nil {
			return nil, err
		}
	}
	c := &Config{Architecture: hf.ModelType, NormEps: or(hf.RMSNormEps, 1e-6), BOS: -1}
	for _, f := range []struct {
		to   *int
		from *int
		name string
	}{
		{&c.Hidden, hf.HiddenSize, "hidden_size"},
		{&c.Layers, hf.NumHiddenLayers, "num_hidden_layers"},
		{&c.Heads, hf.NumAttentionHeads, "num_attention_heads"},
		{&c.Intermediate, hf.IntermediateSize, "intermediate_size"},
		{&c.Vocab, hf.VocabSize, "vocab_size"},
		{&c.Context, hf.MaxPositionEmbeddings, "max_position_embeddings"},
	} {
		if f.from == nil {
			return nil, fmt.Errorf("%s is missing", f.name)
		}
		*f.to = *f.from
	}
	if err := c.checkCounts(); err != nil {
		return nil, err
	}
	c.KVHeads = or(hf.NumKeyValueHeads, c.Heads)
	c.HeadDim = or(hf.HeadDim, c.Hidden/c.Heads)
	c.QueryScale = 1 / math.Sqrt(float64(c.HeadDim))
	c.TieEmbeddings = or(hf.TieWordEmbeddings, false)
	bos, err := checkpoint.TokenIDs("bos_token_id", hf.BOSTokenID)
	if err != nil {
		return nil, err
	}
	if len(bos) > 0 {
		c.BOS = bos[0]
	}
	if c.EOS, err = checkpoint.TokenIDs("eos_token_id", hf.EOSTokenID); err != nil {
		return nil, err
	}
	act, want := cmp.Or(hf.HiddenActivation, hf.HiddenAct), cmp.Or(f.activation, "silu")
	if act != "" && act != want {
		return nil, fmt.Errorf("hidden_act %.40q is not supported for %s: expected %s", act, hf.ModelType, want)
	}
	return c, hf.rope(c)
}

// rope reads rope_theta with rope_scaling, or rope_parameters, which newer
// files have in their place: one for all layers or, where layers differ, one
// for each type of layer.
func (hf *hfConfig) rope(c *Config) (err error) {
	if or(hf.PartialRotary, 1) != 1 {
		return fmt.Errorf("partial_rotary_factor is %v, expected 1", *hf.PartialRotary)
	}
	theta := or(hf.RopeTheta, 10000)
	if isNull(hf.RopeParameters) {
		c.Rope, err = hf.RopeScaling.config("rope_scaling", c, theta)
		return err
	}
	var byType map[string]json.RawMessage
	if err := unmarshal("rope_parameters", hf.RopeParameters, &byType); err != nil {
		return err
	}
	read := func(field string, data []byte, theta float64) (nn.RopeConfig, error) {
		var r hfRope
		if err := unmarshal(field, data, &r); err != nil {
			return nn.RopeConfig{}, err
		}
		return r.config(field, c, theta)
	}
	full, sliding := byType["full_attention"], byType["sliding_attention"]
	if full == nil && sliding == nil {
		c.Rope, err = read("rope_parameters", hf.RopeParameters, theta)
		return err
	}
	if c.Rope, err = read("rope_parameters.full_attention", full, theta); err != nil || isNull(sliding) {
		return err
	}
	local, err := read("rope_parameters.sliding_attention", sliding, or(hf.RopeLocalBaseFreq, theta))
	c.LocalRope = &local
	return err
}

// config is what r, which may be nil, says; field is where it says so.
func (r *hfRope) config(field string, c *Config, theta float64) (nn.RopeConfig, error) {
	if r == nil {
		return nn.RopeConfig{Theta: theta, Dim: c.HeadDim}, nil
	}
	if or(r.PartialRotary, 1) != 1 {
		return nn.RopeConfig{}, fmt.Errorf("%s.partial_rotary_factor is %v, expected 1", field, *r.PartialRotary)
	}
	if !or(r.Truncate, true) {
		return nn.RopeConfig{}, fmt.Errorf("%s.truncate is false, expected true: yarn's bounds are whole dimensions", field)
	}
	if r.Factor != nil && r.Type == "" && r.OldType == "" {
		return nn.RopeConfig{}, fmt.Errorf("%s.rope_type is missing beside a factor", field)
	}
	if err := r.checkMScale(field); err != nil {
		return nn.RopeConfig{}, err
	}
	return nn.RopeConfig{Theta: or(r.Theta, theta), Dim: c.HeadDim, Scaling: r.scaling(c.Context)}, nil
}

// maxMScale bounds yarn's mscale and mscale_all_dim: published models have 0.707
// and 1.
const maxMScale = 100

func (r *hfRope) checkMScale(field string) error {
	for _, f := range []struct {
		name  string
		value *float64
	}{{"mscale", r.MScale}, {"mscale_all_dim", r.MScaleAllDim}} {
		if v := or(f.value, 0); !(v >= 0 && v <= maxMScale) {
			return fmt.Errorf("%s.%s is %v, expected 0 to %d", field, f.name, v, maxMScale)
		}
	}
	return nil
}

func (r *hfRope) scaling(context int) nn.RopeScaling {
	s := nn.RopeScaling{
		Type:      cmp.Or(r.Type, r.OldType),
		Factor:    or(r.Factor, 0),
		Original:  or(r.Original, float64(context)),
		LowFreq:   or(r.LowFreqFactor, 1),
		HighFreq:  or(r.HighFreqFactor, 4),
		BetaFast:  or(r.BetaFast, 32),
		BetaSlow:  or(r.BetaSlow, 1),
		Attention: or(r.AttentionFactor, 0),
	}
	if s.Type == "" || s.Type == "default" {
		return nn.RopeScaling{}
	}
	if all, m := or(r.MScaleAllDim, 0), or(r.MScale, 0); s.Attention == 0 && all != 0 && m != 0 {
		magnitude := func(scale float64) float64 { return 0.1*scale*math.Log(s.Factor) + 1 }
		s.Attention = magnitude(m) / magnitude(all)
	}
	return s
}

// slide gives a window to the layers that layer_types names or, where the
// file has none, to those that sliding names.
func (hf *hfConfig) slide(c *Config, window int, sliding func(layer int) bool) error {
	if hf.LayerTypes != nil {
		if len(hf.LayerTypes) != c.Layers {
			return fmt.Errorf("layer_types has %d entries, expected %d", len(hf.LayerTypes), c.Layers)
		}
		for _, t := range hf.LayerTypes {
			if t != "sliding_attention" && t != "full_attention" {
				return fmt.Errorf("layer_types: %.40q is not supported: expected sliding_attention or full_attention", t)
			}
		}
		sliding = func(i int) bool { return hf.LayerTypes[i] == "sliding_attention" }
	}
	c.slide(window, sliding)
	return nil
}

// unmarshal is json.Unmarshal with errors in the terms of the file; data is
// the value of field, "" for the whole file.
func unmarshal(field string, data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if mismatch := (*json.UnmarshalTypeError)(nil); errors.As(err, &mismatch) {
		want := "another type"
		switch mismatch.Type.Kind() {
		case reflect.Int:
			want = "an integer"
		case reflect.Float64:
			want = "a number"
		case reflect.String:
			want = "a string"
		case reflect.Bool:
			want = "true or false"
		case reflect.Slice:
			want = "a list"
		case reflect.Struct, reflect.Map:
			want = "an object"
		}
		name := strings.Trim(field+"."+mismatch.Field, ".")
		return fmt.Errorf("%s is a JSON %.40s, expected %s", cmp.Or(name, "the file"), mismatch.Value, want)
	}
	if err != nil && field != "" {
		return fmt.Errorf("%s: %w", field, err)
	}
	return err
}

func isNull(data json.RawMessage) bool { return len(data) == 0 || string(data) == "null" }

// or is *p, or absent if there is none.
func or[T any](p *T, absent T) T {
	if p == nil {
		return absent
	}
	return *p
}
