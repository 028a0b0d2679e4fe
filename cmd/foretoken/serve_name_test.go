package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestServedName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tiny-1.5")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for model, want := range map[string]string{
		"smollm2:135m":             "smollm2:135m",
		"hf:org/Tiny-GGUF":         "hf:org/Tiny-GGUF",
		dir:                        "tiny-1.5",
		dir + "/":                  "tiny-1.5",
		".":                        "tiny-1.5",
		"../tiny-1.5":              "tiny-1.5",
		"/srv/models/tiny-q8.gguf": "tiny-q8",
		"./tiny-q8.gguf":           "tiny-q8",
		"https://host/a/tiny-q8.gguf?signature=secret": "tiny-q8",
	} {
		if got := servedName(model); got != want {
			t.Errorf("%s is served as %q, want %q", model, got, want)
		}
	}
}
