package kernel

import (
	"math"

	"github.com/foretoken/foretoken/internal/tensor"
)

// Index is the score of the indexer of sparse attention (DeepSeek-V3.2),
// I[t,s] = Σ_h relu(q_h·k_s)·w_h, over cached keys that all heads share. Keys lie
// as those of attention with one key-value head and no values.
type Index struct {
	Heads, Dim int
	DType      tensor.DType // of the cache: F32, F16, BF16, or Q8_0 if Dim is a multiple of 32
	Q, W       []float32    // [rows, Heads, Dim], [rows, Heads]
	Seqs       []int32      // [rows], the sequence of each row as KV knows it
	To         []int32      // [rows]: keys [0, To) are scored
	KV         KV
	Scores     [][]float32 // [rows], each of To values
}

// IndexScores writes Scores. What a key scores depends on nothing but the key,
// the row's queries and weights.
//
// A score that is NaN or infinite, of whatever sign, is written as +Inf. Nothing
// is above it: it is among those that TopK takes, where it is found without
// another look at all scores.
func (p *Pool) IndexScores(x Index) {
	j := &p.indexer.scores
	j.prepare(x, p.Workers())
	p.run(len(j.tasks), j)
}

// indexRows bounds the rows of a tile. The queries of 64 heads of 128 values
// are 16 to 32 KiB for each row: they stay in the second-level cache.
const indexRows = 8

// indexBlocks is the least number of blocks that are worth a task: for one row
// of 64 heads of 128 values, some 10 µs.
const indexBlocks = 16

// indexJob is one call of IndexScores, and the memory that calls share.
type indexJob struct {
	Index
	layout  kvLayout
	scores  func(s, q []float32, keys []byte, keyDim int, next *byte)
	tiles   []tile // rows that read a block of keys together
	tasks   []indexTask
	scratch []indexScratch // one per worker
}

// An indexTask is blocks [first, last) for a tile.
type indexTask struct {
	tile
	first, last int
}

type indexScratch struct {
	q      []float32 // [rows, Heads, layout.query]: queries as pairs of bfloat16
	scores []float32 // [Heads, KVBlock]
	sum    [KVBlock]float32
}

func (j *indexJob) prepare(x Index, workers int) {
	j.Index = x
	j.layout = layoutOf(x.DType, x.Dim, 0)
	j.scores = active.attention.scores[j.layout.kind]
	if len(j.scratch) < workers {
		j.scratch = make([]indexScratch, workers)
	}

	j.tiles = j.tiles[:0]
	for row, seq := range x.Seqs {
		if n := len(j.tiles); n > 0 && x.Seqs[row-1] == seq && row-j.tiles[n-1].from < indexRows {
			j.tiles[n-1].to++
			continue
		}
		j.tiles = append(j.tiles, tile{row, row + 1})
	}
	total := 0
	for _, t := range j.tiles {
		total += j.blocks(t)
	}
	most := max(indexBlocks, total/(rangesPerWorker*workers))
	j.tasks = j.tasks[:0]
	for _, t := range j.tiles {
		n := j.blocks(t)
		parts := (n + most - 1) / most
		for part := range parts {
			j.tasks = append(j.tasks, indexTask{t, part * n / parts, (part + 1) * n / parts})
		}
	}
}

// blocks returns how many blocks hold keys that rows of t score.
func (j *indexJob) blocks(t tile) int {
	most := 0
	for _, to := range j.To[t.from:t.to] {
		most = max(most, int(to))
	}
	return (most + KVBlock - 1) / KVBlock
}

func (j *indexJob) do(worker, task int) {
	s, t := &j.scratch[worker], j.tasks[task]
	q, scores := j.queries(s, t.tile), grown(&s.scores, j.Heads*KVBlock)
	n := j.Heads * j.layout.query
	seq := int(j.Seqs[t.from])
	keys := j.KV.Block(seq, t.first)
	for b := t.first; b < t.last; b++ {
		next := keys
		if b+1 < t.last {
			next = j.KV.Block(seq, b+1)
		}
		ahead := &next[0]
		for row := t.from; row < t.to; row++ {
			to := min(int(j.To[row])-b*KVBlock, KVBlock)
			if to <= 0 {
				continue
			}
			j.scores(scores, q[(row-t.from)*n:][:n], keys, j.Dim, ahead)
			active.indexer.sumHeads(&s.sum, scores, j.W[row*j.Heads:][:j.Heads])
			sums := s.sum[:to]
			if active.indexer.peakBits(sums) >= infBits {
				raise(sums)
			}
			copy(j.Scores[row][b*KVBlock:], sums)
			ahead = &keys[0] // the next block is on its way
		}
		keys = next
	}
}

// raise makes what is NaN or infinite +Inf.
func raise(scores []float32) {
	for i, v := range scores {
		if math.Float32bits(v)&infBits == infBits {
			scores[i] = float32(math.Inf(1))
		}
	}
}

// queries returns the queries of a tile's rows as kernels take them.
func (j *indexJob) queries(s *indexScratch, t tile) []float32 {
	n := j.Heads * j.Dim
	q := j.Q[t.from*n : t.to*n]
	if j.layout.kind != kvPairs {
		return q
	}
	pairs := grown(&s.q, len(q)/2)
	active.attention.pack[kvPairs](bytesOf(pairs), q)
	return pairs
}

// StoreKeys stores rows x [len(slots), dim] as the keys of slots of sequences,
// for IndexScores.
func (p *Pool) StoreKeys(kv KV, d tensor.DType, x []float32, dim int, seqs, slots []int32) {
	j := &p.indexer.store
	if len(j.packed) < p.Workers() {
		j.packed = make([][]byte, p.Workers())
	}
	*j = storeKeysJob{kv, d, layoutOf(d, dim, 0), x, seqs, slots, j.packed}
	p.splitRows(len(slots), dim, j)
}

type storeKeysJob struct {
	kv          KV
	dtype       tensor.DType
	layout      kvLayout
	x           []float32
	seqs, slots []int32
	packed      [][]byte // one per worker
}

func (j *storeKeysJob) do(worker, from, to int) {
	n := j.layout.keyDim
	packed := grown(&j.packed[worker], j.dtype.RowBytes(n))
	for row := from; row < to; row++ {
		slot := int(j.slots[row])
		active.attention.pack[j.layout.kind](packed, j.x[row*n:][:n])
		keys, _ := j.layout.head(j.kv.Block(int(j.seqs[row]), slot/KVBlock), 0)
		j.layout.putKey(keys, slot%KVBlock, packed)
	}
}

// indexerJobs are the arguments of the call that runs, and the memory that
// calls share.
type indexerJobs struct {
	scores   indexJob
	store    storeKeysJob
	top      topKJob
	hadamard hadamardJob
	round    roundJob
}
