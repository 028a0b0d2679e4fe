package checkpoint

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/foretoken/foretoken/internal/tensor"
)

// A safetensors file is a little-endian uint64 N, N bytes of JSON that
// describe the tensors, and their data, row-major, without holes. The limits
// are the format's own, except for the rank, which it leaves open.
const (
	maxHeader = 100_000_000
	maxRank   = 8
)

// safetensorsDTypes are the dtype names of the format. Those that the
// engine cannot decode are Invalid: they are refused by name.
var safetensorsDTypes = map[string]tensor.DType{
	"BOOL": tensor.Bool,
	"U8":   tensor.U8, "I8": tensor.I8,
	"U16": tensor.U16, "I16": tensor.I16,
	"U32": tensor.U32, "I32": tensor.I32,
	"U64": tensor.U64, "I64": tensor.I64,
	"F16": tensor.F16, "BF16": tensor.BF16, "F32": tensor.F32, "F64": tensor.F64,
	"F8_E4M3": tensor.F8E4M3, "F8_E5M2": tensor.F8E5M2, "F8_E8M0": tensor.F8E8M0,
	"F4":      tensor.F4E2M1,
	"F6_E2M3": tensor.Invalid, "F6_E3M2": tensor.Invalid,
	"F8_E4M3FNUZ": tensor.Invalid, "F8_E5M2FNUZ": tensor.Invalid,
	"C64": tensor.Invalid,
}

// parseSafetensors lists the tensors of a safetensors file, in the order of
// their data.
func parseSafetensors(path string, file []byte) ([]*entry, error) {
	if len(file) < 8 {
		return nil, fmt.Errorf("%s: %d bytes: expected at least the 8 of the header length", path, len(file))
	}
	n, rest := binary.LittleEndian.Uint64(file), file[8:]
	switch {
	case n == 0:
		return nil, fmt.Errorf("%s: header length 0: expected a JSON object", path)
	case n > maxHeader:
		return nil, fmt.Errorf("%s: header length %d: expected at most %d", path, n, maxHeader)
	case n > uint64(len(rest)):
		return nil, fmt.Errorf("%s: header length %d, but only %d bytes follow: truncated file?", path, n, len(rest))
	case rest[0] != '{':
		return nil, fmt.Errorf("%s: the header starts with %q, expected '{'", path, rest[0])
	case !utf8.Valid(rest[:n]):
		return nil, fmt.Errorf("%s: the header is not valid UTF-8", path)
	}
	header := headerReader{jsonScanner: jsonScanner{src: rest[:n]}, data: rest[n:], path: path, seen: map[string]bool{}}
	if err := header.read(); err != nil {
		return nil, err
	}
	if err := checkCoverage(path, header.tensors, len(header.data)); err != nil {
		return nil, err
	}
	return header.tensors, nil
}

// A headerReader reads the JSON header of one safetensors file.
type headerReader struct {
	jsonScanner
	data    []byte // what data_offsets count in
	path    string
	seen    map[string]bool
	tensors []*entry
}

func (h *headerReader) read() error {
	err := h.object(func(key []byte) error {
		name := string(key)
		if h.seen[name] {
			return fmt.Errorf("tensor %s: listed twice", quoted(name))
		}
		h.seen[name] = true
		if name == "__metadata__" {
			return h.object(func([]byte) error { _, err := h.str(); return err })
		}
		e, err := h.tensor(name)
		if err != nil {
			return fmt.Errorf("tensor %s: %w", quoted(name), err)
		}
		h.tensors = append(h.tensors, e)
		return nil
	})
	if err == nil {
		err = h.end()
	}
	if err != nil {
		return fmt.Errorf("%s: header: %w", h.path, err)
	}
	return nil
}

