package deepseek

import "strings"

// A Kind says what a Delta belongs to.
type Kind uint8

// The kinds. Of one call come a CallName, any number of CallArguments, and a CallEnd or CallCut.
const (
	Reasoning Kind = iota + 1
	Content
	CallName      // a call begins: its function's name, whole
	CallArguments // more of the JSON object
	CallEnd       // the call as the model wrote it
	CallCut       // generation has ended within the call: what the model wrote of it
)

// A Delta is a piece of what the model says. It is never taken back.
type Delta struct {
	Kind Kind
	Call int // which call, from 0
	Text string
}

// A Parser splits what the model generates in one turn, as it comes. What may be the beginning of a mark is
// held back; apart from the places where deltas are cut, they do not depend on how the text is.
//
// It reads all that the format allows, and never fails on what it does not: a model makes mistakes.
//
//   - Reasoning that is never closed is reasoning to the end. A block of calls within it ends it.
//   - Line breaks before a block, two at most, belong to the block and may be missing; after it, text is
//     content.
//   - A call without a block around it, or without its own end before another one or the block's end, is a
//     call. Within it only parameters count.
//   - Any closing tag ends a value. One that the model has written with &lt; and &gt; is text of the value.
//   - A value that is not marked as a string is taken as it stands if it is JSON, else as a string.
//   - Tags that are none of the above lose their <｜DSML｜, which is never content.
//   - A parameter that comes twice is in the arguments twice.
//
// Without tools, calls are text.
type Parser struct {
	tools   bool
	state   func(*Parser) bool // takes some of pending; false: it needs more
	pending string
	closed  bool // pending is all there will be
	out     []Delta

	calls   int             // that have begun
	inCall  bool            // the last of them has not ended
	count   int             // of its parameters
	sampled strings.Builder // its text

	isString bool            // the parameter is marked as one
	value    strings.Builder // of the parameter, if not
}

// NewParser returns a parser of one turn. thinking says that the prompt ended within reasoning, as Thinking
// tells; tools, that the model was given any.
func NewParser(thinking, tools bool) *Parser {
	p := &Parser{tools: tools, state: (*Parser).content}
	if thinking {
		p.state = (*Parser).reasoning
	}
	return p
}

// Write takes more of the text and returns what has become certain. An end of sentence ends the turn: what
// follows is ignored.
func (p *Parser) Write(text string) []Delta {
	p.pending += text
	for p.state(p) {
	}
	out := p.out
	p.out = nil
	return out
}

// Close says that the text has ended, and returns the rest. The Parser must not be used any more.
func (p *Parser) Close() []Delta {
	p.closed = true
	out := p.Write("")
	if p.inCall {
		p.emit(CallCut, p.sampled.String())
		out = append(out, p.out...)
	}
	return out
}

// take removes n bytes from the pending text.
func (p *Parser) take(n int) string {
	text := p.pending[:n]
	p.pending = p.pending[n:]
	if p.inCall {
		p.sampled.WriteString(text)
	}
	return text
}

func (p *Parser) emit(kind Kind, text string) {
	switch {
	case kind >= CallName:
		p.out = append(p.out, Delta{Kind: kind, Call: p.calls - 1, Text: text})
	case text != "":
		p.out = append(p.out, Delta{Kind: kind, Text: text})
	}
}

// find returns the first of the marks in text and where it is. Without one, at is where one may begin that
// the text ends in, if that is to be held back, or else the text's length.
func find(text string, marks []string, hold bool) (at int, mark string) {
	for at < len(text) {
		next := strings.IndexAny(text[at:], "<\n&") // what marks begin with
		if next < 0 {
			break
		}
		at += next
		mark, part := begins(text[at:], marks)
		if mark != "" || part && hold {
			return at, mark
		}
		at++
	}
	return len(text), ""
}

// begins returns the mark that text begins with, or whether text is the beginning of one.
func begins(text string, marks []string) (mark string, part bool) {
	for _, m := range marks {
		if strings.HasPrefix(text, m) {
			return m, false
		}
		part = part || strings.HasPrefix(m, text)
	}
	return "", part
}

func (p *Parser) reasoning() bool {
	marks := reasoningMarks
	if !p.tools {
		marks = []string{thinkEnd, eos}
	}
	at, mark := find(p.pending, marks, !p.closed)
	p.emit(Reasoning, p.take(at))
	switch mark {
	case "":
		return false
	case thinkEnd:
		p.take(len(mark))
		p.state = (*Parser).content
	case eos:
		p.state = (*Parser).done
	default:
		p.state = (*Parser).between
	}
	return true
}

func (p *Parser) content() bool {
	marks := contentMarks
	if !p.tools {
		marks = []string{eos}
	}
	at, mark := find(p.pending, marks, !p.closed)
	p.emit(Content, p.take(at))
	switch mark {
	case "":
		return false
	case eos:
		p.state = (*Parser).done
	default:
		p.state = (*Parser).between
	}
	return true
}
