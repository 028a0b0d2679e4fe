package parse

// kind says what a token is.
type kind uint8

const (
	eof kind = iota
	text
	blockBegin // {%
	blockEnd   // %}
	printBegin // {{
	printEnd   // }}
	name
	str
	integer
	float
	op // an operator or bracket; the token's text says which
)

// token is a piece of source. Of text and str, text is the value: trimmed, unescaped.
type token struct {
	kind kind
	text string
	line int
}

func (t token) isOp(text string) bool   { return t.kind == op && t.text == text }
func (t token) isName(text string) bool { return t.kind == name && t.text == text }

// String describes the token in an error message.
func (t token) String() string {
	switch t.kind {
	case eof:
		return "end of template"
	case text:
		return "text"
	case blockBegin:
		return "'{%'"
	case blockEnd:
		return "'%}'"
	case printBegin:
		return "'{{'"
	case printEnd:
		return "'}}'"
	case str:
		return "a string"
	}
	return "'" + t.text + "'"
}
