package kernel

import "github.com/foretoken/foretoken/internal/tensor"

// StoreEntries writes each row of x [len(slots), n], all heads' keys and
// values, as the entry of its sequence that slots names, in dtype d: F32, F16,
// BF16, or Q8_0 if n is a multiple of 32. No two rows have the same entry.
func (p *Pool) StoreEntries(to Entries, d tensor.DType, x []float32, n int, seqs, slots []int32) {
	p.rowJobs.store = storeEntriesJob{to, active.attention.pack[layoutOf(d, n, n).kind], x, n, d.RowBytes(n), seqs, slots}
	p.splitRows(len(slots), n, &p.rowJobs.store)
}

type storeEntriesJob struct {
	entries     Entries
	pack        func(dst []byte, src []float32)
	x           []float32
	n, size     int
	seqs, slots []int32
}

func (j *storeEntriesJob) do(_, from, to int) {
	for row := from; row < to; row++ {
		j.pack(j.entries.Entry(int(j.seqs[row]), int(j.slots[row]))[:j.size], j.x[row*j.n:][:j.n])
	}
}

// LoadEntries writes the entries of a sequence that slots names to the rows of
// x [len(slots), n], in float32: StoreEntries the other way.
func (p *Pool) LoadEntries(x []float32, from Entries, d tensor.DType, n int, seqs, slots []int32) {
	p.rowJobs.load = loadEntriesJob{from, d, x, n, seqs, slots}
	p.splitRows(len(slots), n, &p.rowJobs.load)
}

type loadEntriesJob struct {
	entries     Entries
	dtype       tensor.DType
	x           []float32
	n           int
	seqs, slots []int32
}

func (j *loadEntriesJob) do(_, from, to int) {
	size := j.dtype.RowBytes(j.n)
	for row := from; row < to; row++ {
		tensor.Decode(j.dtype, j.x[row*j.n:][:j.n], j.entries.Entry(int(j.seqs[row]), int(j.slots[row]))[:size])
	}
}
