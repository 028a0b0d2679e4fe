package tokenizer

import (
	"errors"
	"fmt"
)

// postProcessor holds what is put around the ids of a text.
type postProcessor struct {
	prefix, suffix []int32
	template       bool // the file says so, be it nothing
}

const maxAffix = 64 // tokens before and after a text

type templateItem struct {
	SpecialToken *struct {
		ID string `json:"id"`
	}
	Sequence *struct {
		ID string `json:"id"`
	}
}

type templateToken struct {
	IDs []int32 `json:"ids"`
}

// tokenPair is ["text", id].
type tokenPair [2]any

func newPostProcessor(steps []component, v *vocab) (postProcessor, error) {
	var p postProcessor
	for i := range steps {
		c := &steps[i]
		var before, after []int32
		var err error
		switch c.Type {
		case "ByteLevel": // concerns offsets only
			continue
		case "TemplateProcessing":
			before, after, err = c.template()
		case "BertProcessing", "RobertaProcessing":
			before, after, err = c.clsSep()
		default:
			err = fmt.Errorf("type %q is not supported", abbreviate(c.Type))
		}
		if err != nil {
			return p, err
		}
		p.prefix = append(before, p.prefix...)
		p.suffix = append(p.suffix, after...)
		p.template = true
	}
	if len(p.prefix) > maxAffix || len(p.suffix) > maxAffix {
		return p, fmt.Errorf("more than %d tokens around a text", maxAffix)
	}
	for _, ids := range [][]int32{p.prefix, p.suffix} {
		for _, id := range ids {
			if !v.has(id) {
				return p, fmt.Errorf("token %d is not in the vocabulary", id)
			}
		}
	}
	return p, nil
}

// template reads the parts before and after the text. The form for pairs of texts is for
// classifiers and of no use here.
func (c *component) template() (before, after []int32, err error) {
	seen := false
	for _, item := range c.Single {
		switch {
		case item.SpecialToken != nil:
			tok, ok := c.SpecialTokens[item.SpecialToken.ID]
			if !ok {
				return nil, nil, fmt.Errorf("TemplateProcessing: special token %q is not defined", abbreviate(item.SpecialToken.ID))
			}
			if len(before)+len(after)+len(tok.IDs) > 2*maxAffix {
				return nil, nil, fmt.Errorf("TemplateProcessing: more than %d tokens", 2*maxAffix)
			}
			if seen {
				after = append(after, tok.IDs...)
			} else {
				before = append(before, tok.IDs...)
			}
		case item.Sequence != nil && item.Sequence.ID == "A" && !seen:
			seen = true
		default:
			return nil, nil, errors.New("TemplateProcessing: single must have special tokens and one sequence A")
		}
	}
	if !seen {
		return nil, nil, errors.New("TemplateProcessing: single has no sequence A")
	}
	return before, after, nil
}

func (c *component) clsSep() (before, after []int32, err error) {
	for _, side := range []struct {
		pair *tokenPair
		ids  *[]int32
	}{{c.Cls, &before}, {c.Sep, &after}} {
		if side.pair == nil {
			return nil, nil, fmt.Errorf("%s: cls or sep is missing", c.Type)
		}
		id, ok := side.pair[1].(float64)
		if !ok || id < 0 || id >= 1<<31 || id != float64(int32(id)) {
			return nil, nil, fmt.Errorf("%s: cls and sep must be [text, id]", c.Type)
		}
		*side.ids = append(*side.ids, int32(id))
	}
	return before, after, nil
}
