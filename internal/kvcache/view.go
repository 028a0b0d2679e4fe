package kvcache

import (
	"unsafe"

	"github.com/foretoken/foretoken/internal/tensor"
)

// A View is one store of one layer for the sequences of a step, as kernels
// write and read it.
type View struct {
	pool   *Pool
	part   *part
	tables *[]*Table
}

// Views returns a view of each store of each layer, in order, for sequences
// whose tables may change from step to step.
func (p *Pool) Views(tables *[]*Table) [][]View {
	views := make([][]View, len(p.parts))
	for i, parts := range p.parts {
		views[i] = make([]View, len(parts))
		for k := range parts {
			views[i][k] = View{p, &parts[k], tables}
		}
	}
	return views
}

// DType is the storage type of the entries.
func (v *View) DType() tensor.DType { return v.part.dtype }

// Block returns the entries [b·BlockSize, (b+1)·BlockSize) of sequence seq.
// It begins at a cache line.
func (v *View) Block(seq, b int) []byte {
	perPage := v.part.entries / BlockSize
	page := v.page(seq, b/perPage)
	return page[v.part.offset+b%perPage*v.part.block:][:BlockSize*v.part.entry]
}

// Entry returns entry i of sequence seq.
func (v *View) Entry(seq, i int) []byte {
	a, memory := v.part, []byte(nil)
	if a.ring {
		memory = v.pool.rings.at((*v.tables)[seq].ring[0])
	} else {
		memory = v.page(seq, i/a.entries)
	}
	return memory[a.offset+i%a.entries*a.entry:][:a.entry]
}

// Float returns entry i of a sequence of a store of type F32.
func (v *View) Float(seq, i int) []float32 {
	e := v.Entry(seq, i)
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(e))), len(e)/4)
}

func (v *View) page(seq, i int) []byte {
	return v.pool.pages.at((*v.tables)[seq].pages[i])
}
