package main

import (
	"errors"
	"strings"
	"testing"
)

// What files and servers put into an error cannot move the cursor, hide text
// or fill the screen.
func TestErrorsAreOneHarmlessLine(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{
		{errors.New("a.gguf: no such file"), "a.gguf: no such file"},
		{errors.Join(errors.New("one"), errors.New("two")), "one; two"},
		{errors.New("a\r\nb\n"), "a; b"},
		{errors.New("\x1b[31mred\a\x00\x7f\t"), `\x1b[31mred\a\x00\x7f\t`},
		{errors.New("\u202efugg.\u2028"), `\u202efugg.\u2028`},
		{errors.New("Grüße, 世界 👋 'so' \\ \""), "Grüße, 世界 👋 'so' \\ \""},
		{errors.New("\xff"), "\ufffd"},
		{errors.New(strings.Repeat("x", 1<<20)), strings.Repeat("x", maxLine) + "…"},
	} {
		if got := oneLine(tc.err); got != tc.want {
			t.Errorf("%.40q: %.80q, want %.80q", tc.err.Error(), got, tc.want)
		}
	}
}
