package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// printJSON prints v on one line of stdout.
func printJSON(v any) error {
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	return out.Encode(v)
}

// colourful reports whether f shows colours, and its user wants them
// (https://no-color.org).
func colourful(f *os.File) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// note tells the user something that is not a result.
func note(format string, args ...any) { fmt.Fprintf(os.Stderr, "foretoken: "+format+"\n", args...) }

// oneLine is the text of an error without line breaks: joined errors have them.
func oneLine(err error) string { return harmless(err.Error()) }

// maxLine bounds a harmless line, in bytes.
const maxLine = 4 << 10

// harmless makes text of files and servers one line that does nothing to a
// terminal: what it would act on is written as an escape, and nothing floods
// the screen.
func harmless(text string) string {
	var line strings.Builder
	for i, part := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if i > 0 {
			line.WriteString("; ")
		}
		for _, r := range part {
			if line.Len() >= maxLine {
				return line.String() + "…"
			}
			if unicode.IsPrint(r) {
				line.WriteRune(r)
			} else {
				line.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
			}
		}
	}
	return line.String()
}
