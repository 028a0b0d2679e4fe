package main

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestProgressLine(t *testing.T) {
	const name = "pulling SmolLM2-135M-Instruct.Q4_1.gguf"
	long, short := progress{bytes: true, part: name}, progress{bytes: true, part: "pulling x"}
	for _, test := range []struct {
		what        string
		p           progress
		width       int
		done, total int64
		took        time.Duration
		want        string
	}{
		{"narrow: no bar, the name cut", long, 59, 49e6, 98e6, 4 * time.Second, "pulling Smo….Q4_1.gguf  50%  49.0 MB of 98.0 MB,  12.2 MB/s"},
		{"wide", long, 99, 49e6, 98e6, 4 * time.Second, name + " [==========          ]  50%  49.0 MB of 98.0 MB,  12.2 MB/s"},
		{"too narrow for a rate", long, 38, 49e6, 98e6, 4 * time.Second, "pullin…1.gguf  50%  49.0 MB of 98.0 MB"},
		{"no rate yet", short, 59, 1e6, 98e6, 10 * time.Millisecond, "pulling x [                      ]   1%   1.0 MB of 98.0 MB"},
		{"resumed: what was there does not count", progress{bytes: true, part: "pulling x", before: 90e6}, 59, 92e6, 98e6, 2 * time.Second, "pulling x [========= ]  93%  92.0 MB of 98.0 MB,   1.0 MB/s"},
		{"size unknown", short, 59, 4e6, 0, 2 * time.Second, "pulling x   4.0 MB,   2.0 MB/s"},
		{"no bytes", progress{part: "writing x"}, 59, 4, 4, time.Second, "writing x [" + strings.Repeat("=", 40) + "] 100%"},
	} {
		if got := test.p.line(test.width, test.done, test.total, test.took); got != test.want {
			t.Errorf("%s:\n got %q\nwant %q", test.what, got, test.want)
		}
	}
	for width := range 200 {
		for _, total := range []int64{0, 98e6} {
			if line := long.line(width, 49e6, total, 4*time.Second); utf8.RuneCountInString(line) > width {
				t.Errorf("%d columns: %q", width, line)
			}
		}
	}
}
