package kernel

import (
	"math"
	"unsafe"

	"github.com/foretoken/foretoken/internal/tensor"
)

// BlockScores is how much of a row's attention to compressed entries falls on
// each block of positions: what native sparse attention selects blocks by (Yuan
// et al. 2025, section 3.3.2).
//
// Of entries [0, To) a row has the probabilities softmax(scale·q·kᵀ), summed
// over the query heads that share a key-value head. Where entries overlap, or
// are shorter than blocks, those that touch a block share in its score, in
// strides from one entry to the next:
//
//	score[j] = Σ p[Block·j + m - n] over m < Block, n < Width
type BlockScores struct {
	Heads, KVHeads   int
	KeyDim, ValueDim int // of entries, which hold a key and a value for each key-value head
	Scale            float32
	DType            tensor.DType // of entries, as EntryAttention has them
	Block, Width     int          // strides of a block, and of what an entry was made of

	Q       []float32 // [rows, Heads, KeyDim]
	Seqs    []int32   // [rows], the sequence of each row as Entries know it
	To      []int32   // [rows]
	Entries Entries
	Scores  [][]float32 // [rows, KVHeads], each with one score for a block
}

// ScoreBlocks writes Scores.
//
// The weights of a block of entries do not depend on how work is cut, and a row
// adds its own blocks up in order.
func (p *Pool) ScoreBlocks(s BlockScores) {
	j := &p.nsa.scores
	j.prepare(&s, p.Workers())
	for row := 0; row < len(s.Seqs); {
		next := j.cut(row)
		j.phase = scoresOfEntries
		p.run(len(j.tasks), j)
		j.phase = scoresOfBlocks
		p.run((next-row)*s.KVHeads, j)
		row = next
	}
}

type scorePhase uint8

const (
	scoresOfEntries scorePhase = iota // tasks are some blocks of entries for a tile and a head
	scoresOfBlocks                    // tasks are a row and a head
)

// scoreMemory bounds the weights that are kept at a time, in blocks of KVBlock
// for a query vector: 16 MiB, if one tile has no more.
const scoreMemory = 1 << 17

// scoreTask is how many blocks of entries make a task.
const scoreTask = 8

type blockScoresJob struct {
	BlockScores
	kernels *attentionKernels
	pack    *entryKernels
	layout  kvLayout
	group   int // query heads of a key-value head
	size    int // bytes of a key-value head in an entry

	phase   scorePhase
	first   int // row of the first tile
	tiles   []scoreTile
	tileOf  []int // [rows], of those of the tiles
	tasks   []scoreRange
	memory  []float32
	weights []float32 // [lines, KVBlock], see scoreTile
	high    []float32 // [lines], the maximum of a block of entries
	sum     []float32 // [lines], its sum of exponentials
	scratch []scoreScratch
}

// A scoreTile is consecutive rows of a sequence that read a block of entries
// together. Its lines are [KVHeads, blocks, M]: a block for a query vector.
type scoreTile struct {
	tile
	to     int // entries that some row reads
	blocks int
	line   int // the first
}

// scoreRange is blocks [first, first+scoreTask) of a tile, for one head.
type scoreRange struct{ tile, head, first int }

type scoreScratch struct {
	entryBlock
	queries []float32 // [M, layout.query]
	lanes   []uint32  // [M]
	p       []float32 // [entries], summed over the heads
}

func (j *blockScoresJob) prepare(s *BlockScores, workers int) {
	j.BlockScores = *s
	j.kernels, j.pack = &active.attention, &active.entries
	j.layout = layoutOf(s.DType, s.KeyDim, 0)
	j.group = s.Heads / s.KVHeads
	j.size = s.DType.RowBytes(s.KeyDim) + s.DType.RowBytes(s.ValueDim)
	if len(j.scratch) < workers {
		j.scratch = make([]scoreScratch, workers)
	}
}

// cut makes tiles of rows from first on, as many as memory is for, and returns
// the row that follows.
func (j *blockScoresJob) cut(first int) (row int) {
	j.first, j.tiles, j.tileOf, j.tasks = first, j.tiles[:0], j.tileOf[:0], j.tasks[:0]
	most, lines := max(1, tileQueries/j.group), 0
	for row = first; row < len(j.Seqs) && (row == first || lines < scoreMemory); {
		t := scoreTile{tile: tile{row, row}, line: lines}
		for row < len(j.Seqs) && row-t.from < most && j.Seqs[row] == j.Seqs[t.from] {
			t.to = max(t.to, int(j.To[row]))
			j.tileOf = append(j.tileOf, len(j.tiles))
			row++
		}
		t.tile.to = row
		t.blocks = (t.to + KVBlock - 1) / KVBlock
		lines += j.KVHeads * t.blocks * j.vectors(&t)
		for head := range j.KVHeads {
			for b := 0; b < t.blocks; b += scoreTask {
				j.tasks = append(j.tasks, scoreRange{len(j.tiles), head, b})
			}
		}
		j.tiles = append(j.tiles, t)
	}
	memory := grown(&j.memory, lines*(KVBlock+2))
	j.weights, memory = memory[:lines*KVBlock], memory[lines*KVBlock:]
	j.high, j.sum = memory[:lines], memory[lines:]
	return row
}

