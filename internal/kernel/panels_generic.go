package kernel

import (
	"unsafe"

	"github.com/foretoken/foretoken/internal/kernel/panel"
	"github.com/foretoken/foretoken/internal/tensor"
)

// genericPanels run everywhere, with float activations: plain Go gains nothing
// from integers.
func genericPanels() panelKernels {
	k := panelKernels{tree: treeGeneric}
	k.float[panel.F32] = []dotFunc{dotF32Generic(1), dotF32Generic(2)}
	for i := range panel.Kinds {
		k.unpack[i] = unpackGeneric(&panel.Kinds[i])
	}
	return k
}

func unpackGeneric(k *panel.Kind) unpackFunc {
	return func(dst *float32, src *byte, groups uint64) {
		blocks := int(groups) * k.Group()
		k.Unpack(unsafe.Slice(dst, blocks*panel.Block*panel.Rows), unsafe.Slice(src, k.Bytes(blocks)), blocks)
	}
}

// at returns the n values of row t.
func at[T any](base *byte, t int, stride uint64, n int) []T {
	return unsafe.Slice((*T)(unsafe.Add(unsafe.Pointer(base), t*int(stride))), n)
}

// dotF32Generic sums each block by itself first, which bounds the rounding
// error of long rows.
func dotF32Generic(T int) dotFunc {
	return func(w, a, out, _ *byte, groups, aStride, outStride, _ uint64) {
		n := int(groups)
		weights := unsafe.Slice((*float32)(unsafe.Pointer(w)), n*panel.Block*panel.Rows)
		x0, y0 := at[float32](a, 0, aStride, n*panel.Block), at[float32](out, 0, outStride, panel.Rows)
		if T == 1 {
			for b := range n {
				dot32x1((*[panel.Rows]float32)(y0), weights[b*panel.Block*panel.Rows:], (*[panel.Block]float32)(x0[b*panel.Block:]))
			}
			return
		}
		x1, y1 := at[float32](a, 1, aStride, n*panel.Block), at[float32](out, 1, outStride, panel.Rows)
		for b := range n {
			dot32x2((*[panel.Rows]float32)(y0), (*[panel.Rows]float32)(y1), weights[b*panel.Block*panel.Rows:],
				(*[panel.Block]float32)(x0[b*panel.Block:]), (*[panel.Block]float32)(x1[b*panel.Block:]))
		}
	}
}

// dot32x1 adds one block of 32 columns of 32 rows, four rows at a time, whose
// sums the compiler keeps in registers.
func dot32x1(y *[panel.Rows]float32, w []float32, x *[panel.Block]float32) {
	for r := 0; r < panel.Rows; r += 4 {
		p := (*[4]float32)(w[r:])
		s0, s1, s2, s3 := float32(p[0]*x[0]), float32(p[1]*x[0]), float32(p[2]*x[0]), float32(p[3]*x[0])
		for col := 1; col < panel.Block; col++ {
			p, v := (*[4]float32)(w[col*panel.Rows+r:]), x[col]
			s0 += float32(p[0] * v)
			s1 += float32(p[1] * v)
			s2 += float32(p[2] * v)
			s3 += float32(p[3] * v)
		}
		q := (*[4]float32)(y[r:])
		q[0] += s0
		q[1] += s1
		q[2] += s2
		q[3] += s3
	}
}

