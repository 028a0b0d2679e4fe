package kernel

import (
	"encoding/binary"
	"math"

	"github.com/foretoken/foretoken/internal/tensor"
)

// attentionKernels are what attention is made of. M query vectors, mostly the
// heads of some rows that share a key-value head, go through a block of KVBlock
// positions together. What one of them gets does not depend on the others: an
// element is one chain of (fused) multiply-adds, in the order given here.
//
// Kernels other than pack may require that ValueDim is a multiple of valueUnit;
// next is memory to prefetch at the pace of what is read. Those for kvPairs and
// softmaxBF16 are there where layoutOf chooses this kind; subnormal bfloat16 is
// 0 to them, and so may be a subnormal sum.
type attentionKernels struct {
	// scores writes s[i][l] = Σ_d q[i][d]·keys[d][l], from d = 0 on, for q [M, keyDim]
	// and all lanes of a block: s [M, KVBlock]. In Q8_0, the sum over a panel's
	// codes is multiplied by the scale and added to those of the panels before. In
	// kvPairs, q is [M, keyDim] bfloat16 and two dimensions are one step.
	scores [kvKinds]func(s, q []float32, keys []byte, keyDim int, next *byte)

	// softmax replaces scores [M, KVBlock] by weights. For the lanes that are set
	// in lanes[i], x = scale·s[i]; high[i] is their maximum (NaN passed over, and
	// no less than -MaxFloat32), s[i] = exp(x-high[i]) and sum[i] is the sum over
	// the lanes, added as a tree: halves, quarters, and so on. Other lanes have a
	// weight of 0, whatever they held.
	softmax func(s []float32, lanes []uint32, high, sum []float32, scale float32)

	// softmaxBF16 is softmax with weights that are rounded to bfloat16, ties to
	// even, before they are added: what their values are divided by is what these
	// were weighted with.
	softmaxBF16 func(s []float32, lanes []uint32, high, sum []float32, scale float32)

	// values adds Σ_l w[i][l]·values[l][d] for lanes from ≤ l < to, from the
	// first on, to out[i][d]: w [M, KVBlock], out [M, valueDim]. The values of
	// other lanes are not touched. In Q8_0, codes are summed with weights that are
	// multiplied by the scales: spare [M, KVBlock] is room for these. In kvPairs,
	// weights are bfloat16 and two positions are one step, of which one that is
	// not in [from, to) is 0.
	values [kvKinds]func(out, w, spare []float32, values []byte, valueDim, from, to int, next *byte)

	// merge adds a block to what was merged before it. With t = max(top, high),
	// out and total are multiplied by exp(top-t), block and sum by exp(high-t) and
	// added; top becomes t, and block zero. out and block are [M, dim].
	merge func(out, block, top, total, high, sum []float32, dim int)

	// normalise writes src[i]·(1/total[i]) for each vector of dim values.
	normalise func(dst, src, total []float32, dim int)

	// pack stores src as tensor.Encode does; in Q8_0, a block with a value that is
	// not finite or too large for its scale decodes to NaN.
	pack [kvKinds]func(dst []byte, src []float32)
}

const valueUnit = 16

// attentionGeneric is plain Go.
var attentionGeneric = attentionKernels{
	scores:      [kvKinds]func(s, q []float32, keys []byte, keyDim int, next *byte){scoresF32, scoresF16, scoresBF16, scoresQ8, scoresPairs},
	softmax:     softmaxGeneric,
	softmaxBF16: softmaxBF16Generic,
	values:      [kvKinds]func(out, w, spare []float32, values []byte, valueDim, from, to int, next *byte){valuesF32, valuesF16, valuesBF16, valuesQ8, valuesPairs},
	merge:       mergeBlockGeneric,
	normalise:   normaliseGeneric,
	pack:        [kvKinds]func(dst []byte, src []float32){packF32, packF16, packBF16, packQ8, packBF16},
}

// axpy adds a·x to y.
func axpy(y []float32, a float32, x []float32) {
	x = x[:len(y)]
	for i := range y {
		y[i] += float32(a * x[i])
	}
}

// A panelRow is a row of a panel, decoded.
type panelRow [KVBlock]float32

