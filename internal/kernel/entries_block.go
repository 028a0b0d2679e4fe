package kernel

import (
	"math"
	"unsafe"
)

// entryBlock is a worker's memory for the block at hand.
type entryBlock struct {
	entries [KVBlock]*byte         // by lane
	lanes   [tileQueries]laneRange // by row of the tile: those that it reads
	packed  []byte                 // keys and values of a head, as in a block of Attend
}

// laneRange is lanes [from, to) of a block: none, unless from is below to.
type laneRange struct{ from, to int }

func (l laneRange) empty() bool { return l.from >= l.to }

// list is what a row reads of a source that has lists.
func (j *entriesJob) list(src *Source, row, head int) []int32 {
	return src.Lists[row*(j.KVHeads/j.parts)+head/j.parts]
}

// bounds are the entries that a row reads: of its list, if the source has
// lists.
func (j *entriesJob) bounds(src *Source, row, head int) (from, to int) {
	if src.Lists != nil {
		return 0, len(j.list(src, row, head))
	}
	if src.From != nil {
		from = int(src.From[row])
	}
	return from, int(src.To[row])
}

// reads reports whether a row reads anything.
func (j *entriesJob) reads(row, head int) bool {
	for i := range j.sources {
		if from, to := j.bounds(&j.sources[i], row, head); from < to {
			return true
		}
	}
	return false
}

// lanes are those of block b that a row reads.
func (j *entriesJob) lanes(src *Source, row, head, b int) laneRange {
	from, to := j.bounds(src, row, head)
	return laneRange{max(from-b*KVBlock, 0), min(to-b*KVBlock, KVBlock)}
}

// blocksOf yields the blocks that rows of t read, source by source: those
// numbered [first, last) of them all.
func (j *entriesJob) blocksOf(t tile, head, first, last int) func(yield func(src *Source, b int) bool) {
	return func(yield func(src *Source, b int) bool) {
		for i := range j.sources {
			src := &j.sources[i]
			from, to := j.span(src, t, head)
			for n := max(first, 0); n < min(last, to-from); n++ {
				if !yield(src, from+n) {
					return
				}
			}
			first, last = first-(to-from), last-(to-from)
		}
	}
}

// count is the number of blocks that rows of t read.
func (j *entriesJob) count(t tile, head int) (blocks int) {
	for i := range j.sources {
		first, last := j.span(&j.sources[i], t, head)
		blocks += last - first
	}
	return blocks
}

// span covers the blocks of a source that rows of t read.
func (j *entriesJob) span(src *Source, t tile, head int) (first, last int) {
	low, high := math.MaxInt, 0
	for row := t.from; row < t.to; row++ {
		if from, to := j.bounds(src, row, head); from < to {
			low, high = min(low, from), max(high, to)
		}
	}
	if high == 0 {
		return 0, 0
	}
	return low / KVBlock, (high + KVBlock - 1) / KVBlock
}

// walk reduces blocks [first, last) of those that rows of t read, and merges
// each or leaves it in results.
func (j *entriesJob) walk(s *attentionScratch, e *entryBlock, t tile, head, first, last int, results []blockResult) {
	for src, b := range j.blocksOf(t, head, first, last) {
		at := blockAt{b: b, head: head}
		if results != nil {
			at.result, results = &results[0], results[1:]
		}
		j.reduceBlock(s, e, src, t, &at)
	}
	clear(e.entries[:]) // memory that they point into may go back to the system
}

// reduceBlock reduces a block for the rows of t that read some of it.
func (j *entriesJob) reduceBlock(s *attentionScratch, e *entryBlock, src *Source, t tile, at *blockAt) {
	lanes, all := e.lanes[:t.to-t.from], laneRange{KVBlock, 0}
	for i := range lanes {
		l := j.lanes(src, t.from+i, at.head, at.b)
		lanes[i] = l
		if !l.empty() {
			all = laneRange{min(all.from, l.from), max(all.to, l.to)}
		}
	}
	if all.empty() {
		return
	}
	j.gather(e, src, t, all, at)
	next, values := j.ahead(src, t, at)
	at.next = values
	for from, to := 0, 0; to <= len(lanes); to++ {
		if to < len(lanes) && !lanes[to].empty() {
			continue
		}
		if from < to {
			j.reduceRows(s, lanes, t, tile{t.from + from, t.from + to}, at, next)
		}
		from = to + 1
	}
}

