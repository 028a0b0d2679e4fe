package main

import (
	"strings"
	"testing"
)

// zeros is a file without an end, such as /dev/zero.
type zeros struct{ read int }

func (e *zeros) Read(b []byte) (int, error) {
	clear(b)
	e.read += len(b)
	return len(b), nil
}

func TestInputIsBounded(t *testing.T) {
	if data, err := readBounded(strings.NewReader("1234"), "file", 4); err != nil || string(data) != "1234" {
		t.Errorf("as long as the limit: %q, %v", data, err)
	}
	source := &zeros{}
	_, err := readBounded(source, "file", 1000)
	if err == nil || err.Error() != "file: more than the 1.0 kB that are read" {
		t.Errorf("endless: %v", err)
	}
	if source.read > 2000 {
		t.Errorf("%d bytes were read", source.read)
	}
}
