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

func TestGuardPassesOtherPanics(t *testing.T) {
	c := open(t, writeFiles(t, map[string][]byte{"model.safetensors": shard("a")}))
	for _, f := range []func(){
		func() { panic("x") },
		func() { var p *int; _ = *p },
		func() { var s []int; _ = s[len(s)] },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			t.Error(c.Guard(func() error { f(); return nil }))
		}()
	}
	if err := c.Guard(func() error { return os.ErrClosed }); err != os.ErrClosed {
		t.Errorf("%v, want the function's error", err)
	}
}
