package deepseek

import (
	"strings"

	"github.com/foretoken/foretoken/internal/chat"
)

// maxName is how many bytes the name of a function or parameter may have, so that little is held back.
const maxName = 1024

// between reads what stands between tags. Outside a call, the first text there is content again.
func (p *Parser) between() bool {
	p.take(len(p.pending) - len(strings.TrimLeft(p.pending, " \t\r\n")))
	if p.pending == "" {
		return false
	}
	tag, part := begins(p.pending, tags)
	switch {
	case part && !p.closed:
		return false
	case tag == "":
		p.noTag(part)
	case tag == eos:
		p.state = (*Parser).done
	case tag == invokeTag:
		p.endCall()
		p.take(len(tag))
		p.state = (*Parser).name
	case tag == parameterTag && p.inCall:
		p.take(len(tag))
		p.state = (*Parser).key
	case tag == invokeEnd:
		p.take(len(tag))
		p.endCall()
	case tag == blockEndV32, tag == blockEndV4:
		p.endCall()
		p.take(len(tag))
	default: // the start of a block, the end of a parameter, or a parameter of no call
		p.take(len(tag))
	}
	return true
}

// noTag deals with text where there should be a tag; part says that the text ends within one.
func (p *Parser) noTag(part bool) {
	if p.inCall {
		next := strings.IndexByte(p.pending[1:], '<')
		if next < 0 {
			next = len(p.pending) - 1
		}
		p.take(1 + next)
		return
	}
	p.state = (*Parser).content
	start, _ := begins(p.pending, dsmlStarts)
	p.take(len(start))
	if start != "" && part {
		p.state = (*Parser).done // what a cut-off tag would have said is no content
	}
}

// name reads the name of a function; the call begins when it is whole.
func (p *Parser) name() bool {
	const limit = maxName + len(nameEnd)
	end := strings.Index(p.pending[:min(len(p.pending), limit)], nameEnd)
	if end < 0 {
		return p.more(limit, (*Parser).content)
	}
	p.calls, p.count, p.inCall = p.calls+1, 0, true
	p.sampled.Reset()
	p.sampled.WriteString(invokeTag)
	p.emit(CallName, p.take(end))
	p.take(len(nameEnd))
	p.state = (*Parser).between
	return true
}

// key reads the name of a parameter, and whether it is a string.
func (p *Parser) key() bool {
	const limit = maxName + len(otherEnd)
	head := p.pending[:min(len(p.pending), limit)]
	for end := range len(head) {
		for _, mark := range []string{nameEnd, stringEnd, otherEnd} {
			if strings.HasPrefix(head[end:], mark) {
				p.beginValue(p.take(end), mark == stringEnd)
				p.take(len(mark))
				return true
			}
		}
	}
	return p.more(limit, (*Parser).between)
}

// more says that a name goes on, or gives it up where it has limit bytes.
func (p *Parser) more(limit int, otherwise func(*Parser) bool) bool {
	switch {
	case p.closed:
		p.state = (*Parser).done
	case len(p.pending) < limit:
		return false
	default:
		p.state = otherwise
	}
	return true
}

func (p *Parser) beginValue(key string, isString bool) {
	start := ", "
	if p.count == 0 {
		start = "{"
	}
	start += quoted(key) + ": "
	if isString {
		start += `"`
	}
	p.emit(CallArguments, start)
	p.count++
	p.isString = isString
	p.value.Reset()
	p.state = (*Parser).parameter
}

// parameter reads the value of a parameter. A string goes out as it comes, anything else when it is whole.
func (p *Parser) parameter() bool {
	at, mark := find(p.pending, valueMarks, !p.closed)
	p.addValue(p.take(at))
	switch {
	case mark == "":
		return false
	case mark[0] == '&':
		p.take(len(mark))
		p.addValue("<" + mark[len("&lt;"):len(mark)-len("&gt;")] + ">")
	case p.isString:
		p.emit(CallArguments, `"`)
		p.state = (*Parser).between
	default:
		p.emit(CallArguments, otherValue(p.value.String()))
		p.state = (*Parser).between
	}
	return true
}

func (p *Parser) addValue(text string) {
	switch {
	case text == "":
	case p.isString:
		escaped := quoted(text)
		p.emit(CallArguments, escaped[1:len(escaped)-1])
	default:
		p.value.WriteString(text)
	}
}

// otherValue is the JSON of a value that is not marked as a string.
func otherValue(text string) string {
	if _, err := chat.DecodeJSON([]byte(text)); err != nil {
		return quoted(text)
	}
	return text
}

// quoted prints text as a JSON string.
func quoted(text string) string {
	s, _ := chat.EncodeJSON(text) // a string always has a form
	return s
}

// endCall ends the call that is open, if there is one.
func (p *Parser) endCall() {
	if !p.inCall {
		return
	}
	if p.count == 0 {
		p.emit(CallArguments, "{")
	}
	p.emit(CallArguments, "}")
	p.emit(CallEnd, p.sampled.String())
	p.inCall = false
}

// done ignores what follows the end of the turn.
func (p *Parser) done() bool {
	p.pending = ""
	return false
}
