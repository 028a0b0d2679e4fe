package main

import (
	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The kernels of pairs of bfloat16 multiply two dimensions, or two positions,
// in an instruction that avo does not know: their vectors are assigned by hand.

// A pairTile is sums of rows × vectors in the first registers; those behind
// are free.
type pairTile struct{ rows, vectors int }

func (t pairTile) acc(row, v int) reg.VecPhysical { return x86.Z[row*t.vectors+v] }
func (t pairTile) free(i int) reg.VecPhysical     { return x86.Z[t.rows*t.vectors+i] }

func (t pairTile) each(do func(v reg.VecPhysical, row, vector int)) {
	for row := range t.rows {
		for v := range t.vectors {
			do(t.acc(row, v), row, v)
		}
	}
}

// step adds to every row of the tile its pair times a row of pairs.
func (t pairTile) step(pair func(row int) Mem, load func(v int, to reg.VecPhysical)) {
	if t.rows < t.vectors {
		x := t.free(t.rows)
		for row := range t.rows {
			VPBROADCASTD(pair(row), t.free(row))
		}
		for v := range t.vectors {
			load(v, x)
			for row := range t.rows {
				x86.DotBF16(t.acc(row, v), x, t.free(row))
			}
		}
		return
	}
	x := t.free(t.vectors)
	for v := range t.vectors {
		load(v, t.free(v))
	}
	for row := range t.rows {
		VPBROADCASTD(pair(row), x)
		for v := range t.vectors {
			x86.DotBF16(t.acc(row, v), t.free(v), x)
		}
	}
}

// scoresPairs multiplies query vectors, rounded to bfloat16, with the keys of a
// block: a row is a pair of dimensions of all positions, two vectors.
func (m *machine) scoresPairs() {
	m.text("scoresPairs", "func(s, q []float32, keys []byte, keyDim int, next *byte)",
		"writes the scores of query vectors q, pairs of bfloat16, with the keys of a block.")
	s, q := base("s"), base("q")
	n := length("s")
	SHRQ(U8(5), n)
	stride := param("keyDim")
	ADDQ(stride, stride)
	strides := newMultiples(stride, m.most())
	next := prefetcher{param("next")}

	m.eachTile(n, m.most(), func(rows int) {
		t := pairTile{rows, m.vectors()}
		t.each(func(v reg.VecPhysical, _, _ int) { VPXORD(v, v, v) })
		keys, pairs, pair := base("keys"), param("keyDim"), GP64()
		SHRQ(U8(1), pairs)
		MOVQ(q, pair)
		loop := label("loop")
		Label(loop)
		next.lines(4 * columns)
		t.step(
			func(row int) Mem { return strides.at(pair, row, 0) },
			func(v int, to reg.VecPhysical) { VMOVUPS(Mem{Base: keys, Disp: m.bytes() * v}, to) })
		ADDQ(U32(4*columns), keys)
		ADDQ(U32(4), pair)
		DECQ(pairs)
		JNZ(LabelRef(loop))
		t.each(func(v reg.VecPhysical, row, vector int) {
			VMOVUPS(v, Mem{Base: s, Disp: 4*columns*row + m.bytes()*vector})
		})
		// Keys are in the first-level cache now; so is what would be prefetched.
		MOVQ(base("keys"), next.at)
		ADDQ(U32(uint32(4*columns*rows)), s)
		end := GP64()
		LEAQ(strides.at(q, rows-1, 0), end)
		LEAQ(Mem{Base: end, Index: stride, Scale: 1}, q)
	})
}

// valuesPairs adds the weighted values of a block to outputs: a row is a pair
// of positions of all dimensions, and as long as an output.
func (m *machine) valuesPairs() {
	m.text("valuesPairs", "func(out, w, spare []float32, values []byte, valueDim, from, to int, next *byte)",
		"adds to out the values of positions [from, to) of a block, pairs of bfloat16, weighted with w.")
	f := &pairsFunc{machine: m, out: base("out"), w: base("w"), n: length("w"), seen: GP64(), next: prefetcher{param("next")}}
	SHRQ(U8(5), f.n)
	stride := param("valueDim")
	SHLQ(U8(2), stride)
	f.strides = newMultiples(stride, m.most())
	m.eachTile(f.n, m.most(), f.rows)
}

type pairsFunc struct {
	*machine
	out, w, n reg.GPVirtual
	strides   multiples
	seen      reg.GPVirtual // a bit for each position
	next      prefetcher
}

// rows takes a tile through all dimensions, as many at a time as registers
// allow.
func (f *pairsFunc) rows(rows int) {
	f.weights(rows)
	values, dims := base("values"), param("valueDim")
	for vectors := []int{0, 8, 8, 8, 4, 4, 4, 2, 2}[rows]; vectors > 0; vectors /= 2 {
		loop, rest := label("dims"), label("rest")
		Label(loop)
		CMPQ(dims, U32(uint32(vectors*f.lanes())))
		JB(LabelRef(rest))
		f.pass(pairTile{rows, vectors}, values)
		ADDQ(U32(uint32(vectors*f.bytes())), values)
		ADDQ(U32(uint32(vectors*f.bytes())), f.out)
		SUBQ(U32(uint32(vectors*f.lanes())), dims)
		JMP(LabelRef(loop))
		Label(rest)
	}
	// Values are in the first-level cache now; so is what would be prefetched.
	MOVQ(base("values"), f.next.at)
	ADDQ(U32(uint32(4*columns*rows)), f.w)
	// out is behind the first row.
	LEAQ(f.strides.at(f.out, rows-1, 0), f.out)
}

// weights leaves the bfloat16 that weights are in spare, and 0 for positions
// that are not seen.
func (f *pairsFunc) weights(rows int) {
	from, to, spare := param("from"), param("to"), base("spare")
	low := GP64()
	XORQ(low, low)
	XORQ(f.seen, f.seen)
	BTSQ(from, low)
	BTSQ(to, f.seen)
	SUBQ(low, f.seen)
	KMOVQ(f.seen, reg.K1)
	KSHIFTRD(U8(uint8(f.lanes())), reg.K1, reg.K2)
	for row := range rows {
		for v := range f.vectors() {
			w := x86.Z[2*row%16+v]
			VMOVUPS_Z(Mem{Base: f.w, Disp: 4*columns*row + f.bytes()*v}, []reg.Register{reg.K1, reg.K2}[v], w)
			VPSRLD(U8(16), w, w)
			VPMOVDW(w, Mem{Base: spare, Disp: 2*columns*row + f.bytes()/2*v})
		}
	}
}

// pass adds some vectors of dimensions.
func (f *pairsFunc) pass(t pairTile, values reg.GPVirtual) {
	at := func(row, v int) Mem { return f.strides.at(f.out, row, f.bytes()*v) }
	t.each(func(v reg.VecPhysical, row, vector int) { VMOVUPS(at(row, vector), v) })

	pair, row, weights, seen, mask := param("from"), GP64(), base("spare"), GP64(), GP64()
	ANDQ(I8(-2), pair)
	MOVQ(f.seen, seen)
	MOVQ(pair, reg.RCX)
	SHRQ(reg.CL, seen)
	LEAQ(Mem{Base: weights, Index: pair, Scale: 2}, weights)
	SHRQ(U8(1), pair)
	MOVQ(f.strides.x1, row)
	IMULQ(pair, row)
	ADDQ(values, row)
	loop := label("loop")
	Label(loop)
	f.next.lines(t.vectors * f.bytes())
	// What is not seen may be no number: it is read as 0.
	MOVQ(seen, mask)
	ANDQ(U32(3), mask)
	IMUL3Q(U32(0x55555555), mask, mask)
	KMOVD(mask.As32(), reg.K1)
	t.step(
		func(row int) Mem { return Mem{Base: weights, Disp: 2 * columns * row} },
		func(v int, to reg.VecPhysical) { VMOVDQU16_Z(Mem{Base: row, Disp: f.bytes() * v}, reg.K1, to) })
	ADDQ(f.strides.x1, row)
	ADDQ(U32(4), weights)
	SHRQ(U8(2), seen)
	JNZ(LabelRef(loop))
	t.each(func(v reg.VecPhysical, row, vector int) { VMOVUPS(v, at(row, vector)) })
}
