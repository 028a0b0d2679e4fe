package main

import (
	"fmt"
	"testing"
)

// A cache of q8_0 is spoken of where the widths of the model allow it.
func TestPrintCache(t *testing.T) {
	for _, tc := range []struct {
		d    description
		want string
	}{
		{description{CachePerToken: 256, roundable: true}, "256 B a token in 16 bits, twice that in f32, about half in q8_0"},
		{description{CachePerToken: 224}, "224 B a token in 16 bits, twice that in f32"},
		{description{CachePerToken: 113, CachePerSequence: 9000}, "113 B a token in 16 bits, twice that in f32; 9.0 kB a sequence"},
	} {
		var got string
		tc.d.printCache(func(_, format string, args ...any) { got = fmt.Sprintf(format, args...) })
		if got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}