// dot32x2 is dot32x1 for two rows of activations.
func dot32x2(y0, y1 *[panel.Rows]float32, w []float32, x0, x1 *[panel.Block]float32) {
	for r := 0; r < panel.Rows; r += 4 {
		p, u, v := (*[4]float32)(w[r:]), x0[0], x1[0]
		s0, s1, s2, s3 := float32(p[0]*u), float32(p[1]*u), float32(p[2]*u), float32(p[3]*u)
		t0, t1, t2, t3 := float32(p[0]*v), float32(p[1]*v), float32(p[2]*v), float32(p[3]*v)
		for col := 1; col < panel.Block; col++ {
			p, u, v := (*[4]float32)(w[col*panel.Rows+r:]), x0[col], x1[col]
			s0 += float32(p[0] * u)
			s1 += float32(p[1] * u)
			s2 += float32(p[2] * u)
			s3 += float32(p[3] * u)
			t0 += float32(p[0] * v)
			t1 += float32(p[1] * v)
			t2 += float32(p[2] * v)
			t3 += float32(p[3] * v)
		}
		p0, p1 := (*[4]float32)(y0[r:]), (*[4]float32)(y1[r:])
		p0[0] += s0
		p0[1] += s1
		p0[2] += s2
		p0[3] += s3
		p1[0] += t0
		p1[1] += t1
		p1[2] += t2
		p1[3] += t3
	}
}

// dotInt8Generic is the reference of products with QBlocks.
func dotInt8Generic(k *panel.Kind, T int) dotFunc {
	return func(w, a, out, _ *byte, groups, aStride, outStride, _ uint64) {
		n := int(groups)
		data := unsafe.Slice(w, n*k.GroupBytes())
		for t := range T {
			x, y := at[QBlock](a, t, aStride, n*k.Group()), at[float32](out, t, outStride, panel.Rows)
			for r := range y {
				y[r] = 0
			}
			for g := range n {
				for b := range k.Group() {
					dotBlock((*[panel.Rows]float32)(y), k, data[g*k.GroupBytes():], b, &x[g*k.Group()+b])
				}
			}
		}
	}
}

// dotBlock adds the products of block b of a group with one QBlock.
func dotBlock(y *[panel.Rows]float32, k *panel.Kind, group []byte, b int, x *QBlock) {
	codes := k.Block(group, b)
	for sub := range k.Subs() {
		field := 0
		if k.Subs() > 1 {
			field = 1 + sub
		}
		for r := range y {
			sum := int32(k.Offset) * x.Neg[field]
			for g := sub * k.Sub / 4; g < (sub+1)*k.Sub/4; g++ {
				c := k.Codes(codes, g, r)
				for i := range 4 {
					sum += int32(uint8(c>>(8*i))) * int32(x.Q[4*g+i])
				}
			}
			scale, low := k.Scales(group, b, sub, r)
			y[r] += float32(float32(scale*x.Scale) * float32(sum))
			switch {
			case k.Min && k.Scale.TwoLevel():
				y[r] -= float32(low * x.Sum[field])
			case k.Min:
				y[r] += float32(low * x.Sum[field])
			}
		}
	}
}

// dotBF16Generic is the reference of products with bfloat16 activations.
func dotBF16Generic(T int) dotFunc {
	return func(w, a, out, _ *byte, groups, aStride, outStride, _ uint64) {
		n := int(groups)
		k := &panel.Kinds[panel.BF16]
		weights := make([]float32, n*panel.Block*panel.Rows)
		k.Unpack(weights, unsafe.Slice(w, k.Bytes(n)), n)
		for t := range T {
			x, y := at[uint16](a, t, aStride, n*panel.Block), at[float32](out, t, outStride, panel.Rows)
			clear(y)
			for col, h := range x {
				v := tensor.BF16ToF32(h)
				for r := range y {
					y[r] += float32(weights[col*panel.Rows+r] * v)
				}
			}
		}
	}
}

func treeGeneric(out, parts *float32, rows, outStride, partStride uint64) {
	base := (*byte)(unsafe.Pointer(parts))
	for t := range int(rows) {
		y := at[float32]((*byte)(unsafe.Pointer(out)), t, outStride, panel.Rows)
		for r := range y {
			var v [maxSegments]float32
			for s := range v {
				v[s] = at[float32](base, s, partStride, int(rows)*panel.Rows)[t*panel.Rows+r]
			}
			y[r] = ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]))
		}
	}
}
