package tools

// An xmlForm is how a family writes calls in tags, with a tag for each parameter. Values are bare text; the
// function's schema says what they are.
type xmlForm struct {
	block, blockEnd string // around a call, or several
	call, nameEnd   string // <function= and >; without it, the name follows the block's tag
	callEnd         string
	key, keyEnd     string // <parameter= and >
	value, valueEnd string // value may be "": a value follows its key
	bare            bool   // a call may come without a block
	json            bool   // values that the schema says nothing of are JSON
	inReasoning     bool
}

// qwenCoder is what Qwen3-Coder, Qwen3.5, Nemotron 3 and, in a block of another name, Seed-OSS write:
//
//	<tool_call>
//	<function=f>
//	<parameter=k>
//	value
//	</parameter>
//	</function>
//	</tool_call>
func qwenCoder(block string) xmlForm {
	return xmlForm{
		block: "<" + block + ">", blockEnd: "</" + block + ">",
		call: "<function=", nameEnd: ">", callEnd: "</function>",
		key: "<parameter=", keyEnd: ">", valueEnd: "</parameter>",
		bare: true, inReasoning: true,
	}
}

// minimax is what MiniMax M2 writes: <invoke name="f"> with <parameter name="k">value</parameter>, several
// in one block.
var minimax = xmlForm{
	block: "<minimax:tool_call>", blockEnd: "</minimax:tool_call>",
	call: `<invoke name="`, nameEnd: `">`, callEnd: "</invoke>",
	key: `<parameter name="`, keyEnd: `">`, valueEnd: "</parameter>",
}

// glm is what GLM 4.5 to 4.7 write: the name, and <arg_key>k</arg_key><arg_value>value</arg_value>.
var glm = xmlForm{
	block: "<tool_call>", blockEnd: "</tool_call>",
	key: "<arg_key>", keyEnd: "</arg_key>",
	value: "<arg_value>", valueEnd: "</arg_value>",
	json: true,
}

// tags are the marks of a form by where they are looked for.
type tags struct {
	inBlock, nameEnds, between, keyEnds, value, valueEnds marks
}

func (f xmlForm) tags() tags {
	var t tags
	t.inBlock = newMarks([]string{f.call, "{"})
	t.nameEnds = newMarks([]string{f.nameEnd, "<"})
	t.keyEnds = newMarks([]string{f.keyEnd, "<", " ", "\t", "\n"})
	if f.call == "" {
		t.nameEnds = newMarks([]string{"\n", f.key, f.blockEnd})
		t.keyEnds = newMarks([]string{f.keyEnd})
	}
	t.between = newMarks([]string{f.key, f.valueEnd, f.call, f.callEnd, f.block, f.blockEnd})
	t.value = newMarks([]string{f.value})
	// Any closing tag ends a value; so does the next key, if it begins a line. A line break before them
	// does not count.
	ends := []string{"\n" + f.key}
	for _, end := range f.ends() {
		ends = append(ends, end, "\n"+end)
	}
	t.valueEnds = newMarks(ends)
	return t
}

// ends are the closing tags.
func (f xmlForm) ends() []string {
	if f.callEnd == "" {
		return []string{f.valueEnd, f.blockEnd}
	}
	return []string{f.valueEnd, f.callEnd, f.blockEnd}
}

func (f xmlForm) syntax() syntax {
	t, asJSON := f.tags(), readJSON(false)
	s := syntax{starts: []string{f.block}, ends: f.ends(), inReasoning: f.inReasoning}
	switch {
	case f.bare:
		s.starts = append(s.starts, f.call)
	case f.call != "":
		s.again = []string{f.call}
	}
	s.read = func(p *parser, mark string) {
		c := &xmlCall{parser: p, form: f, tags: t}
		inBlock := func(mark string) {
			p.start = p.raw.Len() - len(mark)
			p.state = c.functionName
			if mark == "{" { // models that were trained on both forms mix them up
				asJSON(p, mark)
			}
		}
		switch {
		case f.call == "":
			p.state = c.functionName
		case mark == f.call:
			inBlock(mark)
		default:
			p.state = p.expect(t.inBlock, inBlock)
		}
	}
	return s
}
