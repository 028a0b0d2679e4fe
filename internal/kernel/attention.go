package kernel

import (
	"math"

	"github.com/foretoken/foretoken/internal/tensor"
)

// KVBlock is the number of positions whose keys and values are stored and
// reduced together. Blocks are cut at absolute positions: a row sees the same
// blocks however its sequence was cut into steps.
const KVBlock = 32

// KV is the cached keys and values of one layer. Block returns the memory of
// positions [b·KVBlock, (b+1)·KVBlock) of a sequence: KVHeads times KVBlock
// keys and values in the cache's dtype. It is written and read here alone, and
// begins at a multiple of four bytes (of 64 for speed).
type KV interface {
	Block(seq, b int) []byte
}

// Attention is softmax(scale · q·kᵀ)·v over the cached positions up to and
// including a row's own. The rows of a sequence follow each other.
//
// A key and a value lie in a slot of their sequence, which is their position
// unless the row belongs to a tree of drafts: then several rows have the same
// position, each has a slot of its own, and its path says which slots hold its
// ancestors. Slots beyond a row's path do not touch it, whatever they hold.
type Attention struct {
	Heads, KVHeads   int
	KeyDim, ValueDim int
	Scale            float32
	Window           int          // positions a row sees, its own included; 0: all
	DType            tensor.DType // of the cache: F32, F16, BF16, or Q8_0 if both widths are multiples of 32

	Q, Out    []float32 // [rows, Heads, KeyDim], [rows, Heads, ValueDim]
	K, V      []float32 // [rows, KVHeads, KeyDim], [rows, KVHeads, ValueDim]: stored before any row reads; nil: they are stored
	Positions []int32   // [rows]
	Seqs      []int32   // [rows], the sequence of each row as KV knows it
	Slots     []int32   // [rows], where K and V are stored; nil: at Positions
	Paths     [][]int32 // [rows], the slots of a row's last len(path) positions, its own the last; a nil path, or nil: slots are positions
	KV        KV
}

// Attend stores K and V and writes Out.
//
// A block yields the maximum of its scores, the sum of their exponentials and
// the values weighted by these; blocks are merged left to right (online
// softmax, Milakov and Gimelshein 2018). Nothing else about a row's result
// depends on how work is cut.
func (p *Pool) Attend(a Attention) {
	if len(a.Positions) == 0 {
		return
	}
	j := &p.attention
	j.prepare(a, len(p.scratch))
	tasks := len(j.tiles) * a.KVHeads
	run := func(phase attentionPhase, n int) {
		j.phase = phase
		p.run(n, j)
	}
	ranges := j.ranges(tasks, len(p.scratch))
	alone := !j.shared && ranges == 1 // no task reads what another one stores
	if a.K != nil && !alone {
		run(storing, tasks)
	}
	switch {
	case ranges > 1:
		j.allot(tasks, ranges)
		run(reducing, tasks*ranges)
		run(merging, tasks)
	case a.K != nil && alone:
		run(storingAttending, tasks)
	default:
		run(attending, tasks)
	}
}

// attentionPhase is what tasks do, each for a tile and a head.
type attentionPhase uint8

const (
	storing          attentionPhase = iota // keys and values of the tile's rows
	attending                              // all blocks, one after the other
	storingAttending                       // both
	reducing                               // a range of blocks, each by itself
	merging                                // what reducing left
)

// A tile is consecutive rows of one sequence.
type tile struct{ from, to int }

// tileQueries bounds the query vectors of a tile: as many as keep what they
// need in the second-level cache, so that a block is read once for them all.
const tileQueries = 64

// attentionJob is one call of Attend, and the memory that calls share.
type attentionJob struct {
	Attention
	kernels *attentionKernels
	layout  kvLayout
	group   int // query heads of a key-value head
	tiles   []tile
	shared  bool // a sequence has several tiles
	phase   attentionPhase
	split   split
	scratch []attentionScratch // one per worker
}

func (j *attentionJob) prepare(a Attention, workers int) {
	j.Attention = a
	j.group = a.Heads / a.KVHeads
	j.layout = layoutOf(a.DType, a.KeyDim, a.ValueDim)
	j.kernels = &active.attention
	if a.ValueDim%valueUnit != 0 {
		j.kernels = &attentionGeneric
	}
	if len(j.scratch) < workers {
		j.scratch = make([]attentionScratch, workers)
	}
	most := max(1, tileQueries/j.group)
	j.tiles, j.shared = j.tiles[:0], false
	for row, seq := range a.Seqs {
		if n := len(j.tiles); n > 0 && a.Seqs[row-1] == seq {
			if t := &j.tiles[n-1]; row-t.from < most {
				t.to++
				continue
			}
			j.shared = true
		}
		j.tiles = append(j.tiles, tile{row, row + 1})
	}
}

// do is a task of the phase.
func (j *attentionJob) do(worker, task int) {
	s := &j.scratch[worker]
	switch j.phase {
	case storing:
		j.store(s, task)
	case attending:
		j.attend(s, task)
	case storingAttending:
		j.store(s, task)
		j.attend(s, task)
	case reducing:
		j.reduce(s, task)
	case merging:
		j.merge(s, task)
	}
}

// task returns the tile and the head of a task. Tasks that share keys and
// values follow each other, those that see most first.
func (j *attentionJob) task(task int) (t tile, head int) {
	n := len(j.tiles)
	return j.tiles[n-1-task%n], task / n
}

// sees returns the lanes [from, to) of block b that a row sees, empty if from
// is not below to.
func (j *attentionJob) sees(row, b int) (from, to int) {
	pos := int(j.Positions[row])
	if j.Window > 0 {
		from = max(pos-j.Window+1-b*KVBlock, 0)
	}
	return from, min(pos-b*KVBlock+1, KVBlock)
}

// blocks returns the range of blocks that rows of t see.
func (j *attentionJob) blocks(t tile) (from, to int) {
	low, high := math.MaxInt, 0
	for _, p := range j.Positions[t.from:t.to] {
		low, high = min(low, int(p)), max(high, int(p))
	}
	if j.Window > 0 {
		from = max(low-j.Window+1, 0) / KVBlock
	}
	return from, high/KVBlock + 1
}
