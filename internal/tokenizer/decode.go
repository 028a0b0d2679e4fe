package tokenizer

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// decoder turns token texts into text. Whatever its steps, a token contributes fixed bytes wherever
// it stands, but for what is removed at the start of a sequence and for what separates tokens; this
// is what makes streaming and Tokenizer.Bytes possible.
type decoder struct {
	rewrites  []func(string) string // of each token's text, in order
	alphabet  bool                  // texts are in the byte alphabet
	byteToken bool                  // <0xXX> is a byte
	rawAdded  bool                  // added tokens contribute their own text

	separator string // between tokens: a space where a file has no decoder

	// Of the start of the sequence:
	dropFirst string // this character vanishes from the first token (Metaspace)
	strip     rune   // up to stripMax of this character vanish from the text
	stripMax  int
}

// newDecoder compiles the decoder of a tokenizer.json.
func newDecoder(steps []component) (*decoder, error) {
	d := &decoder{}
	if len(steps) == 0 {
		d.separator = " "
		return d, nil
	}
	fused := false // tokens have been joined: later steps see the whole text
	for i := range steps {
		c := &steps[i]
		if fused && c.Type != "Strip" && c.Type != "Fuse" || d.byteToken && c.Type == "Replace" {
			return nil, fmt.Errorf("type %q after the tokens are joined is not supported", abbreviate(c.Type))
		}
		switch c.Type {
		case "ByteLevel":
			d.alphabet, fused = true, true
		case "ByteFallback":
			d.byteToken = true
		case "Fuse":
			fused = true
		case "Replace":
			if c.Pattern == nil || c.Pattern.String == nil || *c.Pattern.String == "" {
				return nil, errors.New("Replace: the pattern must be a String") // a Regex could fail, and Decode cannot
			}
			old, content := *c.Pattern.String, c.Content
			d.rewrites = append(d.rewrites, func(s string) string { return strings.ReplaceAll(s, old, content) })
		case "Metaspace":
			if err := d.metaspace(c); err != nil {
				return nil, err
			}
		case "Strip":
			if err := d.stripStep(c, fused); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("type %q is not supported", abbreviate(c.Type))
		}
	}
	return d, nil
}

func (d *decoder) metaspace(c *component) error {
	mark := c.Replacement
	if mark == "" {
		mark = "▁"
	}
	scheme, err := c.prependScheme()
	if err != nil {
		return err
	}
	if scheme != "never" {
		d.dropFirst = mark
	}
	d.rewrites = append(d.rewrites, func(s string) string { return strings.ReplaceAll(s, mark, " ") })
	return nil
}

func (d *decoder) stripStep(c *component, fused bool) error {
	r, n := utf8.DecodeRuneInString(c.Content)
	if n == 0 || n != len(c.Content) || c.Start < 0 || c.Stop < 0 {
		return errors.New("Strip: content must be one character, start and stop not negative")
	}
	if !fused {
		d.rewrites = append(d.rewrites, func(s string) string {
			s = trimUpTo(s, r, c.Start)
			for range c.Stop {
				s = strings.TrimSuffix(s, c.Content)
			}
			return s
		})
		return nil
	}
	if c.Stop > 0 {
		return errors.New("Strip: a stop above 0 after the tokens are joined is not supported")
	}
	if d.stripMax > 0 && d.strip != r {
		return errors.New("Strip: two different contents after the tokens are joined are not supported")
	}
	d.strip, d.stripMax = r, d.stripMax+c.Start
	return nil
}

func trimUpTo(s string, r rune, most int) string {
	for ; most > 0; most-- {
		rest, ok := strings.CutPrefix(s, string(r))
		if !ok {
			break
		}
		s = rest
	}
	return s
}

// contribution appends what a token adds to decoded text to dst. first says that it is the first of
// the sequence.
func (d *decoder) contribution(dst []byte, text string, added, first bool) []byte {
	if added && d.rawAdded {
		return append(dst, text...)
	}
	if d.byteToken {
		if b, ok := byteTokenValue(text); ok {
			return append(dst, b)
		}
	}
	if first && d.dropFirst != "" {
		text = strings.ReplaceAll(text, d.dropFirst, "")
	}
	for _, rewrite := range d.rewrites {
		text = rewrite(text)
	}
	if d.alphabet {
		return appendFromByteAlphabet(dst, text)
	}
	return append(dst, text...)
}
