package main

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/kernel/panel"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// dotFloat adds to out the products of a panel of floats with T rows of float32,
// each block summed by itself first.
func dotFloat(k *panel.Kind, T int) {
	function(fmt.Sprintf("float%sT%dAVX2", k.Name, T), dotSignature,
		fmt.Sprintf("adds the products of a panel of %s and %d rows of float32 to out", k.Name, T))
	w := Load(Param("w"), GP64())
	n := Load(Param("groups"), GP64())
	out := Load(Param("out"), GP64())
	next := Load(Param("next"), GP64())
	a := newRows(Load(Param("a"), GP64()), T, "aStride")

	// Twelve sums leave room for what they are made of.
	vectors := 2
	if T <= 2 {
		vectors = 4
	}
	sums, weights, b := ymms(T*vectors), ymms(vectors), ymm()
	var high Op
	if k.ID == panel.BF16 {
		high = constant(0xffff0000)
	}
	Label("loop")
	walk(vectors, func(s steps) {
		for col := range panel.Block {
			for v, w8 := range weights {
				column(k, s, w, high, col, v, w8)
			}
			lines := k.GroupBytes() / line * lanes * vectors / panel.Rows // of a step
			for i := col * lines / panel.Block; i < (col+1)*lines/panel.Block; i++ {
				if T < prefetchFrom {
					break
				}
				PREFETCHT1(s.at(next, line/(lanes*vectors), k.GroupBytes()/lines*i, 0))
			}
			for t := range T {
				VBROADCASTSS(a.at(t, 4*col), b)
				for v, w8 := range weights {
					if col == 0 {
						VMULPS(b, w8, sums[t*vectors+v])
					} else {
						VFMADD231PS(b, w8, sums[t*vectors+v])
					}
				}
			}
		}
		outputs(out, T, func(t int, at Register) {
			for v := range vectors {
				sum, m := sums[t*vectors+v], s.at(at, 4, 0, v)
				VADDPS(m, sum, sum)
				VMOVUPS(sum, m)
			}
		})
	})
	ADDQ(U32(uint32(k.GroupBytes())), w)
	ADDQ(U32(4*panel.Block), a.base)
	if T >= prefetchFrom {
		ADDQ(param("nextStep"), next)
	}
	DECQ(n)
	JNZ(LabelRef("loop"))
	end()
}

// column reads a column of eight rows as float32.
func column(k *panel.Kind, s steps, w Register, high Op, col, v int, x VecPhysical) {
	switch k.ID {
	case panel.F32:
		VMOVUPS(s.at(w, 4, 4*panel.Rows*col, v), x)
	case panel.F16:
		VCVTPH2PS(s.at(w, 2, 2*panel.Rows*col, v), x)
	case panel.BF16: // pairs of columns
		VMOVDQU(s.at(w, 4, 4*panel.Rows*(col/2), v), x)
		if col%2 == 0 {
			VPSLLD(U8(16), x, x)
		} else {
			VPAND(high, x, x)
		}
	}
}

// tree adds eight parts of 32 values, for a number of rows, as a balanced
// binary tree.
func tree() {
	function("treeAVX2", "func(out, parts *float32, rows, outStride, partStride uint64)",
		"adds eight parts [rows][32] as a balanced binary tree")
	out := Load(Param("out"), GP64())
	n := Load(Param("rows"), GP64())
	p := newRows(Load(Param("parts"), GP64()), 8, "partStride")
	sums := ymms(4)
	Label("loop")
	for v := range panel.Rows / lanes {
		for i, sum := range sums {
			VMOVUPS(p.at(2*i, vector*v), sum)
			VADDPS(p.at(2*i+1, vector*v), sum, sum)
		}
		VADDPS(sums[1], sums[0], sums[0])
		VADDPS(sums[3], sums[2], sums[2])
		VADDPS(sums[2], sums[0], sums[0])
		VMOVUPS(sums[0], Mem{Base: out, Disp: vector * v})
	}
	ADDQ(U32(4*panel.Rows), p.base)
	ADDQ(param("outStride"), out)
	DECQ(n)
	JNZ(LabelRef("loop"))
	end()
}
