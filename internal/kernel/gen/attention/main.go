// Command attention writes the attention kernels for amd64. What each one
// computes, and in which order, is said in kernel.attentionKernels; how the
// cache is laid out, in kernel.kvLayout.
//
// Scores and values are the same product: a tile of rows times a panel of 32
// columns, a row of which is read, converted and multiplied with one value of
// each row of the tile. An element of the result is one chain of fused
// multiply-adds in a lane of its own, so tiles of all sizes give the same bits.
package main

import (
	"strconv"

	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	for _, width := range []int{512, 256} {
		m := &machine{width}
		for _, k := range kinds {
			m.scores(k)
			m.values(k)
		}
		m.softmax("softmax", "turns the scores of a block into weights.", nil)
		m.mergeBlock()
		m.normalise()
		m.packF16()
		m.packBF16()
		m.packQ8()
		m.packKeys("32", 4)
		m.packKeys("16", 2)
		m.packKeysQ8()
		m.packValues("32", 4)
		m.packValues("16", 2)
		m.packValues("Q8", 1)
	}
	m := &machine{512}
	m.scoresPairs()
	m.softmax("softmaxBF16", "turns the scores of a block into weights in bfloat16.", m.roundBF16)
	m.valuesPairs()
	m.packValuesPairs()
	Generate()
}

// columns is the width of a panel, and the number of positions of a block.
const columns = 32

// A machine is what kernels are written for.
type machine struct {
	width int // bits of a vector
}

// bytes is the size of a vector, lanes its float32 values, vectors how many
// cover a panel.
func (m *machine) bytes() int   { return m.width / 8 }
func (m *machine) lanes() int   { return m.width / 32 }
func (m *machine) vectors() int { return columns / m.lanes() }

// text starts a function.
func (m *machine) text(name, signature, doc string) {
	name += x86.Suffix(m.width)
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(name + " " + doc)
}

func (m *machine) end() {
	VZEROUPPER()
	RET()
}

var labels int

// label makes a label that no other has.
func label(name string) string {
	labels++
	return name + strconv.Itoa(labels)
}

func zero(v reg.VecVirtual) { VXORPS(v, v, v) }

// base and length load what a slice parameter is.
func base(name string) reg.GPVirtual   { return Load(Param(name).Base(), GP64()).(reg.GPVirtual) }
func length(name string) reg.GPVirtual { return Load(Param(name).Len(), GP64()).(reg.GPVirtual) }
func param(name string) reg.GPVirtual  { return Load(Param(name), GP64()).(reg.GPVirtual) }
