package checkpoint

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/tensor"
)

func TestSafetensors(t *testing.T) {
	dir := writeFiles(t, map[string][]byte{
		"model.safetensors": safetensorsOf(
			rawTensor{"m", "F32", []int{2, 3}, f32s(0, 1, 2, 3, 4, 5)},
			rawTensor{"scalar", "F32", []int{}, f32s(7)},
			rawTensor{"empty", "F32", []int{0, 4}, nil},
			rawTensor{"v", "BF16", []int{2}, []byte{0x80, 0x3f, 0x00, 0xc0}},
			rawTensor{"b", "BOOL", []int{3}, []byte{0, 1, 1}},
			rawTensor{"fp4", "F4", []int{1, 4}, []byte{0x21, 0x43}},
			rawTensor{"ids", "I64", []int{1}, []byte{5, 0, 0, 0, 0, 0, 0, 0}},
			rawTensor{"\u00e9 \"x\"", "I8", []int{1}, []byte{0xff}},
			rawTensor{"cube", "U8", []int{2, 1, 3}, []byte{1, 2, 3, 4, 5, 6}},
		),
	})
	c := open(t, dir)
	path := filepath.Join(dir, "model.safetensors")
	if c.Format() != Safetensors || c.Metadata() != nil || c.ConfigJSON() != nil {
		t.Errorf("format %v, metadata %v, config %q", c.Format(), c.Metadata(), c.ConfigJSON())
	}
	if diff := cmp.Diff([]string{path}, c.Files()); diff != "" {
		t.Error(diff)
	}
	if want := int64(24 + 4 + 4 + 3 + 2 + 8 + 1 + 6); c.Size() != want {
		t.Errorf("size %d, want %d", c.Size(), want)
	}
	if diff := cmp.Diff([]string{"b", "cube", "empty", "fp4", "ids", "m", "scalar", "v", "é \"x\""}, c.Names()); diff != "" {
		t.Error(diff)
	}
	info, ok := c.Info("fp4")
	if want := (TensorInfo{"fp4", "fp4", tensor.F4E2M1, []int{1, 4}, path}); !ok || !cmp.Equal(want, info) {
		t.Errorf("info %v, want %v", info, want)
	}
	for name, want := range map[string][]float32{"v": {1, -2}, "b": {0, 1, 1}, "ids": {5}, "é \"x\"": {-1}} {
		if got, err := c.Vector(name); err != nil || !cmp.Equal(want, got) {
			t.Errorf("vector %s: %v, %v, want %v", name, got, err, want)
		}
	}
	m, err := c.Matrix("m")
	if err != nil {
		t.Fatal(err)
	}
	row := make([]float32, 3)
	if m.Row(row, 1); m.Rows != 2 || m.Scales != nil || !cmp.Equal([]float32{3, 4, 5}, row) {
		t.Errorf("m: %d rows, row 1 %v", m.Rows, row)
	}
	stack, err := c.Stack("cube")
	if err != nil {
		t.Fatal(err)
	}
	if stack[1].Row(row, 0); len(stack) != 2 || !strings.HasSuffix(stack[1].Name, `: tensor "cube"[1]`) || !cmp.Equal([]float32{4, 5, 6}, row) {
		t.Errorf("cube: %d matrices, second %s %v", len(stack), stack[1].Name, row)
	}

	_, err = c.Matrix("v")
	wantError(t, err, path, `tensor "v"`, "shape [2]: expected 2 dimensions")
	_, err = c.Vector("m")
	wantError(t, err, path, `tensor "m"`, "shape [2 3]: expected 1 dimensions")
	_, err = c.Matrix("empty")
	wantError(t, err, path, "empty", "expected positive sizes")
	_, err = c.Matrix("absent")
	wantError(t, err, dir, `no tensor "absent"`)
	if missing, ok := err.(*MissingTensorError); !ok || missing.Name != "absent" || missing.Path != dir {
		t.Errorf("%#v, expected a MissingTensorError", err)
	}
}

