package server

import (
	"fmt"
	"strings"
	"testing"
)

// Bodies as large as they may be and as dear as clients can make them, good and
// bad: none should take much longer than it takes to receive it.
func BenchmarkDecodeRequest(b *testing.B) {
	list := func(n int, item string) string { return "[" + strings.Repeat(item+",", n-1) + item + "]" }
	numbered := func(n int) string {
		var o strings.Builder
		for i := range n {
			fmt.Fprintf(&o, `,"%d":1`, i)
		}
		return "{" + o.String()[1:] + "}"
	}
	for _, tc := range []struct{ name, body string }{
		{"text", `{"prompt":"` + strings.Repeat("a", 16<<20) + `"}`},
		{"escapes", `{"prompt":"` + strings.Repeat(`\u0041`, 16<<20/6) + `"}`},
		{"ids", `{"prompt":` + list(1e6, "12345") + "}"},
		{"bias", `{"prompt":"a","logit_bias":` + numbered(bodyLimits.Keys) + "}"},
		{"stops", `{"prompt":"a","stop":` + list(1e6, `"abc"`) + "}"},
		{"messages", `{"messages":` + list(1e5, `{"role":"user","content":[{"type":"text","text":"hello"}]}`) + "}"},
		{"keys", numbered(1e6)},
		{"floats", `{"prompt":` + list(1e6, "1.2345e3") + "}"},
		{"prompts", `{"prompt":` + list(1e6, "[]") + "}"},
		{"digits", `{"prompt":` + list(16<<20/4301, strings.Repeat("9", 4300)) + "}"},
	} {
		b.Run(tc.name, func(b *testing.B) {
			b.SetBytes(int64(len(tc.body)))
			for b.Loop() {
				var err error
				if tc.name == "messages" {
					err = decodeRequest([]byte(tc.body), new(chatRequest))
				} else {
					err = decodeRequest([]byte(tc.body), new(completionRequest))
				}
				if _, told := err.(*Error); err != nil && !told {
					b.Fatal(err)
				}
			}
		})
	}
}
