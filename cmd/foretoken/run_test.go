package main

import "testing"

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
