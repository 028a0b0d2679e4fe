// Command indexer writes the kernels of the indexer for amd64. What each one
// computes, and in which order, is said in kernel.indexerKernels.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"

	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
)

func main() {
	for _, width := range []int{512, 256} {
		sumHeads(width)
		hadamardEights(width)
		peakBits(width)
		round(width)
		clamp(width)
	}
	Generate()
}

// text starts a function that has a form for each width of vectors.
func text(name string, width int, signature, doc string) {
	name += x86.Suffix(width)
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(name + " " + doc)
}

func end() {
	VZEROUPPER()
	RET()
}

// pointer loads the address of a slice that is a parameter.
func pointer(name string) reg.GPVirtual { return Load(Param(name).Base(), GP64()).(reg.GPVirtual) }

// length loads its length.
func length(name string) reg.GPVirtual { return Load(Param(name).Len(), GP64()).(reg.GPVirtual) }

// broadcast fills a vector with a parameter that is a number.
func broadcast(width int, name string) reg.VecVirtual {
	b, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return x86.Broadcast(width, b.Addr)
}

func zero(v reg.VecVirtual) { VXORPS(v, v, v) }

// and is the bits of v that mask has.
func and(width int, mask, v, to reg.VecVirtual) {
	if width == 512 {
		VPANDD(mask, v, to)
	} else {
		VPAND(mask, v, to)
	}
}
