package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A file appears when it is complete; a failure leaves what was there.
func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	failure := errors.New("disk on fire")
	write := func(text string, err error) error {
		return writeFile(path, func(f *os.File) error {
			if _, err := f.WriteString(text); err != nil {
				t.Error(err)
			}
			if got, _ := os.ReadFile(path); string(got) == text {
				t.Errorf("%q is there before it is complete", text)
			}
			return err
		})
	}
	if err := write("first", failure); !errors.Is(err, failure) {
		t.Errorf("error %v, want %v", err, failure)
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("a failure leaves %v", entries)
	}
	for _, text := range []string{"second", "third"} {
		if err := write(text, nil); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); string(got) != text {
			t.Errorf("file %q, %v; want %q", got, err, text)
		}
	}
	if err := write("fourth", failure); !errors.Is(err, failure) {
		t.Errorf("error %v, want %v", err, failure)
	}
	if got, err := os.ReadFile(path); string(got) != "third" {
		t.Errorf("file %q, %v after a failure; want third", got, err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("files %v, want one", entries)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o444 != 0o444 {
		t.Errorf("mode %v, %v: others cannot read it", info.Mode(), err)
	}
	err := writeFile(filepath.Join(dir, "nowhere", "out"), func(*os.File) error { return nil })
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in no directory: %v", err)
	}
}
