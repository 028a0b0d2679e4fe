// Command attention writes the attention kernels for arm64. What each one
// computes, and in which order, is said in kernel.attentionKernels; how the
// cache is laid out, in kernel.kvLayout.
package main

import . "github.com/foretoken/foretoken/internal/kernel/gen/arm64/neon"

func main() {
	for _, k := range []kind{f32, f16, bf16, q8} {
		scores(k)
		values(k)
	}
	softmax()
	mergeBlock()
	normalise()
	packF16()
	packQ8()
	packKeys("32", 4)
	packKeys("16", 2)
	packKeysQ8()
	packValues(f32, "32")
	packValues(f16, "16")
	packValues(q8, "Q8")
	Generate()
}

// columns is the width of a panel, and the number of positions of a block.
const columns = 32

// pointer loads the address of a slice that is a parameter, length its length.
func pointer(name string) R { return Param(name + "_base") }
func length(name string) R  { return Param(name + "_len") }

// A kind is how the cache stores values.
type kind struct {
	name string
	size int // bytes of a value, scales not counted
}

var (
	f32  = kind{"F32", 4}
	f16  = kind{"F16", 2}
	bf16 = kind{"BF16", 2}
	q8   = kind{"Q8", 1}
)

// A panel of Q8 starts with the scales of its 32 positions.
const (
	q8Scales = 2 * columns
	q8Panel  = q8Scales + columns*columns
)

// panel is the size of a panel of 32 rows.
func (k kind) panel() int {
	if k == q8 {
		return q8Panel
	}
	return columns * columns * k.size
}

// load reads eight values, without their scales.
func (k kind) load(v [2]V, from R, offset int) {
	switch k {
	case f32:
		LDP(v[0], v[1], from, offset)
	case f16:
		LDR(v[0], from, offset)
		FCVTL2(v[1], v[0])
		FCVTL(v[0], v[0])
	case bf16: // the upper half of a float32
		LDR(v[0], from, offset)
		SHLL2(v[1], v[0])
		SHLL(v[0], v[0])
	case q8:
		LDRD(v[0], from, offset)
		SXTLB(v[0], v[0])
		SXTL2H(v[1], v[0])
		SXTLH(v[0], v[0])
		SCVTF(v[0], v[0])
		SCVTF(v[1], v[1])
	}
}
