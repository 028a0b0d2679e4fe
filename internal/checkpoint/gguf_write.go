package checkpoint

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"reflect"

	"github.com/foretoken/foretoken/internal/tensor"
)

// A Pair is a key and a value of GGUF metadata. The value is of a type that
// Metadata.Get returns: a sized number, a bool, a string, or a slice of one
// of these.
type Pair struct {
	Key   string
	Value any
}

// A TensorWriter is a tensor to be written.
type TensorWriter struct {
	Name  string // GGUF's own name, see GGUFName
	DType tensor.DType
	Shape []int // row-major, the fastest dimension last; 1 to 4 positive sizes
	// Write writes the tensor's data: exactly as many bytes as DType and
	// Shape ask for. It is called once, in the order of the file.
	Write func(io.Writer) error
}

// maxGGMLName is the longest tensor name that ggml reads.
const maxGGMLName = 63

// WriteGGUF writes a little-endian GGUF v3 file with 32-byte alignment.
// Everything but the data is checked before the first byte is written.
func WriteGGUF(w io.Writer, metadata []Pair, tensors []TensorWriter) error {
	header, err := ggufHeader(metadata, tensors)
	if err != nil {
		return err
	}
	out := &countingWriter{w: bufio.NewWriterSize(w, 1<<20)}
	if _, err := out.Write(header); err != nil {
		return err
	}
	for _, t := range tensors {
		if err := out.pad(); err != nil {
			return err
		}
		start := out.n
		if err := t.Write(out); err != nil {
			return fmt.Errorf("tensor %s: %w", quoted(t.Name), err)
		}
		size, err := storedBytes(t.DType, t.Shape)
		if err != nil {
			return fmt.Errorf("tensor %s: %w", quoted(t.Name), err)
		}
		if out.n-start != int64(size) {
			return fmt.Errorf("tensor %s: wrote %d bytes for %v %v, expected %d", quoted(t.Name), out.n-start, t.DType, t.Shape, size)
		}
	}
	if err := out.pad(); err != nil {
		return err
	}
	return out.w.Flush()
}

// ggufHeader encodes all that precedes the tensor data.
func ggufHeader(metadata []Pair, tensors []TensorWriter) ([]byte, error) {
	le := binary.LittleEndian
	h := append([]byte(ggufMagic), le.AppendUint32(nil, ggufVersion)...)
	h = le.AppendUint64(h, uint64(len(tensors)))
	h = le.AppendUint64(h, uint64(len(metadata)))
	keys := map[string]bool{}
	for _, p := range metadata {
		if p.Key == "" || len(p.Key) > maxKey || keys[p.Key] {
			return nil, fmt.Errorf("metadata key %s: expected a new key of 1 to %d bytes", quoted(p.Key), maxKey)
		}
		keys[p.Key] = true
		if p.Key == alignmentKey && p.Value != uint32(ggufAlign) {
			return nil, fmt.Errorf("metadata key %s: expected uint32(%d)", quoted(p.Key), ggufAlign)
		}
		var err error
		if h, err = appendValue(appendText(h, p.Key), p.Value); err != nil {
			return nil, fmt.Errorf("metadata key %s: %w", quoted(p.Key), err)
		}
	}
	names := map[string]bool{}
	offset := 0
	for _, t := range tensors {
		if t.Name == "" || len(t.Name) > maxGGMLName || names[t.Name] {
			return nil, fmt.Errorf("tensor %s: expected a new name of 1 to %d bytes", quoted(t.Name), maxGGMLName)
		}
		names[t.Name] = true
		typ, err := ggmlTypeOf(t.DType)
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", quoted(t.Name), err)
		}
		if len(t.Shape) < 1 || len(t.Shape) > ggufMaxDims {
			return nil, fmt.Errorf("tensor %s: shape %v: expected 1 to %d dimensions", quoted(t.Name), t.Shape, ggufMaxDims)
		}
		h = le.AppendUint32(appendText(h, t.Name), uint32(len(t.Shape)))
		for i := range t.Shape {
			n := t.Shape[len(t.Shape)-1-i]
			if n < 1 {
				return nil, fmt.Errorf("tensor %s: shape %v: expected positive sizes", quoted(t.Name), t.Shape)
			}
			h = le.AppendUint64(h, uint64(n))
		}
		size, err := storedBytes(t.DType, t.Shape)
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", quoted(t.Name), err)
		}
		h = le.AppendUint64(le.AppendUint32(h, typ), uint64(offset))
		offset += ceilDiv(size, ggufAlign) * ggufAlign
	}
	return h, nil
}

func appendText(h []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(h, uint64(len(s))), s...)
}

// appendValue encodes a value with its type.
func appendValue(h []byte, value any) ([]byte, error) {
	le := binary.LittleEndian
	v := reflect.ValueOf(value)
	for typ, goType := range metaGo {
		switch {
		case goType == nil || !v.IsValid():
			continue
		case v.Type() == goType:
			h = le.AppendUint32(h, uint32(typ))
		case v.Type() == reflect.SliceOf(goType):
			h = le.AppendUint32(h, uint32(metaArray))
			h = le.AppendUint32(h, uint32(typ))
			h = le.AppendUint64(h, uint64(v.Len()))
		default:
			continue
		}
		switch s := value.(type) {
		case string:
			return appendText(h, s), nil
		case []string:
			for _, s := range s {
				h = appendText(h, s)
			}
			return h, nil
		}
		return binary.Append(h, le, value)
	}
	return nil, fmt.Errorf("type %T: expected a sized number, a bool, a string or a slice of one", value)
}

// A countingWriter knows how much was written, and can pad it.
type countingWriter struct {
	w *bufio.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func (c *countingWriter) pad() error {
	var zeros [ggufAlign]byte
	_, err := c.Write(zeros[:-c.n&(ggufAlign-1)])
	return err
}
