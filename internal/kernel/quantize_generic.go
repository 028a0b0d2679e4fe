package kernel

import (
	"math"

	"github.com/foretoken/foretoken/internal/tensor"
)

// The absolute values, as bits, between which a block is quantised: those of
// infinities and NaNs are above all finite ones.
const (
	tinyBits     = 0x0d800000 // 2⁻¹⁰⁰
	infinityBits = 0x7f800000
)

func quantizeGeneric(dst []QBlock, x []float32) {
	for i := range dst {
		quantizeBlock(&dst[i], (*[qBlock]float32)(x[i*qBlock:]))
	}
}

func quantizeBlock(b *QBlock, x *[qBlock]float32) {
	*b = QBlock{}
	var most uint32
	for _, v := range x {
		most = max(most, math.Float32bits(v)&0x7fffffff)
	}
	switch {
	case most < tinyBits:
		return
	case most >= infinityBits:
		nan := math.Float32frombits(0x7fc00000)
		b.Scale, b.Sum = nan, [3]float32{nan, nan, nan}
		return
	}
	amax := math.Float32frombits(most)
	b.Scale = amax / 127
	inv := 127 / amax
	var sums [3]int32
	for i, v := range x {
		// |x|·inv is at most 127·(1+2⁻²³), which rounds to 127: nothing is clamped.
		q := int32(math.RoundToEven(float64(v * inv)))
		b.Q[i] = int8(q)
		sums[0] += q
		sums[1+i/(qBlock/2)] += q
	}
	for i, s := range sums {
		b.Neg[i] = -s
		b.Sum[i] = b.Scale * float32(s)
	}
}

func toBF16Generic(dst []uint16, x []float32) {
	for i, v := range x {
		dst[i] = tensor.F32ToBF16(v)
	}
}
