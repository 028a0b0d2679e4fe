package tools

import "strings"

// marks are texts to look for; none begins with another one.
type marks struct {
	all   []string
	first string // the characters that they begin with, all ASCII
}

// newMarks puts marks together. Empty ones are those that a format does not have.
func newMarks(groups ...[]string) marks {
	var m marks
	for _, group := range groups {
		for _, mark := range group {
			if mark == "" {
				continue
			}
			m.all = append(m.all, mark)
			if !strings.Contains(m.first, mark[:1]) {
				m.first += mark[:1]
			}
		}
	}
	return m
}

// begins returns the mark that text begins with, or whether text is the beginning of one.
func (m marks) begins(text string) (mark string, part bool) {
	for _, mark := range m.all {
		if strings.HasPrefix(text, mark) {
			return mark, false
		}
		part = part || strings.HasPrefix(mark, text)
	}
	return "", part
}

// find returns the first mark in text and where it is. Without one, at is where one may begin that the text
// ends in, if that is to be held back, or else the text's length.
func (m marks) find(text string, hold bool) (at int, mark string) {
	for at < len(text) {
		next := strings.IndexAny(text[at:], m.first)
		if next < 0 {
			break
		}
		at += next
		mark, part := m.begins(text[at:])
		if mark != "" || part && hold {
			return at, mark
		}
		at++
	}
	return len(text), ""
}
