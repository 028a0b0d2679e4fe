package main

import (
	"errors"
	"io"
	"os"
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

// The licence is what the file says, as is no other text that show prints.
func TestShownLicenceIsHarmless(t *testing.T) {
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout = w
	d := description{Licence: "MIT\x1b[2J\nsize 0"}
	if err := errors.Join(d.print(), w.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if want := `MIT\x1b[2J; size 0` + "\n"; !strings.Contains(string(text), want) {
		t.Errorf("%q, want it to contain %q", text, want)
	}
}
