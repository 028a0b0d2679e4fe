package kernel

import "unsafe"

// What a cache of pairs of bfloat16 needs beyond its kernels. Two positions
// are one step of a sum of values, wherever a row of a tree finds them.

// pairRow returns the pairs of values that a lane takes part in: [ValueDim][2].
func (l *kvLayout) pairRow(panel []byte, lane int) []uint16 {
	n := 2 * l.valueDim
	return values[uint16](panel)[lane/2*n:][:n]
}

// putPairs stores a packed value at a lane of a head's values. Another worker
// may be storing the other half of the pairs.
func (l *kvLayout) putPairs(panel []byte, lane int, value []byte) {
	row := l.pairRow(panel, lane)[lane%2:]
	for i, v := range values[uint16](value) {
		row[2*i] = v
	}
}

// copyPairs copies a value from lane from of src to lane to of dst.
func (l *kvLayout) copyPairs(dst []byte, to int, src []byte, from int) {
	d, s := l.pairRow(dst, to)[to%2:], l.pairRow(src, from)[from%2:]
	for i := 0; i < len(d) && i < len(s); i += 2 {
		d[i] = s[i]
	}
}

// pathPairs is pathValues for pairs. The pairs of a path are put together as
// they lie in a block whose slots are positions; those before are read where
// they are.
func (j *attentionJob) pathPairs(s *attentionScratch, row int, at *blockAt, out, weights []float32, start, from, to int) {
	sum := func(values []byte, from, to int) {
		if from < to {
			j.kernels.values[kvPairs](out, weights, s.spare, values, j.ValueDim, from, to, &values[0])
		}
	}
	start = max(start-at.b*KVBlock, from) &^ 1
	sum(at.values, from, start)
	from = max(from, start)
	values := grown(&s.values, len(at.values))
	for lane := from; lane < to; lane++ {
		slot := j.slot(row, at.b*KVBlock+lane)
		_, src := j.layout.head(j.KV.Block(int(j.Seqs[row]), slot/KVBlock), at.head)
		j.layout.copyPairs(values, lane, src, slot%KVBlock)
	}
	sum(values, from, to)
}

// bytesOf views float32 as bytes.
func bytesOf(f []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f))), 4*len(f))
}
