package tools

import (
	"slices"
	"strings"
)

const whitespace = " \t\r\n"

// A syntax is how a family writes calls.
type syntax struct {
	starts  []string // marks that calls begin with
	opening []string // what they begin with only where the answer does
	again   []string // what further ones begin with right behind a call
	ends    []string // marks at the end of calls; once there has been one, these are never text
	junk    string   // characters behind a call that belong to it
	// inReasoning says that calls end reasoning. Otherwise their marks are text there.
	inReasoning bool
	// read goes on behind a mark, by setting the state.
	read func(p *parser, mark string)
}

// A think is how a family marks reasoning.
type think struct {
	start, end string
	inside     bool // without a mark in the prompt, the model begins within reasoning
}

// parser is the machine that is common to formats: what is text, and where calls begin. What a call is like
// is known to its syntax, with states of its own.
type parser struct {
	state   func() bool // takes some of pending; false: it needs more
	pending string
	closed  bool // pending is all there will be
	out     []Delta

	think     think
	syntax    syntax
	functions functions
	// What to look for within reasoning and content, where an answer begins, and behind a call.
	reasoningMarks, contentMarks, openingMarks, afterMarks marks
	dropped                                                []string // those that are no text, and nothing else

	channel Kind   // Reasoning or Content, whichever text is at the moment
	space   []byte // what it ends in: it counts only if more text follows
	breaks  int    // line breaks that may follow and do not count

	call
}

func newParser(t think, s syntax, turn Turn) *parser {
	p := &parser{think: t, functions: newFunctions(turn.Tools), channel: Content}
	if len(p.functions) > 0 {
		p.syntax = s
	}
	p.contentMarks = newMarks(p.syntax.starts)
	p.openingMarks = newMarks(p.syntax.opening)
	p.state = p.opening
	if t.end == "" {
		return p
	}
	p.openingMarks = newMarks(p.syntax.opening, []string{t.start})
	p.reasoningMarks = newMarks([]string{t.end})
	if p.syntax.inReasoning {
		p.reasoningMarks = newMarks([]string{t.end}, p.syntax.starts)
	}
	if turn.Reasoning {
		p.beginReasoning()
	}
	return p
}

func (p *parser) Write(text string) []Delta {
	p.pending += text
	for p.state() {
	}
	out := p.out
	p.out = nil
	return out
}

func (p *parser) Close() []Delta {
	p.closed = true
	out := p.Write("")
	p.emit(p.channel, string(p.space))
	return append(out, p.out...)
}

// take removes n bytes from the pending text.
func (p *parser) take(n int) string {
	text := p.pending[:n]
	p.pending = p.pending[n:]
	if p.recording {
		p.raw.WriteString(text)
	}
	return text
}

// skip takes what the pending text begins with of a set of characters.
func (p *parser) skip(set string) string {
	return p.take(len(p.pending) - len(strings.TrimLeft(p.pending, set)))
}

func (p *parser) emit(kind Kind, text string) {
	if text != "" {
		p.out = append(p.out, Delta{Kind: kind, Text: text})
	}
}

// say sends text, but for the whitespace that it ends in.
func (p *parser) say(text string) {
	said := strings.TrimRight(text, whitespace)
	if said != "" {
		p.emit(p.channel, string(p.space)+said)
		p.space = p.space[:0]
	}
	p.space = append(p.space, text[len(said):]...)
}

// skipBreaks takes the line breaks that do not count.
func (p *parser) skipBreaks() {
	for ; p.breaks > 0 && p.pending != ""; p.breaks-- {
		if p.pending[0] != '\n' {
			p.breaks = 0
			return
		}
		p.take(1)
	}
}

// opening reads on where the answer begins, and where there may still be reasoning in front of it.
func (p *parser) opening() bool {
	p.skipBreaks()
	p.say(p.skip(whitespace))
	if p.pending == "" {
		return false
	}
	mark, part := p.openingMarks.begins(p.pending)
	switch {
	case part && !p.closed:
		return false
	case mark == "":
		p.state = p.content
	case mark == p.think.start:
		p.take(len(mark))
		p.beginReasoning()
	default:
		p.try(mark)
	}
	return true
}

// beginReasoning drops the whitespace before the mark and, as it comes, a line break behind it.
func (p *parser) beginReasoning() {
	p.space = p.space[:0]
	p.channel, p.breaks, p.state = Reasoning, 1, p.reasoning
}

func (p *parser) reasoning() bool {
	p.skipBreaks()
	at, mark := p.reasoningMarks.find(p.pending, !p.closed)
	p.say(p.take(at))
	switch mark {
	case "":
		return false
	case p.think.end:
		p.take(len(mark))
		p.emit(Reasoning, strings.TrimRight(string(p.space), "\n"))
		p.space = p.space[:0]
		p.channel, p.breaks, p.state = Content, 2, p.opening
		p.openingMarks = newMarks(p.syntax.opening) // there is reasoning once
	default:
		p.try(mark)
	}
	return true
}

func (p *parser) content() bool {
	at, mark := p.contentMarks.find(p.pending, !p.closed)
	p.say(p.take(at))
	switch {
	case mark == "":
		return false
	case slices.Contains(p.dropped, mark):
		p.take(len(mark))
	default:
		p.try(mark)
	}
	return true
}

// after reads on behind a call. Text there is content.
func (p *parser) after() bool {
	p.skip(whitespace + p.syntax.junk)
	if p.pending == "" {
		return false
	}
	mark, part := p.afterMarks.begins(p.pending)
	switch {
	case part && !p.closed:
		return false
	case mark == "":
		p.state = p.content
	case slices.Contains(p.dropped, mark):
		p.take(len(mark))
	default:
		p.try(mark)
	}
	return true
}
