package main

import . "github.com/foretoken/foretoken/internal/kernel/gen/arm64/neon"

// mergeBlock adds the results of a block to those of the blocks before it.
func mergeBlock() {
	Function("mergeBlockNEON", "func(out, block, top, total, high, sum []float32, dim int)", "merges the results of a block into out, total and top.")
	out, block, n := pointer("out"), pointer("block"), length("top")
	top, total, high, sum := pointer("top"), pointer("total"), pointer("high"), pointer("sum")
	exp, zero := NewExp(), NewV()
	ZERO(zero)
	Loop(n, 1, func() {
		// Word 0 is for what is merged, word 1 for the block.
		x, t := NewV(), NewV()
		LDRS(x, top, 0)
		LDRS(t, high, 0)
		INS(x, 1, t, 0)
		FMAX(t, t, x)
		ST1(t, 0, top)
		DUP(t, t, 0)
		FSUB(x, x, t)
		exp.Apply(x)

		a, b := NewV(), NewV()
		LDRS(a, total, 0)
		LDRS(b, sum, 0)
		FMULElem(a, a, x, 0)
		FMLAElem(a, b, x, 1)
		ST1(a, 0, total)

		y, z := [2]V{NewV(), NewV()}, [2]V{NewV(), NewV()}
		Loop(Param("dim"), 8, func() {
			LDP(y[0], y[1], out, 0)
			LDP(z[0], z[1], block, 0)
			for i := range y {
				FMULElem(y[i], y[i], x, 0)
				FMLAElem(y[i], z[i], x, 1)
			}
			STPPost(y[0], y[1], out, 32)
			STPPost(zero, zero, block, 32)
		})
		for _, r := range []R{top, total, high, sum} {
			Add(r, 4)
		}
	})
	Return()
}

// normalise divides output vectors by the sums of their weights.
func normalise() {
	Function("normaliseNEON", "func(dst, src, total []float32, dim int)", "divides vectors of src by their total.")
	dst, src, total, n := pointer("dst"), pointer("src"), pointer("total"), length("total")
	one := NewV()
	Broadcast(one, 0x3f800000)
	Loop(n, 1, func() {
		by, y := NewV(), [2]V{NewV(), NewV()}
		LDRS(by, total, 0)
		FDIV(by, one, by)
		Add(total, 4)
		Loop(Param("dim"), 8, func() {
			LDPPost(y[0], y[1], src, 32)
			FMULElem(y[0], y[0], by, 0)
			FMULElem(y[1], y[1], by, 0)
			STPPost(y[0], y[1], dst, 32)
		})
	})
	Return()
}