// tensor reads {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}.
func (h *headerReader) tensor(name string) (*entry, error) {
	var dtype string
	var shape, offsets []int
	err := h.object(func(key []byte) (err error) {
		var repeated bool
		switch field := string(key); field {
		case "dtype":
			repeated = dtype != ""
			var text []byte
			text, err = h.str()
			dtype = string(text)
		case "shape":
			repeated = shape != nil
			shape, err = h.sizes(maxRank)
		case "data_offsets":
			repeated = offsets != nil
			offsets, err = h.sizes(2)
		default:
			return fmt.Errorf("field %s: expected only dtype, shape and data_offsets", quoted(field))
		}
		if err == nil && repeated {
			err = fmt.Errorf("listed twice")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if dtype == "" || shape == nil || len(offsets) != 2 {
		return nil, fmt.Errorf("expected dtype, shape and data_offsets [begin, end]")
	}
	d, known := safetensorsDTypes[dtype]
	switch {
	case !known:
		return nil, fmt.Errorf("unknown dtype %s", quoted(dtype))
	case d == tensor.Invalid:
		return nil, fmt.Errorf("dtype %s is not supported", dtype)
	}
	size, err := storedBytes(d, shape)
	if err != nil {
		return nil, err
	}
	begin, end := offsets[0], offsets[1]
	switch {
	case begin > end:
		return nil, fmt.Errorf("data_offsets [%d, %d]: expected begin <= end", begin, end)
	case end > len(h.data):
		return nil, fmt.Errorf("data_offsets [%d, %d] pass the end of the %d data bytes: truncated file?", begin, end, len(h.data))
	case end-begin != size:
		return nil, fmt.Errorf("%d bytes for %v %v, expected %d", end-begin, d, shape, size)
	}
	info := TensorInfo{Stored: name, DType: d, Shape: shape, File: h.path}
	return &entry{TensorInfo: info, data: h.data[begin:end:end], offset: begin}, nil
}

// sizes reads an array of at most limit sizes; never nil without an error.
func (h *headerReader) sizes(limit int) ([]int, error) {
	list := []int{}
	err := h.array(func() error {
		if len(list) == limit {
			return fmt.Errorf("more than %d numbers", limit)
		}
		n, err := h.size()
		list = append(list, n)
		return err
	})
	return list, err
}

// storedBytes is the size of a row-major tensor whose rows are stored in
// whole blocks. The empty shape is a scalar.
func storedBytes(d tensor.DType, shape []int) (int, error) {
	last := 1
	if len(shape) > 0 {
		last = shape[len(shape)-1]
	}
	if last%d.BlockLen() != 0 {
		return 0, fmt.Errorf("shape %v: expected rows of a multiple of %d values for %v", shape, d.BlockLen(), d)
	}
	bytes, ok := mulSize(last/d.BlockLen(), d.BlockBytes())
	for _, n := range shape[:max(len(shape)-1, 0)] {
		if ok {
			bytes, ok = mulSize(bytes, n)
		}
	}
	if !ok {
		return 0, fmt.Errorf("shape %v of %v: the size overflows", shape, d)
	}
	return bytes, nil
}

func mulSize(a, b int) (product int, ok bool) {
	if b != 0 && a > math.MaxInt/b {
		return 0, false
	}
	return a * b, true
}

// checkCoverage sorts tensors by their data and checks that every one of
// the size data bytes belongs to exactly one.
func checkCoverage(path string, tensors []*entry, size int) error {
	slices.SortStableFunc(tensors, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(len(a.data), len(b.data)))
	})
	end := 0 // of the data covered so far
	for i, t := range tensors {
		if t.offset < end {
			return fmt.Errorf("%s: tensor %s starts at data byte %d, inside tensor %s that ends at %d",
				path, quoted(t.Stored), t.offset, quoted(tensors[i-1].Stored), end)
		}
		if t.offset > end {
			return fmt.Errorf("%s: data bytes %d to %d, before tensor %s, belong to no tensor", path, end, t.offset, quoted(t.Stored))
		}
		end = t.offset + len(t.data)
	}
	if end != size {
		return fmt.Errorf("%s: data bytes %d to %d, at the end, belong to no tensor", path, end, size)
	}
	return nil
}
