package kernel

import "github.com/foretoken/foretoken/internal/tensor"

// CopySlot makes slot to of a sequence what its slot from is: keys and values
// of all heads, bit for bit. kv keeps them in dtype d, as for Attention.
func CopySlot(kv KV, seq int, d tensor.DType, heads, keyDim, valueDim, to, from int) {
	l := layoutOf(d, keyDim, valueDim)
	dst, src := kv.Block(seq, to/KVBlock), kv.Block(seq, from/KVBlock)
	to, from = to%KVBlock, from%KVBlock
	for head := range heads {
		dstKeys, dstValues := l.head(dst, head)
		srcKeys, srcValues := l.head(src, head)
		l.copyKey(dstKeys, to, srcKeys, from)
		l.copyValue(dstValues, to, srcValues, from)
	}
}

// copyKey copies a key from lane from of a head's keys to lane to of others.
func (l *kvLayout) copyKey(dst []byte, to int, src []byte, from int) {
	switch l.kind {
	case kvF32, kvPairs:
		copyColumn(values[uint32](dst), to, values[uint32](src), from)
	case kvF16, kvBF16:
		copyColumn(values[uint16](dst), to, values[uint16](src), from)
	case kvQ8:
		for ; len(src) > 0; dst, src = dst[q8Panel:], src[q8Panel:] {
			copy(dst[2*to:][:2], src[2*from:])
			copyColumn(dst[q8Codes:q8Panel], to, src[q8Codes:q8Panel], from)
		}
	}
}

// copyValue copies a value from lane from of a head's values to lane to of
// others.
func (l *kvLayout) copyValue(dst []byte, to int, src []byte, from int) {
	switch l.kind {
	case kvQ8:
		for ; len(src) > 0; dst, src = dst[q8Panel:], src[q8Panel:] {
			copy(dst[2*to:][:2], src[2*from:])
			copy(dst[q8Codes+KVBlock*to:][:KVBlock], src[q8Codes+KVBlock*from:])
		}
	case kvPairs:
		l.copyPairs(dst, to, src, from)
	default:
		for len(src) > 0 {
			n := min(KVBlock*l.size, len(src)/KVBlock) // bytes of a panel's row
			copy(dst[n*to:][:n], src[n*from:])
			dst, src = dst[KVBlock*n:], src[KVBlock*n:]
		}
	}
}

// copyColumn copies a column of a panel to a column of another.
func copyColumn[T any](dst []T, to int, src []T, from int) {
	for ; from < len(src); to, from = to+KVBlock, from+KVBlock {
		dst[to] = src[from]
	}
}