// gather packs lanes of a block. The others are not read: they repeat the first
// of these.
func (j *entriesJob) gather(e *entryBlock, src *Source, t tile, lanes laneRange, at *blockAt) {
	for lane := lanes.from; lane < lanes.to; lane++ {
		e.entries[lane] = j.entry(src, t, at.head, at.b*KVBlock+lane)
	}
	for lane := range e.entries {
		if lane < lanes.from || lane >= lanes.to {
			e.entries[lane] = e.entries[lanes.from]
		}
	}
	at.keys, at.values = j.layout.head(grown(&e.packed, j.layout.headBytes), 0)
	j.pack.keys[j.layout.kind](at.keys, &e.entries, 0, j.DType.RowBytes(j.KeyDim))
	j.pack.values[j.layout.kind](at.values, &e.entries, j.value, j.DType.RowBytes(j.ValueDim))
}

// entry returns what a head reads of entry i, or of entry i of its list.
func (j *entriesJob) entry(src *Source, t tile, head, i int) *byte {
	if src.Lists != nil {
		i = int(j.list(src, t.from, head)[i])
	}
	return unsafe.SliceData(src.Entries.Entry(int(j.Seqs[t.from]), i)[head/j.parts*j.size:][:j.size])
}

// ahead returns what is prefetched while keys and values are read: the block
// that follows, if it is whole and its entries lie one behind the other.
func (j *entriesJob) ahead(src *Source, t tile, at *blockAt) (keys, values *byte) {
	keys, values = unsafe.SliceData(at.keys), unsafe.SliceData(at.values)
	_, to := j.bounds(src, t.to-1, at.head)
	next, last := (at.b+1)*KVBlock, (at.b+2)*KVBlock-1
	if j.KVHeads > j.parts || last >= to {
		return keys, values
	}
	first := j.entry(src, t, at.head, next)
	if end := j.entry(src, t, at.head, last); uintptr(unsafe.Pointer(end))-uintptr(unsafe.Pointer(first)) != uintptr((KVBlock-1)*j.size) {
		return keys, values
	}
	if j.value > 0 {
		values = (*byte)(unsafe.Add(unsafe.Pointer(first), j.layout.keyBytes))
	}
	return first, values
}

// reduceRows reduces a block for rows that all read some of it.
func (j *entriesJob) reduceRows(s *attentionScratch, lanes []laneRange, t, rows tile, at *blockAt, next *byte) {
	q, end := (rows.from-t.from)*j.group, (rows.to-t.from)*j.group
	scores := s.scores[(1+q)*KVBlock : (1+end)*KVBlock]
	j.kernels.scores[j.layout.kind](scores, s.q[q*j.layout.query:end*j.layout.query], at.keys, j.KeyDim, next)
	for i := q; i < end; i++ {
		l := lanes[i/j.group]
		s.lanes[i] = uint32(1<<l.to - 1<<l.from)
	}
	high, sum := s.high[q:end], s.sum[q:end]
	if at.result != nil {
		high, sum = at.result.high[q:end], at.result.sum[q:end]
	}
	softmax := j.kernels.softmax
	if j.layout.kind == kvPairs {
		softmax = j.kernels.softmaxBF16
	}
	softmax(scores, s.lanes[q:end], high, sum, j.Scale)
	for row := rows.from; row < rows.to; {
		l, same := lanes[row-t.from], tile{row, row + 1}
		for same.to < rows.to && lanes[same.to-t.from] == l {
			same.to++
		}
		j.weigh(s, t, same, at, l.from, l.to)
		row = same.to
	}
}
