package tokenizer

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A piece is a stretch of text that no token crosses.
type piece struct {
	text  string
	first bool // it begins the whole text, before which there is no added token either
}

// A splitter is one step of pre-tokenization. It emits what it makes of p in order, and stops at
// the first error that emit returns.
type splitter func(p piece, emit func(piece) error) error

// gpt2Pattern is the split built into ByteLevel.
const gpt2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// newPreTokenizer returns the steps. bytes reports that the last of them maps to the byte alphabet:
// it is left out then, for the model to take its symbols from the bytes directly.
func newPreTokenizer(steps []component) (all []splitter, bytes bool, err error) {
	for i := range steps {
		c := &steps[i]
		if c.Type == "ByteLevel" {
			split, err := c.byteLevel(i < len(steps)-1)
			if err != nil {
				return nil, false, err
			}
			all = append(all, split...)
			bytes = i == len(steps)-1
			continue
		}
		s, err := c.splitter()
		if err != nil {
			return nil, false, err
		}
		all = append(all, s)
	}
	return all, bytes, nil
}

func (c *component) splitter() (splitter, error) {
	switch c.Type {
	case "Split":
		return c.splitStep()
	case "Digits":
		if c.Individual {
			return splitRunes(isNumeric, isolated), nil
		}
		return splitRunes(isNumeric, contiguous), nil
	case "Punctuation":
		b, err := parseBehavior(c.Behavior, isolated)
		return splitRunes(isPunctuation, b), err
	case "WhitespaceSplit":
		return splitRunes(isSpace, removed), nil
	case "Whitespace":
		return words, nil
	case "CharDelimiterSplit":
		r, n := utf8.DecodeRuneInString(c.Delimiter)
		if n == 0 || n != len(c.Delimiter) {
			return nil, errors.New("CharDelimiterSplit: delimiter must be one character")
		}
		return splitRunes(func(x rune) bool { return x == r }, removed), nil
	case "FixedLength":
		if c.Length < 1 {
			return nil, errors.New("FixedLength: length must be positive")
		}
		return fixedLength(c.Length), nil
	case "Metaspace":
		return c.metaspace()
	}
	return nil, fmt.Errorf("type %q is not supported", abbreviate(c.Type))
}

func (c *component) byteLevel(mapped bool) ([]splitter, error) {
	var steps []splitter
	if orTrue(c.PrefixSpace) {
		steps = append(steps, func(p piece, emit func(piece) error) error {
			if !strings.HasPrefix(p.text, " ") {
				p.text = " " + p.text
			}
			return emit(p)
		})
	}
	if orTrue(c.UseRegex) {
		re, err := compileRegex(gpt2Pattern)
		if err != nil {
			return nil, err
		}
		steps = append(steps, isolate(re))
	}
	if mapped {
		steps = append(steps, func(p piece, emit func(piece) error) error {
			return emit(piece{toByteAlphabet(p.text), p.first})
		})
	}
	return steps, nil
}

func (c *component) splitStep() (splitter, error) {
	b, err := parseBehavior(c.Behavior, -1)
	if err != nil {
		return nil, fmt.Errorf("Split: %w", err)
	}
	switch {
	case c.Pattern == nil || (c.Pattern.String == nil) == (c.Pattern.Regex == nil):
		return nil, errors.New("Split: pattern must be a String or a Regex")
	case c.Pattern.String != nil:
		return splitBy(literalMatcher(*c.Pattern.String), b, c.Invert), nil
	}
	re, err := newMatcher(*c.Pattern.Regex)
	if err != nil {
		return nil, fmt.Errorf("Split: %w", err)
	}
	return splitBy(re, b, c.Invert), nil
}

func (c *component) metaspace() (splitter, error) {
	mark := c.Replacement
	if mark == "" {
		mark = "▁"
	}
	if utf8.RuneCountInString(mark) != 1 {
		return nil, errors.New("Metaspace: replacement must be one character")
	}
	scheme, err := c.prependScheme()
	if err != nil {
		return nil, err
	}
	cut := splitBy(literalMatcher(mark), mergedWithNext, false)
	return func(p piece, emit func(piece) error) error {
		text := strings.ReplaceAll(p.text, " ", mark)
		if scheme == "always" || scheme == "first" && p.first {
			if !strings.HasPrefix(text, mark) {
				text = mark + text
			}
		}
		p.text = text
		if !orTrue(c.Split) {
			return emit(p)
		}
		return cut(p, emit)
	}, nil
}

// prependScheme of Metaspace; old files say add_prefix_space instead.
func (c *component) prependScheme() (string, error) {
	switch {
	case c.Scheme == "always" || c.Scheme == "first" || c.Scheme == "never":
		return c.Scheme, nil
	case c.Scheme != "":
		return "", fmt.Errorf("Metaspace: prepend_scheme %q is unknown", abbreviate(c.Scheme))
	case orTrue(c.PrefixSpace):
		return "always", nil
	}
	return "never", nil
}

// words keeps the matches of \w+|[^\w\s]+.
func words(p piece, emit func(piece) error) error {
	const (
		space = iota
		word
		other
	)
	from, was := 0, space
	for i, r := range p.text {
		kind := other
		switch {
		case isWord(r):
			kind = word
		case isSpace(r):
			kind = space
		}
		if kind == was {
			continue
		}
		if was != space {
			if err := emit(piece{p.text[from:i], p.first && from == 0}); err != nil {
				return err
			}
		}
		from, was = i, kind
	}
	if was == space {
		return nil
	}
	return emit(piece{p.text[from:], p.first && from == 0})
}

func fixedLength(n int) splitter {
	return func(p piece, emit func(piece) error) error {
		count, from := 0, 0
		for i := range p.text {
			if count == n {
				if err := emit(piece{p.text[from:i], p.first && from == 0}); err != nil {
					return err
				}
				count, from = 0, i
			}
			count++
		}
		return emit(piece{p.text[from:], p.first && from == 0})
	}
}
