package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
)

// printJSON prints v on one line of stdout.
func printJSON(v any) error {
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	return out.Encode(v)
}

// note tells the user something that is not a result.
func note(format string, args ...any) { fmt.Fprintf(os.Stderr, "foretoken: "+format+"\n", args...) }

// maxLine bounds the line of an error, in bytes.
const maxLine = 4 << 10

// oneLine is the text of an error without line breaks: joined errors have them.
// Names and messages in it come from files and servers: what a terminal would
// act on is written as an escape, and nothing floods the screen.
func oneLine(err error) string {
	var line strings.Builder
	for i, part := range strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }) {
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

// readStdin reads all of stdin. Reading cannot be interrupted, waiting can.
func readStdin(ctx context.Context) (string, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := io.ReadAll(os.Stdin)
		done <- result{data, err}
	}()
	select {
	case r := <-done:
		return string(r.data), r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// byteSize prints a size in decimal units, as disks and download pages do.
func byteSize(n int64) string {
	const units = "kMGTPE"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, u := float64(n)/1000, 0
	for v >= 999.95 && u < len(units)-1 {
		v, u = v/1000, u+1
	}
	return fmt.Sprintf("%.1f %cB", v, units[u])
}
