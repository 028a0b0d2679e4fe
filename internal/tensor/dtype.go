// Package tensor holds what a stored number is: dtypes, block formats and
// the weight matrix that kernels read. It knows no file format and computes
// nothing beyond decoding and encoding.
package tensor

import "fmt"

// A DType is a storage type. Quantised types are stored in blocks of
// BlockLen values; for all others a block is one value.
type DType uint8

// The storage types of safetensors and GGUF that can be decoded.
const (
	Invalid DType = iota
	F64
	F32
	F16
	BF16
	F8E5M2
	F8E4M3 // e4m3fn: largest value 448, two NaN codes, no infinities
	F8E8M0 // a power of two; the scale type of MX formats
	F4E2M1 // two values a byte, the low nibble first
	I64
	I32
	I16
	I8
	U64
	U32
	U16
	U8
	Bool

	// ggml block formats; layouts in blocks_*.go.
	Q4_0
	Q4_1
	Q5_0
	Q5_1
	Q8_0
	Q2_K
	Q3_K
	Q4_K
	Q5_K
	Q6_K
	IQ4_NL
	IQ4_XS
	MXFP4
)

// layout says how a DType is stored.
type layout struct {
	name       string
	blockLen   int // values in a block
	blockBytes int // bytes in a block
}

var layouts = [...]layout{
	Invalid: {"invalid", 1, 0},
	F64:     {"F64", 1, 8},
	F32:     {"F32", 1, 4},
	F16:     {"F16", 1, 2},
	BF16:    {"BF16", 1, 2},
	F8E5M2:  {"F8_E5M2", 1, 1},
	F8E4M3:  {"F8_E4M3", 1, 1},
	F8E8M0:  {"F8_E8M0", 1, 1},
	F4E2M1:  {"F4_E2M1", 2, 1},
	I64:     {"I64", 1, 8},
	I32:     {"I32", 1, 4},
	I16:     {"I16", 1, 2},
	I8:      {"I8", 1, 1},
	U64:     {"U64", 1, 8},
	U32:     {"U32", 1, 4},
	U16:     {"U16", 1, 2},
	U8:      {"U8", 1, 1},
	Bool:    {"BOOL", 1, 1},
	Q4_0:    {"Q4_0", 32, 18},
	Q4_1:    {"Q4_1", 32, 20},
	Q5_0:    {"Q5_0", 32, 22},
	Q5_1:    {"Q5_1", 32, 24},
	Q8_0:    {"Q8_0", 32, 34},
	Q2_K:    {"Q2_K", 256, 84},
	Q3_K:    {"Q3_K", 256, 110},
	Q4_K:    {"Q4_K", 256, 144},
	Q5_K:    {"Q5_K", 256, 176},
	Q6_K:    {"Q6_K", 256, 210},
	IQ4_NL:  {"IQ4_NL", 32, 18},
	IQ4_XS:  {"IQ4_XS", 256, 136},
	MXFP4:   {"MXFP4", 32, 17},
}

// String returns the name under which model files know d.
func (d DType) String() string {
	if int(d) >= len(layouts) {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return layouts[d].name
}

// IsInteger reports whether values are whole numbers or flags: indices, or what
// other formats pack into them, but no weights.
func (d DType) IsInteger() bool { return d >= I64 && d <= Bool }

// BlockLen is the number of values in one storage block.
func (d DType) BlockLen() int { return layouts[d].blockLen }

// BlockBytes is the size of one storage block.
func (d DType) BlockBytes() int { return layouts[d].blockBytes }

// RowBytes is the size of a row of n values. n must be a multiple of
// BlockLen: files that break this are refused when they are opened.
func (d DType) RowBytes(n int) int { return n / d.BlockLen() * d.BlockBytes() }
