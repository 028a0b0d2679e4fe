package tools

import "strings"

// maxName is how many bytes the name of a function or parameter may have, so that little is held back.
const maxName = 256

// call is the part of a parser that knows of the call it reads, or of what may be one.
type call struct {
	begun     int             // calls so far
	recording bool            // text is taken into raw
	raw       strings.Builder // all of the call, with the marks around it
	start     int             // where it begins behind these
	open      bool            // its name is out
	whole     bool            // its arguments are complete
	given     bool            // it has some
}

// try takes a mark behind which there may be a call.
func (p *parser) try(mark string) {
	p.record()
	p.take(len(mark))
	p.begin()
	p.syntax.read(p, mark)
}

// record keeps what is taken from here on.
func (p *parser) record() {
	p.recording, p.start = true, 0
	p.raw.Reset()
}

// begin says that the call itself begins here, behind all marks.
func (p *parser) begin() { p.start = p.raw.Len() }

// fail says that it was none. The text that was taken for one becomes what it would have been without.
func (p *parser) fail() {
	p.recording = false
	p.say(p.raw.String())
	p.state = p.content
	if p.channel == Reasoning {
		p.state = p.reasoning
	}
}

// name says that it is one. Whitespace in front of it does not count; reasoning that it was found in is over.
func (p *parser) name(name, id string) {
	if p.begun == 0 {
		p.dropped = p.syntax.ends
		if p.channel == Reasoning {
			p.dropped = append([]string{p.think.end}, p.dropped...)
		}
		p.contentMarks = newMarks(p.syntax.starts, p.dropped)
		p.afterMarks = newMarks(p.syntax.starts, p.syntax.again, p.dropped)
	}
	p.space = p.space[:0]
	p.channel = Content
	p.open, p.whole, p.given = true, false, false
	p.out = append(p.out, Delta{Kind: CallName, Call: p.begun, ID: id, Text: name})
	p.begun++
}

func (p *parser) arguments(text string) {
	if text != "" {
		p.given = true
		p.out = append(p.out, Delta{Kind: CallArguments, Call: p.begun - 1, Text: text})
	}
}

// end says that the call ends here, in front of all marks.
func (p *parser) end() {
	if !p.given {
		p.arguments("{}")
	}
	p.close(CallEnd, p.raw.String()[p.start:])
}

func (p *parser) close(kind Kind, text string) {
	p.out = append(p.out, Delta{Kind: kind, Call: p.begun - 1, Text: text})
	p.open, p.recording = false, false
	p.state = p.after
}

// failOrEnd says that what comes is not what a call has there.
func (p *parser) failOrEnd() bool {
	if p.open {
		p.end()
	} else {
		p.fail()
	}
	return true
}

// more says that the call needs more text than there is. If there will be none, this is the end of it.
func (p *parser) more() bool {
	switch {
	case !p.closed:
		return false
	case p.open && !p.whole:
		p.take(len(p.pending))
		p.close(CallCut, p.raw.String())
	default:
		p.failOrEnd()
	}
	return true
}

// moreOf is more for what may be as long as limit.
func (p *parser) moreOf(limit int) bool {
	if len(p.pending) < limit {
		return p.more()
	}
	return p.failOrEnd()
}

// upTo takes what comes before the first of the marks, which begins the pending text then. If it returns
// false, there is none within the length of a name: the state has to return moreOf(maxHead).
func (p *parser) upTo(m marks) (string, bool) {
	at, mark := m.find(p.pending[:min(len(p.pending), maxHead)], false)
	if mark == "" {
		return "", false
	}
	return strings.TrimSpace(p.take(at)), true
}

// maxHead is how much upTo looks at: a name and a mark.
const maxHead = maxName + 64

// expect returns a state that goes on with next if one of the marks comes next, whitespace aside.
func (p *parser) expect(m marks, next func(mark string)) func() bool {
	return func() bool {
		p.skip(whitespace)
		mark, part := m.begins(p.pending)
		switch {
		case mark != "":
			p.take(len(mark))
			next(mark)
		case p.pending == "" || part && !p.closed:
			return p.more()
		default:
			return p.failOrEnd()
		}
		return true
	}
}
