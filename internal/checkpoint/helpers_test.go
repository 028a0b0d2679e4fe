package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
)

// safetensorsFile is a file with the given header and n data bytes 0, 1, 2…
func safetensorsFile(header string, n int) []byte {
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	file = append(file, header...)
	for i := range n {
		file = append(file, byte(i))
	}
	return file
}

// A rawTensor is a tensor of a safetensors file made by a test.
type rawTensor struct {
	name, dtype string
	shape       []int
	data        []byte
}

// safetensorsOf makes a well-formed file.
func safetensorsOf(tensors ...rawTensor) []byte {
	var fields []string
	var data []byte
	for _, t := range tensors {
		shape := strings.ReplaceAll(fmt.Sprint(t.shape), " ", ",")
		fields = append(fields, fmt.Sprintf(`%q:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`,
			t.name, t.dtype, shape, len(data), len(data)+len(t.data)))
		data = append(data, t.data...)
	}
	return append(safetensorsFile("{"+strings.Join(fields, ",")+"}", 0), data...)
}

// f32s encodes values as F32.
func f32s(values ...float32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// writeFiles writes files to a new directory and returns its path.
func writeFiles(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// open opens a checkpoint that must be good.
func open(t testing.TB, path string) *Checkpoint {
	t.Helper()
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// wantError checks that err is one line that has all the given parts.
func wantError(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, expected one with %q", parts)
	}
	if text := err.Error(); strings.Contains(text, "\n") || len(text) > 500 {
		t.Errorf("expected one line of at most 500 bytes, got %d: %.600q", len(text), text)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error: %v\nexpected %q in it", err, part)
		}
	}
}

// ggufOf makes a well-formed GGUF file of F32 tensors, whose values count
// up from 0.
func ggufOf(t testing.TB, metadata []Pair, tensors map[string][]int, order ...string) []byte {
	t.Helper()
	var list []TensorWriter
	for _, name := range order {
		n := 1
		for _, d := range tensors[name] {
			n *= d
		}
		values := make([]float32, n)
		for i := range values {
			values[i] = float32(i)
		}
		list = append(list, TensorWriter{name, tensor.F32, tensors[name], writes(f32s(values...))})
	}
	var out bytes.Buffer
	if err := WriteGGUF(&out, metadata, list); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func writes(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}
