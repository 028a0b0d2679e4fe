package kernel

import (
	"math"

	"github.com/foretoken/foretoken/internal/tensor"
)

// Entries are what a layer keeps of its positions, or of some of them, as one
// vector after the other: latent vectors, a window, compressed entries. Entry
// returns entry i of a sequence: for one key-value head after the other its
// key, and its value behind it unless the key holds it, in the cache's dtype.
// Workers call it at the same time.
type Entries interface {
	Entry(seq, i int) []byte
}

// A Source says which entries each row reads: a range of them, or a list for
// each key-value head.
type Source struct {
	Entries  Entries
	From, To []int32   // [rows]: entries [From, To), in blocks that are cut at multiples of KVBlock; From nil: 0
	Lists    [][]int32 // [rows, KVHeads], in place of From and To: entries, in blocks of KVBlock in the order of the list
}

// EntryAttention is softmax(scale · q·kᵀ)·v over the entries of some sources,
// one source after the other. Entries that a row does not read do not touch it,
// whatever they hold.
type EntryAttention struct {
	Heads, KVHeads   int
	KeyDim, ValueDim int
	Shared           bool // a value is the first ValueDim values of its key (latent attention); else it follows the key
	Scale            float32
	DType            tensor.DType // of entries: F32, F16, BF16, or Q8_0 if both widths are multiples of 32

	Q, Out  []float32 // [rows, Heads, KeyDim], [rows, Heads, ValueDim]; a row that reads nothing gets zeros
	Seqs    []int32   // [rows], the sequence of each row as Entries know it
	Sinks   []float32 // [Heads], a logit that takes part in the sum and has no value, merged last; nil: none
	Sources []Source
}

// AttendEntries writes Out.
//
// A block of entries is packed into panels as they lie in a block of Attend's,
// and reduced like these: blocks are merged left to right, and nothing else
// about a row's result depends on how work is cut.
func (p *Pool) AttendEntries(a EntryAttention) {
	if len(a.Seqs) == 0 {
		return
	}
	j := &p.entries
	j.prepare(&a, p.Workers())
	run := func(phase attentionPhase, n int) {
		j.phase = phase
		p.run(n, j)
	}
	tasks := j.tasks()
	if !j.spread(tasks, p.Workers()) {
		run(attending, tasks)
		return
	}
	for w := &j.wave; w.first < w.blocks; w.first += w.pieces * splitBlocks {
		run(reducing, tasks*w.pieces)
		run(merging, tasks*w.cuts)
	}
	run(finishing, tasks)
}

// finishing follows the phases that Attend has.
const finishing = merging + 1

// entriesJob is one call of AttendEntries, and the memory that calls share.
//
// Query heads that share a key-value head are cut into parts. To the
// attentionJob in it, whose tiles, scratch and reduction of blocks it uses, a
// part with a key-value head is a head of its own.
type entriesJob struct {
	attentionJob
	pack    *entryKernels
	parts   int // of a key-value head
	sources []Source
	sinks   []float32
	size    int // bytes of a key-value head in an entry
	value   int // where its value begins
	packed  []entryBlock
	wave    wave
}

func (j *entriesJob) prepare(a *EntryAttention, workers int) {
	j.Attention = Attention{
		Heads: a.Heads, KVHeads: a.KVHeads, KeyDim: a.KeyDim, ValueDim: a.ValueDim, Scale: a.Scale, DType: a.DType,
		Q: a.Q, Out: a.Out, Seqs: a.Seqs,
	}
	j.layout = layoutOf(a.DType, a.KeyDim, a.ValueDim)
	j.kernels, j.pack = &active.attention, &active.entries
	if a.ValueDim%valueUnit != 0 {
		j.kernels, j.pack = &attentionGeneric, &entriesGeneric
	}
	j.sources, j.sinks = a.Sources, a.Sinks
	j.size, j.value = a.DType.RowBytes(a.KeyDim), 0
	if !a.Shared {
		j.value = j.size
		j.size += a.DType.RowBytes(a.ValueDim)
	}
	if len(j.packed) < workers {
		j.scratch, j.packed = make([]attentionScratch, workers), make([]entryBlock, workers)
	}
	group := a.Heads / a.KVHeads
	j.divide(group, j.tile(group), workers)
}

// tile groups rows of a sequence that read ranges, and returns the rows of the
// largest tile. Rows that read lists share no blocks.
func (j *entriesJob) tile(group int) (rows int) {
	most := max(1, tileQueries/group)
	for i := range j.sources {
		if j.sources[i].Lists != nil {
			most = 1
		}
	}
	j.tiles = j.tiles[:0]
	for row, seq := range j.Seqs {
		if n := len(j.tiles) - 1; n >= 0 && j.Seqs[row-1] == seq && row-j.tiles[n].from < most {
			j.tiles[n].to++
		} else {
			j.tiles = append(j.tiles, tile{row, row + 1})
		}
		rows = max(rows, row+1-j.tiles[len(j.tiles)-1].from)
	}
	return rows
}

// Packing a block is a fraction of the work that this many query vectors, whole
// register tiles, cause. More are better where blocks are spread over workers,
// too.
const (
	leastQueries  = 8
	spreadQueries = 16
)

// divide cuts query heads that share a key-value head into equal parts: as few
// as give every worker a task, and none more than tileQueries query vectors.
func (j *entriesJob) divide(group, rows, workers int) {
	heads := j.KVHeads
	cut := func(least int) (enough bool) {
		for parts := 1; parts <= group; parts++ {
			if group%parts != 0 {
				continue
			}
			queries := rows * group / parts
			if parts > 1 && queries < least {
				break
			}
			j.parts, j.group, j.KVHeads = parts, group/parts, heads*parts
			if queries <= tileQueries && j.tasks() >= workers {
				return true
			}
		}
		return false
	}
	if !cut(leastQueries) {
		cut(spreadQueries)
	}
}

// tasks is the number of tiles and heads.
func (j *entriesJob) tasks() int { return len(j.tiles) * j.KVHeads }

// do is a task of the phase.
func (j *entriesJob) do(worker, task int) {
	switch j.phase {
	case attending:
		s := &j.scratch[worker]
		t, head := j.task(task)
		j.begin(s, t, head)
		j.clear(s, t)
		j.walk(s, &j.packed[worker], t, head, 0, math.MaxInt, nil)
		j.finish(s, t, head)
	case reducing:
		j.reduce(worker, task)
	case merging:
		j.merge(task)
	case finishing:
		t, head := j.task(task)
		j.finish(&j.wave.merged[task], t, head)
	}
}

// finish merges the sinks and divides the weighted values by the sum of the
// weights.
func (j *entriesJob) finish(s *attentionScratch, t tile, head int) {
	m, d := (t.to-t.from)*j.group, j.ValueDim
	if j.sinks != nil {
		high, sum := grown(&s.high, m), grown(&s.sum, m)
		for q := range m {
			high[q], sum[q] = j.sinks[head*j.group+q%j.group], 1
		}
		for q := 0; q < m; q += mergeQueries {
			n := min(mergeQueries, m-q)
			j.kernels.merge(s.out[q*d:][:n*d], s.block[:n*d], s.top[q:q+n], s.total[q:q+n], high[q:q+n], sum[q:q+n], d)
		}
	}
	j.attentionJob.finish(s, t, head)
	for row := t.from; row < t.to; row++ {
		if !j.reads(row, head) {
			clear(j.Out[(row*j.Heads+head*j.group)*d:][:j.group*d])
		}
	}
}
