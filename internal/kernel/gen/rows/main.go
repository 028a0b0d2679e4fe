// Command rows generates the kernels that work on rows of activations and of
// logits.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
)

func main() {
	for _, width := range []int{512, 256} {
		rmsNorm(width)
		squares(width)
		sumStreams(width)
		mixStreams(width)
		add(width)
		scale(width)
		swiglu(width)
		geglu(width)
		rotate(width)
		rotatePairs(width)
		toBF16(width)
		peak(width)
		divide(width)
		expSum(width)
		atLeast(width)
		mask(width)
		contenders(width)
	}
	quantize()
	quantizeFours()
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

// address is where a parameter that is a number lies.
func address(name string) Mem {
	b, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}
