package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	maxAddedTokens   = 1 << 18 // speech models add some 65,000
	maxAddedTokenLen = 1024    // bytes
)

// addedToken is cut out of the text before the model sees it.
type addedToken struct {
	id         int32
	content    string
	singleWord bool // only where no \w touches it
	lstrip     bool // swallows white space to its left
	rstrip     bool // and to its right
	normalized bool // looked for in the normalized text
	special    bool // left out of text decoded with skipSpecial, not recognised with Options.PlainText
}

// addedMatcher finds added tokens: the leftmost first, and the longest of those that begin at the
// same place.
type addedMatcher struct {
	index  prefixIndex
	tokens []addedToken // by index.keys
}

func newAddedMatcher(tokens []addedToken) *addedMatcher {
	if len(tokens) == 0 {
		return nil
	}
	byContent := make(map[string]addedToken, len(tokens))
	contents := make([]string, 0, len(tokens))
	for _, tok := range tokens {
		if _, seen := byContent[tok.content]; !seen && tok.content != "" {
			byContent[tok.content] = tok
			contents = append(contents, tok.content)
		}
	}
	m := &addedMatcher{index: newPrefixIndex(contents)}
	for _, content := range m.index.keys {
		m.tokens = append(m.tokens, byContent[content])
	}
	return m
}

// cut calls stretch for each part of s between tokens and token for each token, in order. With
// plain, special tokens are not looked for.
func (m *addedMatcher) cut(s string, plain bool, stretch func(text string, from int) error, token func(id int32)) error {
	done := 0 // s[:done] has been handed out
	emit := func(to int) error {
		if done < to {
			return stretch(s[done:to], done)
		}
		return nil
	}
	spaces := 0 // s[i:spaces] is white space for the i in a run that a token has swallowed
	for at := 0; m != nil && at < len(s); {
		if !m.index.canBegin(s[at]) {
			at++
			continue
		}
		best := -1
		for k := range m.index.prefixesOf(s[at:]) {
			if !plain || !m.tokens[k].special {
				best = k
			}
		}
		if best < 0 {
			at++
			continue
		}
		tok := &m.tokens[best]
		begin, end := at, at+len(tok.content)
		at = end
		if tok.singleWord && touchesWord(s, begin, end) {
			continue // a shorter token is not tried instead
		}
		if tok.lstrip {
			begin = done + len(strings.TrimRightFunc(s[min(done, begin):begin], isSpace))
		}
		if tok.rstrip {
			if end >= spaces {
				spaces = len(s) - len(strings.TrimLeftFunc(s[end:], isSpace))
			}
			end = spaces
		}
		if begin >= end { // all of it is white space that the token before has swallowed
			continue
		}
		if err := emit(begin); err != nil {
			return err
		}
		token(tok.id)
		done = end // the next match may lie in the white space swallowed
	}
	return emit(len(s))
}

func touchesWord(s string, begin, end int) bool {
	before, n := utf8.DecodeLastRuneInString(s[:begin])
	if n > 0 && isWord(before) {
		return true
	}
	after, n := utf8.DecodeRuneInString(s[end:])
	return n > 0 && isWord(after)
}

// splitAdded makes the two matchers: for tokens looked for in the raw text and in the normalized
// text. The latter's contents are normalized themselves.
func splitAdded(tokens []addedToken, norm normalizer) (raw, normalized *addedMatcher, err error) {
	var r, n []addedToken
	for _, tok := range tokens {
		if !tok.normalized {
			r = append(r, tok)
			continue
		}
		if norm != nil {
			if tok.content, err = norm(tok.content, normalizeGrowth*len(tok.content)+normalizeSlack); err != nil {
				return nil, nil, fmt.Errorf("added token %d: %w", tok.id, err)
			}
		}
		n = append(n, tok)
	}
	return newAddedMatcher(r), newAddedMatcher(n), nil
}
