package tokenizer

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// A normalizer rewrites a stretch of text between added tokens. limit is the length beyond which
// the result is an error: replacements in sequence can grow a text exponentially.
type normalizer func(s string, limit int) (string, error)

const (
	normalizeGrowth = 32 // times the text's length; NFKD reaches 11
	normalizeSlack  = 4096
)

var errGrowth = fmt.Errorf("the normalizer makes the text more than %d times as long", normalizeGrowth)

// newNormalizer returns nil if there is nothing to do.
func newNormalizer(steps []component) (normalizer, error) {
	var all []normalizer
	for i := range steps {
		n, err := steps[i].normalizer()
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return chain(all...), nil
}

func chain(all ...normalizer) normalizer {
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return func(s string, limit int) (string, error) {
		for _, n := range all {
			var err error
			if s, err = n(s, limit); err != nil {
				return "", err
			}
			if len(s) > limit {
				return "", errGrowth
			}
		}
		return s, nil
	}
}

func (c *component) normalizer() (normalizer, error) {
	switch c.Type {
	case "NFC", "NFD", "NFKC", "NFKD":
		return plain(normalForms[c.Type].normalize), nil
	case "Lowercase":
		return plain(lowercase), nil
	case "StripAccents":
		return plain(stripAccents), nil
	case "ByteLevel":
		return plain(toByteAlphabet), nil
	case "Strip":
		return plain(func(s string) string {
			if orTrue(c.StripLeft) {
				s = strings.TrimLeftFunc(s, isSpace)
			}
			if orTrue(c.StripRight) {
				s = strings.TrimRightFunc(s, isSpace)
			}
			return s
		}), nil
	case "Prepend":
		return prepend(c.Prepend), nil
	case "Replace":
		return c.replace()
	case "Precompiled":
		blob, err := base64.StdEncoding.DecodeString(c.CharsMap)
		if err != nil {
			return nil, fmt.Errorf("precompiled_charsmap: %w", err)
		}
		m, err := newCharsMap(blob)
		if err != nil {
			return nil, fmt.Errorf("precompiled_charsmap: %w", err)
		}
		return m.normalize, nil
	}
	return nil, fmt.Errorf("type %q is not supported", abbreviate(c.Type))
}

// plain adapts a function that cannot fail and grows the text by a bounded factor.
func plain(f func(string) string) normalizer {
	return func(s string, _ int) (string, error) { return f(s), nil }
}

func prepend(prefix string) normalizer {
	return plain(func(s string) string {
		if s == "" {
			return s
		}
		return prefix + s
	})
}

func (c *component) replace() (normalizer, error) {
	if c.Pattern == nil || (c.Pattern.String == nil) == (c.Pattern.Regex == nil) {
		return nil, errors.New("Replace: pattern must be a String or a Regex")
	}
	if literal := c.Pattern.String; literal != nil {
		if *literal == "" {
			return nil, errors.New("Replace: the pattern is empty")
		}
		return replaceLiteral(*literal, c.Content), nil
	}
	re, err := compileRegex(*c.Pattern.Regex)
	if err != nil {
		return nil, fmt.Errorf("Replace: %w", err)
	}
	content := c.Content
	return func(s string, limit int) (string, error) {
		var out []byte
		from := 0
		err := re.matches(s, func(start, end int) error {
			if out = append(append(out, s[from:start]...), content...); len(out) > limit {
				return errGrowth
			}
			from = end
			return nil
		})
		if err != nil {
			return "", err
		}
		return string(append(out, s[from:]...)), nil
	}, nil
}

func replaceLiteral(old, new string) normalizer {
	return func(s string, limit int) (string, error) {
		if len(new) > len(old) && strings.Count(s, old) > limit/len(new) {
			return "", errGrowth
		}
		return strings.ReplaceAll(s, old, new), nil
	}
}

func lowercase(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	var b strings.Builder
	for _, r := range s {
		b.WriteString(toLower(r))
	}
	return b.String()
}

func stripAccents(s string) string {
	return strings.Map(func(r rune) rune {
		if isAccent(r) {
			return -1
		}
		return r
	}, s)
}
