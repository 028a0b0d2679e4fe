package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A prompt is completed only from what somebody put at stdin on purpose.
func TestRedirected(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for _, test := range []struct {
		what string
		file *os.File
		want bool
	}{{"a file", file, true}, {"a pipe", r, true}, {os.DevNull, null, false}} {
		if got := redirected(test.file); got != test.want {
			t.Errorf("%s: %v", test.what, got)
		}
	}
}

func TestIsCommand(t *testing.T) {
	for text, want := range map[string]bool{
		"/set": true, "/set temperature 0": true, "/bye\nnow": true, "/": true,
		"/etc/hosts is what?": false, "what is /set?": false, "": false,
	} {
		if got := isCommand(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
