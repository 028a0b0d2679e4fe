//go:build unix

package checkpoint

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestTruncatedWhileMapped(t *testing.T) {
	const n = 1 << 16 // bytes of data: several pages
	dir := writeFiles(t, map[string][]byte{"model.safetensors": safetensorsOf(rawTensor{"a", "U8", []int{n}, make([]byte, n)})})
	path := filepath.Join(dir, "model.safetensors")
	c := open(t, dir)
	if _, err := c.Vector("a"); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	_, err := c.Vector("a")
	wantError(t, err, path+": truncated while in use: 0 bytes, expected ")

	// Another goroutine is guarded by its own call.
	result := make(chan error)
	go func() {
		result <- c.Guard(func() error {
			_, err := io.Discard.Write(bytes.Clone(c.byName["a"].data))
			return err
		})
	}()
	wantError(t, <-result, path)
}

// lost is a checkpoint whose file was truncated after it was opened.
func lost(t *testing.T) *Checkpoint {
	c := open(t, writeFiles(t, map[string][]byte{"model.safetensors": shard("a")}))
	if err := os.Truncate(c.Files()[0], 0); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestGuardPassesOtherPanics(t *testing.T) {
	c, d := lost(t), lost(t)
	for _, test := range []struct {
		name string
		c    *Checkpoint
		f    func()
	}{
		{"panic", c, func() { panic("x") }},
		{"nil pointer", c, func() { var p *int; _ = *p }},
		{"index", c, func() { var s []int; _ = s[len(s)] }},
		// One of the two lies above the other in memory.
		{"another mapping", c, func() { bytes.Clone(d.maps[0].data) }},
		{"another mapping", d, func() { bytes.Clone(c.maps[0].data) }},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: swallowed", test.name)
				}
			}()
			t.Error(test.c.Guard(func() error { test.f(); return nil }))
		}()
	}
	if err := c.Guard(func() error { return os.ErrClosed }); err != os.ErrClosed {
		t.Errorf("%v, want the function's error", err)
	}
}