// vectors is the number of query vectors of a tile and head.
func (j *blockScoresJob) vectors(t *scoreTile) int { return (t.tile.to - t.from) * j.group }

func (j *blockScoresJob) do(worker, task int) {
	s := &j.scratch[worker]
	if j.phase == scoresOfEntries {
		r := j.tasks[task]
		j.weigh(s, &j.tiles[r.tile], r.head, r.first)
		return
	}
	j.score(s, j.first+task/j.KVHeads, task%j.KVHeads)
}

// weigh computes the weights of some blocks of entries: exponentials, the
// largest of a block being 1.
func (j *blockScoresJob) weigh(s *scoreScratch, t *scoreTile, head, first int) {
	m := j.vectors(t)
	q := j.queries(s, t, head)
	lanes := grown(&s.lanes, m)
	for b := first; b < min(first+scoreTask, t.blocks); b++ {
		keys := j.keys(s, t, head, b)
		for i := range lanes {
			to := min(int(j.To[t.from+i/j.group])-b*KVBlock, KVBlock)
			lanes[i] = uint32(1<<max(to, 0) - 1)
		}
		line := t.line + (head*t.blocks+b)*m
		weights := j.weights[line*KVBlock:][:m*KVBlock]
		j.kernels.scores[j.layout.kind](weights, q, keys, j.KeyDim, &keys[0])
		j.kernels.softmax(weights, lanes, j.high[line:][:m], j.sum[line:][:m], j.Scale)
	}
}

// queries returns the query vectors of a tile and head as kernels read them.
func (j *blockScoresJob) queries(s *scoreScratch, t *scoreTile, head int) []float32 {
	all, n := grown(&s.queries, j.vectors(t)*j.layout.query), j.group*j.layout.query
	for row := t.from; row < t.tile.to; row++ {
		q, packed := j.Q[(row*j.Heads+head*j.group)*j.KeyDim:][:j.group*j.KeyDim], all[(row-t.from)*n:][:n]
		if j.layout.kind == kvPairs {
			j.kernels.pack[kvPairs](bytesOf(packed), q)
		} else {
			copy(packed, q)
		}
	}
	return all
}

// keys packs those of a block of entries. Lanes that no row reads repeat the
// first.
func (j *blockScoresJob) keys(s *scoreScratch, t *scoreTile, head, b int) []byte {
	seq := int(j.Seqs[t.from])
	for lane := range s.entries {
		i := b * KVBlock
		if i+lane < t.to {
			i += lane
		}
		s.entries[lane] = unsafe.SliceData(j.Entries.Entry(seq, i)[head*j.size:][:j.size])
	}
	keys := grown(&s.packed, j.layout.keyBytes)
	j.pack.keys[j.layout.kind](keys, &s.entries, 0, j.DType.RowBytes(j.KeyDim))
	clear(s.entries[:]) // memory that they point into may go back to the system
	return keys
}

// score adds the probabilities of entries up, over heads and then over blocks.
func (j *blockScoresJob) score(s *scoreScratch, row, head int) {
	t := &j.tiles[j.tileOf[row-j.first]]
	entries := int(j.To[row])
	p := grown(&s.p, (entries+KVBlock-1)/KVBlock*KVBlock)
	clear(p)
	for h := range j.group {
		j.addProbabilities(p, t, head, (row-t.from)*j.group+h)
	}
	scores := j.Scores[row*j.KVHeads+head]
	for block := range scores {
		var sum float32
		for m := range j.Block {
			for n := range j.Width {
				if i := block*j.Block + m - n; i >= 0 && i < entries {
					sum += p[i]
				}
			}
		}
		scores[block] = sum
	}
}

// addProbabilities adds those of query vector q of a tile and head.
func (j *blockScoresJob) addProbabilities(p []float32, t *scoreTile, head, q int) {
	m, blocks := j.vectors(t), len(p)/KVBlock
	line := func(b int) int { return t.line + (head*t.blocks+b)*m + q }
	top, total := float32(-math.MaxFloat32), float32(0)
	for b := range blocks {
		top = max(top, j.high[line(b)])
	}
	for b := range blocks {
		total += float32(j.sum[line(b)] * expGeneric(j.high[line(b)]-top))
	}
	for b := range blocks {
		factor := expGeneric(j.high[line(b)]-top) / total
		to := p[b*KVBlock:][:KVBlock]
		for i, w := range j.weights[line(b)*KVBlock:][:KVBlock] {
			to[i] += float32(w * factor)
		}
	}
}