// decode fills the first n values with row r of a panel that is n wide.
func (p *panelRow) decode(d tensor.DType, panel []byte, r, n int) {
	b := panel[n*r*d.BlockBytes():]
	for i := range p[:n] {
		switch d {
		case tensor.F32:
			p[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		case tensor.F16:
			p[i] = tensor.F16ToF32(binary.LittleEndian.Uint16(b[2*i:]))
		case tensor.BF16:
			p[i] = tensor.BF16ToF32(binary.LittleEndian.Uint16(b[2*i:]))
		}
	}
}

// codes fills p with the codes of row r of a panel of Q8_0.
func (p *panelRow) codes(panel []byte, r int) {
	for i, c := range panel[q8Codes+KVBlock*r:][:KVBlock] {
		p[i] = float32(int8(c))
	}
}

// q8Scale is the scale of a position in a panel of Q8_0.
func q8Scale(panel []byte, position int) float32 {
	return tensor.F16ToF32(binary.LittleEndian.Uint16(panel[2*position:]))
}

func scoresF32(s, q []float32, keys []byte, keyDim int, _ *byte) {
	scoresGeneric(s, q, keys, tensor.F32, keyDim)
}

func scoresF16(s, q []float32, keys []byte, keyDim int, _ *byte) {
	scoresGeneric(s, q, keys, tensor.F16, keyDim)
}

func scoresBF16(s, q []float32, keys []byte, keyDim int, _ *byte) {
	scoresGeneric(s, q, keys, tensor.BF16, keyDim)
}

func scoresGeneric(s, q []float32, keys []byte, dtype tensor.DType, keyDim int) {
	clear(s)
	var row panelRow
	for d := range keyDim {
		row.decode(dtype, keys, d, KVBlock)
		for i := range len(s) / KVBlock {
			axpy(s[i*KVBlock:][:KVBlock], q[i*keyDim+d], row[:])
		}
	}
}

func scoresQ8(s, q []float32, keys []byte, keyDim int, _ *byte) {
	clear(s)
	var row, sum panelRow
	for i := range len(s) / KVBlock {
		for p := 0; p < keyDim; p += KVBlock {
			panel := keys[p/KVBlock*q8Panel:]
			clear(sum[:])
			for d := range KVBlock {
				row.codes(panel, d)
				axpy(sum[:], q[i*keyDim+p+d], row[:])
			}
			for l, x := range sum {
				s[i*KVBlock+l] += float32(x * q8Scale(panel, l))
			}
		}
	}
}

func valuesF32(out, w, _ []float32, values []byte, valueDim, from, to int, _ *byte) {
	valuesGeneric(out, w, values, tensor.F32, valueDim, from, to)
}

func valuesF16(out, w, _ []float32, values []byte, valueDim, from, to int, _ *byte) {
	valuesGeneric(out, w, values, tensor.F16, valueDim, from, to)
}

func valuesBF16(out, w, _ []float32, values []byte, valueDim, from, to int, _ *byte) {
	valuesGeneric(out, w, values, tensor.BF16, valueDim, from, to)
}

func valuesQ8(out, w, _ []float32, values []byte, valueDim, from, to int, _ *byte) {
	valuesGeneric(out, w, values, tensor.Q8_0, valueDim, from, to)
}

func valuesGeneric(out, w []float32, values []byte, dtype tensor.DType, valueDim, from, to int) {
	var row panelRow
	for d := 0; d < valueDim; d += KVBlock {
		n := min(KVBlock, valueDim-d)
		panel := values[dtype.RowBytes(d)*KVBlock:]
		for l := from; l < to; l++ {
			scale := float32(1)
			if dtype == tensor.Q8_0 {
				scale = q8Scale(panel, l)
				row.codes(panel, l)
			} else {
				row.decode(dtype, panel, l, n)
			}
			for i := range len(w) / KVBlock {
				axpy(out[i*valueDim+d:][:n], w[i*KVBlock+l]*scale, row[:n])
			}
		}
	}
}

// bf16 decodes bfloat16 as VDPBF16PS does: a subnormal number is 0.
func bf16(bits uint16) float32 {
	if bits&0x7f80 == 0 {
		bits &= 0x8000
	}
	return tensor.BF16ToF32(bits)
}

// pairHalf is value i of some pairs of bfloat16.
func pairHalf(pairs []byte, i int) float32 { return bf16(binary.LittleEndian.Uint16(pairs[2*i:])) }

func scoresPairs(s, q []float32, keys []byte, keyDim int, _ *byte) {
	clear(s)
	queries := bytesOf(q)
	for i := range len(s) / KVBlock {
		for d := 0; d < keyDim; d += 2 {
			x, y := pairHalf(queries, i*keyDim+d), pairHalf(queries, i*keyDim+d+1)
			for l := range KVBlock {
				key := d*KVBlock + 2*l
				s[i*KVBlock+l] += float32(x*pairHalf(keys, key)) + float32(y*pairHalf(keys, key+1))
			}
		}
	}
}

func valuesPairs(out, w, _ []float32, values []byte, valueDim, from, to int, _ *byte) {
	for i := range len(w) / KVBlock {
		product := func(l, d int) float32 {
			if l < from || l >= to {
				return 0
			}
			return bf16(uint16(math.Float32bits(w[i*KVBlock+l])>>16)) * pairHalf(values, l/2*2*valueDim+2*d+l%2)
		}
		for l := from &^ 1; l < to; l += 2 {
			for d := range valueDim {
				out[i*valueDim+d] += product(l, d) + product(l+1, d)
			}
		}
	}
}

func softmaxGeneric(s []float32, lanes []uint32, high, sum []float32, scale float32) {
	softmaxRounded(s, lanes, high, sum, scale, false)
}

func softmaxBF16Generic(s []float32, lanes []uint32, high, sum []float32, scale float32) {
	softmaxRounded(s, lanes, high, sum, scale, true)
}

func softmaxRounded(s []float32, lanes []uint32, high, sum []float32, scale float32, toBF16 bool) {
	for i, seen := range lanes {
		x := (*[KVBlock]float32)(s[i*KVBlock:])
		top := float32(-math.MaxFloat32)
		for l := range x {
			x[l] *= scale
			if seen>>l&1 == 0 {
				x[l] = negInf
			}
			if x[l] > top {
				top = x[l]
			}
		}
		for l := range x {
			x[l] = expGeneric(x[l] - top)
			if toBF16 {
				x[l] = tensor.BF16ToF32(tensor.F32ToBF16(x[l]))
			}
		}
		tree := *x
		for n := KVBlock / 2; n > 0; n /= 2 {
			for l := range n {
				tree[l] += tree[l+n]
			}
		}
		high[i], sum[i] = top, tree[0]
	}
}

var negInf = float32(math.Inf(-1))

func mergeBlockGeneric(out, block, top, total, high, sum []float32, dim int) {
	for i := range top {
		t := top[i]
		if high[i] > t {
			t = high[i]
		}
		keep, gain := expGeneric(top[i]-t), expGeneric(high[i]-t)
		top[i], total[i] = t, float32(total[i]*keep)+float32(sum[i]*gain)
		o, b := out[i*dim:][:dim], block[i*dim:][:dim]
		for d := range o {
			o[d] = float32(o[d]*keep) + float32(b[d]*gain)
			b[d] = 0
		}
	}
}

func normaliseGeneric(dst, src, total []float32, dim int) {
	for i, t := range total {
		inv := 1 / t
		o, x := dst[i*dim:][:dim], src[i*dim:][:dim]
		for d := range o {
			o[d] = x[d] * inv
		}
	}
}

func packF32(dst []byte, src []float32)  { encode(tensor.F32, dst, src) }
func packF16(dst []byte, src []float32)  { encode(tensor.F16, dst, src) }
func packBF16(dst []byte, src []float32) { encode(tensor.BF16, dst, src) }

func encode(d tensor.DType, dst []byte, src []float32) {
	if err := tensor.Encode(d, dst, src); err != nil {
		panic(err) // these types encode anything
	}
}

func packQ8(dst []byte, src []float32) {
	for ; len(src) > 0; dst, src = dst[q8Row:], src[32:] {
		if err := tensor.Encode(tensor.Q8_0, dst[:q8Row], src[:32]); err != nil {
			clear(dst[:q8Row])
			binary.LittleEndian.PutUint16(dst, 0x7e00) // NaN
		}
	}
}
