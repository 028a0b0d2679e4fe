package kernel

import (
	"unsafe"

	"github.com/foretoken/foretoken/internal/tensor"
)

// A block of the cache holds, for one key-value head after the other, KVBlock
// keys and then KVBlock values. Both are made of panels with 32 columns, row
// after row, in the order in which kernels read them:
//
//	keys    [KeyDim][32 positions]: a lane of scores is a position
//	values  [ValueDim/32][32 positions][32 dims]: a lane of the output is a
//	        dimension; the last panel is as narrow as what remains
//
// Q8_0 has one scale for 32 values along the head's dimension, and a panel of
// 32×32 values starts with its 32 scales, one for each position:
//
//	keys    [KeyDim/32]([32 positions]f16, [32 dims][32 positions]int8)
//	values  [ValueDim/32]([32 positions]f16, [32 positions][32 dims]int8)
//
// On processors that multiply pairs of bfloat16 (AVX512_BF16), BF16 lies in
// pairs of what is summed over, if KeyDim is even and ValueDim a multiple of
// valueUnit:
//
//	keys    [KeyDim/2][32 positions][2 dims]
//	values  [16][ValueDim][2 positions]
type kvLayout struct {
	kind             kvKind
	size             int // bytes of a value, scales not counted
	keyDim, valueDim int
	query            int // float32 values that a query vector takes
	keyBytes         int // of a head's KVBlock keys
	headBytes        int // of its keys and values
}

// kvKind is how the cache stores values; kernels are found by it.
type kvKind uint8

const (
	kvF32 kvKind = iota
	kvF16
	kvBF16
	kvQ8
	kvPairs
	kvKinds
)

// A panel of Q8_0.
const (
	q8Row   = 2 + KVBlock            // bytes of 32 values as they are packed: scale, codes
	q8Panel = KVBlock * q8Row        // bytes of a panel
	q8Codes = KVBlock * (q8Row - 32) // where its codes begin
)

func layoutOf(d tensor.DType, keyDim, valueDim int) kvLayout {
	l := kvLayout{keyDim: keyDim, valueDim: valueDim, query: keyDim}
	switch d {
	case tensor.F32:
		l.kind, l.size = kvF32, 4
	case tensor.F16:
		l.kind, l.size = kvF16, 2
	case tensor.BF16:
		l.kind, l.size = kvBF16, 2
		if active.cpu.BF16 && keyDim%2 == 0 && valueDim%valueUnit == 0 {
			l.kind, l.query = kvPairs, keyDim/2
		}
	case tensor.Q8_0:
		l.kind, l.size = kvQ8, 1
	default:
		panic("attention over a cache of " + d.String())
	}
	l.keyBytes = KVBlock * d.RowBytes(keyDim)
	l.headBytes = l.keyBytes + KVBlock*d.RowBytes(valueDim)
	return l
}

// head returns a head's keys and values in a block.
func (l *kvLayout) head(block []byte, head int) (keys, values []byte) {
	block = block[head*l.headBytes:][:l.headBytes]
	return block[:l.keyBytes], block[l.keyBytes:]
}

// putKey stores a packed key at a lane of a head's keys.
func (l *kvLayout) putKey(keys []byte, lane int, key []byte) {
	switch l.kind {
	case kvF32, kvPairs:
		scatter(values[uint32](keys), lane, values[uint32](key))
	case kvF16, kvBF16:
		scatter(values[uint16](keys), lane, values[uint16](key))
	case kvQ8:
		for ; len(key) > 0; keys, key = keys[q8Panel:], key[q8Row:] {
			copy(keys[2*lane:], key[:2])
			scatter(keys[q8Codes:q8Panel], lane, key[2:q8Row])
		}
	}
}

// putValue stores a packed value at a lane of a head's values.
func (l *kvLayout) putValue(values []byte, lane int, value []byte) {
	switch l.kind {
	case kvQ8:
		for ; len(value) > 0; values, value = values[q8Panel:], value[q8Row:] {
			copy(values[2*lane:], value[:2])
			copy(values[q8Codes+KVBlock*lane:], value[2:q8Row])
		}
	case kvPairs:
		l.putPairs(values, lane, value)
	default:
		for len(value) > 0 {
			n := min(KVBlock*l.size, len(value)) // bytes of a panel's row
			copy(values[n*lane:], value[:n])
			values, value = values[KVBlock*n:], value[n:]
		}
	}
}

// scatter writes a column of a panel.
func scatter[T any](panel []T, column int, values []T) {
	for i, v := range values {
		panel[KVBlock*i+column] = v
	}
}

// values views bytes, in memory's own order, as values of their size.
func values[T uint16 | uint32](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(T))))
}

// store writes the keys and values of a tile's rows to the cache.
func (j *attentionJob) store(s *attentionScratch, task int) {
	t, head := j.task(task)
	slots := j.Slots
	if slots == nil {
		slots = j.Positions
	}
	pack := j.kernels.pack[j.layout.kind]
	for row := t.from; row < t.to; row++ {
		b, lane := int(slots[row])/KVBlock, int(slots[row])%KVBlock
		keys, values := j.layout.head(j.KV.Block(int(j.Seqs[row]), b), head)
		at := row*j.KVHeads + head

		packed := grown(&s.packed, j.DType.RowBytes(j.KeyDim))
		pack(packed, j.K[at*j.KeyDim:][:j.KeyDim])
		j.layout.putKey(keys, lane, packed)

		packed = grown(&s.packed, j.DType.RowBytes(j.ValueDim))
		pack(packed, j.V[at*j.ValueDim:][:j.ValueDim])
		j.layout.putValue(values, lane, packed)
	}
}
