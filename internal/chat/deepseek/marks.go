package deepseek

const (
	invokeTag     = "<" + dsml + `invoke name="`
	parameterTag  = "<" + dsml + `parameter name="`
	parameterEnd  = "</" + dsml + "parameter>"
	invokeEnd     = "</" + dsml + "invoke>"
	blockStartV32 = "<" + dsml + "function_calls>"
	blockEndV32   = "</" + dsml + "function_calls>"
	blockStartV4  = "<" + dsml + "tool_calls>"
	blockEndV4    = "</" + dsml + "tool_calls>"

	// What ends a name in a tag.
	nameEnd   = `">`
	stringEnd = `" string="true">`
	otherEnd  = `" string="false">`
)

// dsmlStarts are what all tags begin with.
var dsmlStarts = []string{"<" + dsml, "</" + dsml}

// What ends reasoning, content and values, and what stands between them. Models of one generation know the
// block of the other.
var (
	reasoningMarks = append(afterBreaks(blockStartV32, blockStartV4), thinkEnd, eos)
	contentMarks   = append(afterBreaks(dsmlStarts...), eos)
	valueMarks     = append(escaped(closingTags), closingTags...)
	tags           = append([]string{blockStartV32, blockStartV4, invokeTag, parameterTag, eos}, closingTags...)
	closingTags    = []string{parameterEnd, invokeEnd, blockEndV32, blockEndV4}
)

// afterBreaks returns the marks with no, one and two line breaks before them.
func afterBreaks(marks ...string) (all []string) {
	for _, m := range marks {
		all = append(all, m, "\n"+m, "\n\n"+m)
	}
	return all
}

func escaped(tags []string) (all []string) {
	for _, tag := range tags {
		all = append(all, "&lt;"+tag[1:len(tag)-1]+"&gt;")
	}
	return all
}