// one is the header of a file with one tensor, a.
func one(dtype, shape, offsets string) string {
	return fmt.Sprintf(`{"a":{"dtype":%q,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
}

// two is the header of a file with tensors a and b of n U8 each.
func two(n int, a, b string) string {
	return fmt.Sprintf(`{"a":{"dtype":"U8","shape":[%d],"data_offsets":%s},"b":{"dtype":"U8","shape":[%[1]d],"data_offsets":%[3]s}}`, n, a, b)
}

// halfInt is a power of two: twice as much is no int.
const halfInt = math.MaxInt/2 + 1

var malformedSafetensors = []struct {
	name, header string
	data         int // bytes that follow the header
	want         string
}{
	{"not an object", `[1]`, 0, `the header starts with '[', expected '{'`},
	{"space before the object", ` {}`, 0, `the header starts with ' '`},
	{"not UTF-8", "{\"\xff\":{}}", 0, `not valid UTF-8`},
	{"header cut", `{"a":{"dtype":"U8"`, 0, `the JSON ends early: expected ','`},
	{"header cut in a string", `{"a`, 0, `string without an end`},
	{"header cut in an escape", `{"a\`, 0, `string without an end`},
	{"bad escape", `{"\x":{}}`, 0, `bad escape in a string`},
	{"control character", "{\"a\nb\":{}}", 0, `control character in a string`},
	{"text after the object", `{} {}`, 0, `'{' after the end of the JSON object`},
	{"tensor not an object", `{"a":1}`, 0, `tensor "a": byte 5: found '1', expected '{'`},
	{"deep nesting", `{"a":` + strings.Repeat("[", 1<<19), 0, `tensor "a": byte 5: found '[', expected '{'`},
	{"deeply nested shape", `{"a":{"shape":` + strings.Repeat("[", 1<<19), 0, `shape: byte 15: "[[`},
	{"nested metadata", `{"__metadata__":{"a":{"b":"c"}}}`, 0, `found '{', expected '"'`},
	{"no data_offsets", `{"a":{"dtype":"U8","shape":[1]}}`, 1, `expected dtype, shape and data_offsets`},
	{"one data_offset", one("U8", "[1]", "[0]"), 1, `expected dtype, shape and data_offsets [begin, end]`},
	{"three data_offsets", one("U8", "[1]", "[0,1,2]"), 1, `data_offsets: more than 2 numbers`},
	{"unknown field", `{"a":{"dtype":"U8","stride":[1]}}`, 1, `field "stride": expected only dtype, shape and data_offsets`},
	{"duplicate field", `{"a":{"shape":[1],"shape":[1]}}`, 1, `shape: listed twice`},
	{"duplicate tensor", `{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"\u0061":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2, `tensor "a": listed twice`},
	{"unknown dtype", one("F7", "[1]", "[0,1]"), 1, `tensor "a": unknown dtype "F7"`},
	{"dtype not supported", one("F6_E2M3", "[4]", "[0,3]"), 3, `tensor "a": dtype F6_E2M3 is not supported`},
	{"dtype not a string", `{"a":{"dtype":8}}`, 0, `tensor "a": dtype: byte 14: found '8', expected '"'`},
	{"negative size", one("U8", "[-1]", "[0,1]"), 1, `shape: byte 28: "-1": expected an integer from 0 to`},
	{"fractional size", one("U8", "[1.0]", "[0,1]"), 1, `"1.0": expected an integer`},
	{"size with an exponent", one("U8", "[1e0]", "[0,1]"), 1, `"1e0": expected an integer`},
	{"size with a leading zero", one("U8", "[01]", "[0,1]"), 1, `"01": expected an integer`},
	{"size as a string", one("U8", `["1"]`, "[0,1]"), 1, `"\"1\"": expected an integer`},
	{"no size", one("U8", "[,]", "[0,1]"), 1, `"": expected an integer`},
	{"size beyond 64 bits", one("U8", "[18446744073709551616]", "[0,1]"), 1, `"18446744073709551616": expected an integer`},
	{"size beyond an int", one("U8", "[9223372036854775808]", "[0,1]"), 1, `"9223372036854775808": expected an integer`},
	{"product overflow", one("U8", fmt.Sprintf("[%d,2]", halfInt), "[0,1]"), 1, fmt.Sprintf("shape [%d 2] of U8: the size overflows", halfInt)},
	{"byte size overflow", one("F64", fmt.Sprintf("[%d]", halfInt), "[0,1]"), 1, `the size overflows`},
	{"too many dimensions", one("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1, `shape: more than 8 numbers`},
	{"shape too large", one("F32", "[2,2]", "[0,12]"), 12, `12 bytes for F32 [2 2], expected 16`},
	{"shape too small", one("F32", "[2]", "[0,12]"), 12, `12 bytes for F32 [2], expected 8`},
	{"half a byte of fp4", one("F4", "[2,3]", "[0,3]"), 3, `expected rows of a multiple of 2 values`},
	{"begin after end", one("U8", "[0]", "[1,0]"), 1, `data_offsets [1, 0]: expected begin <= end`},
	{"past the end", one("U8", "[9]", "[0,9]"), 8, `data_offsets [0, 9] pass the end of the 8 data bytes`},
	{"overlap", two(2, "[0,2]", "[1,3]"), 3, `tensor "b" starts at data byte 1, inside tensor "a" that ends at 2`},
	{"same bytes", two(2, "[0,2]", "[0,2]"), 2, `inside tensor "a"`},
	{"gap", two(1, "[0,1]", "[2,3]"), 3, `data bytes 1 to 2, before tensor "b", belong to no tensor`},
	{"gap at the start", one("U8", "[1]", "[1,2]"), 2, `data bytes 0 to 1, before tensor "a"`},
	{"gap at the end", one("U8", "[1]", "[0,1]"), 2, `data bytes 1 to 2, at the end`},
	{"data without tensors", `{}`, 2, `data bytes 0 to 2, at the end`},
	{"hostile name", `{"` + strings.Repeat("x", 1<<19) + `":1}`, 0, `expected '{'`},
}

func TestMalformedSafetensors(t *testing.T) {
	for _, test := range malformedSafetensors {
		t.Run(test.name, func(t *testing.T) {
			dir := writeFiles(t, map[string][]byte{"model.safetensors": safetensorsFile(test.header, test.data)})
			_, err := Open(dir)
			wantError(t, err, filepath.Join(dir, "model.safetensors"), test.want)
		})
	}
}

func TestMalformedHeaderLength(t *testing.T) {
	for _, test := range []struct {
		name, file, want string
	}{
		{"empty file", "", "the file is empty"},
		{"short file", "\x02\x00\x00", "3 bytes: expected at least the 8 of the header length"},
		{"zero", "\x00\x00\x00\x00\x00\x00\x00\x00{}", "header length 0: expected a JSON object"},
		{"past the file", "\x03\x00\x00\x00\x00\x00\x00\x00{}", "header length 3, but only 2 bytes follow"},
		{"past the cap", "\x01\xe1\xf5\x05\x00\x00\x00\x00{}", "header length 100000001: expected at most 100000000"},
		{"2^64-1", "\xff\xff\xff\xff\xff\xff\xff\xff{}", "header length 18446744073709551615: expected at most"},
		{"Git LFS pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "a Git LFS pointer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := writeFiles(t, map[string][]byte{"model.safetensors": []byte(test.file)})
			_, err := Open(dir)
			wantError(t, err, filepath.Join(dir, "model.safetensors"), test.want)
		})
	}
}

func TestPaddedHeader(t *testing.T) {
	dir := writeFiles(t, map[string][]byte{"model.safetensors": safetensorsFile("{ \"a\" :\t{\"shape\":[ ],\n\"data_offsets\":[0,1],\"dtype\":\"U8\"} } \n  ", 1)})
	if c := open(t, dir); len(c.Names()) != 1 {
		t.Errorf("names %v", c.Names())
	}
}
