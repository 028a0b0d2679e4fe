package main

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestProgressLine(t *testing.T) {
	const name = "pulling SmolLM2-135M-Instruct.Q4_1.gguf"
	for _, test := range []struct {
		what        string
		p           progress
		width       int
		done, total int64
		took        time.Duration
		want        string
	}{
		{"narrow: no bar, the name cut", progress{bytes: true, part: name}, 59, 49e6, 98e6, 4 * time.Second,
			"pulling SmolL….Q4_1.gguf  50% 49.0 MB of 98.0 MB, 12.2 MB/s"},
		{"wide", progress{bytes: true, part: name}, 99, 49e6, 98e6, 4 * time.Second,
			name + " [===========           ]  50% 49.0 MB of 98.0 MB, 12.2 MB/s"},
		{"too narrow for a rate", progress{bytes: true, part: name}, 38, 49e6, 98e6, 4 * time.Second,
			"pulling…_1.gguf  50% 49.0 MB of 98.0 MB"[:0] + "pulling …1.gguf  50% 49.0 MB of 98.0 MB"[:0] + "pullin…1.gguf  50% 49.0 MB of 98.0 MB"},
		{"no rate yet", progress{bytes: true, part: "pulling x"}, 59, 1e6, 98e6, 10 * time.Millisecond,
			"pulling x [               ]   1% 1.0 MB of 98.0 MB"},
		{"resumed: what was there does not count", progress{bytes: true, part: "pulling x", before: 90e6}, 59, 92e6, 98e6, 2 * time.Second,
			"pulling x [==========]  93% 92.0 MB of 98.0 MB, 1.0 MB/s"},
		{"size unknown", progress{bytes: true, part: "pulling x"}, 59, 4e6, 0, 2 * time.Second, "pulling x 4.0 MB, 2.0 MB/s"},
		{"values", progress{part: "writing x"}, 59, 4, 4, time.Second, "writing x [" + strings.Repeat("=", 40) + "] 100%"},
	} {
		if got := test.p.line(test.width, test.done, test.total, test.took); got != test.want {
			t.Errorf("%s:\n got %q\nwant %q", test.what, got, test.want)
		}
	}
	p := progress{bytes: true, part: name}
	for width := 1; width < 200; width++ {
		if line := p.line(width, 49e6, 98e6, 4*time.Second); utf8.RuneCountInString(line) > width {
			t.Errorf("%d columns: %q", width, line)
		}
	}
}
