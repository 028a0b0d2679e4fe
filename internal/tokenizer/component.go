package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"
)

const maxSteps = 32 // of a Sequence, all levels together; chameleon has 7

// component is a part of tokenizer.json: normalizer, pre-tokenizer, post-processor or decoder. It
// holds the fields of all types.
type component struct {
	Type string `json:"type"`

	Normalizers   []json.RawMessage `json:"normalizers"` // raw: a file may list a million of them
	Pretokenizers []json.RawMessage `json:"pretokenizers"`
	Processors    []json.RawMessage `json:"processors"`
	Decoders      []json.RawMessage `json:"decoders"`

	Pattern     *pattern `json:"pattern"`
	Content     string   `json:"content"`
	Prepend     string   `json:"prepend"`
	StripLeft   *bool    `json:"strip_left"`
	StripRight  *bool    `json:"strip_right"`
	CharsMap    string   `json:"precompiled_charsmap"`
	Behavior    string   `json:"behavior"`
	Invert      bool     `json:"invert"`
	Individual  bool     `json:"individual_digits"`
	Delimiter   string   `json:"delimiter"`
	Length      int      `json:"length"`
	UseRegex    *bool    `json:"use_regex"`
	PrefixSpace *bool    `json:"add_prefix_space"`
	Replacement string   `json:"replacement"`
	Scheme      string   `json:"prepend_scheme"`
	Split       *bool    `json:"split"`
	Start       int      `json:"start"`
	Stop        int      `json:"stop"`

	Single        []templateItem           `json:"single"`
	SpecialTokens map[string]templateToken `json:"special_tokens"`
	Sep           *tokenPair               `json:"sep"`
	Cls           *tokenPair               `json:"cls"`
}

type pattern struct {
	String *string
	Regex  *string
}

func orTrue(b *bool) bool { return b == nil || *b }

// parseSteps reads a component and flattens nested Sequences to their steps in order. Null or
// absent means no steps.
func parseSteps(raw []byte) ([]component, error) {
	var out []component
	var flatten func(raw []byte, depth int) error
	flatten = func(raw []byte, depth int) error {
		var c component
		if err := json.Unmarshal(raw, &c); err != nil {
			return err
		}
		if c.Type != "Sequence" {
			if out = append(out, c); len(out) > maxSteps {
				return fmt.Errorf("more than %d steps", maxSteps)
			}
			return nil
		}
		children := slices.Concat(c.Normalizers, c.Pretokenizers, c.Processors, c.Decoders) // the kinds do not mix
		if depth == maxSteps || len(children) > maxSteps {
			return fmt.Errorf("more than %d steps", maxSteps)
		}
		for _, child := range children {
			if err := flatten(child, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	err := flatten(raw, 0)
	return out, err
}
