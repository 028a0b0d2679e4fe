package kernel

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/foretoken/foretoken/internal/tensor"
)

// KVBlock is the number of positions whose keys and values are stored and
// reduced together. Blocks are cut at absolute positions: a row sees the same
// blocks however its sequence was cut into steps.
const KVBlock = 32

// KV gives attention the cached keys and values of one layer. Block returns
// those of positions [b·KVBlock, (b+1)·KVBlock) of a sequence, keys and values
// both [heads, KVBlock, width] in the cache's dtype.
type KV interface {
	Block(seq, b int) (k, v []byte)
}

// Attention is softmax(scale · q·kᵀ)·v over the cached positions up to and
// including a row's own.
type Attention struct {
	Heads, KVHeads   int
	KeyDim, ValueDim int
	Scale            float32
	Window           int          // positions a row sees, its own included; 0: all
	DType            tensor.DType // of the cache
	Q, Out           []float32    // [rows, Heads, KeyDim], [rows, Heads, ValueDim]
	Positions        []int32      // [rows]
	Seqs             []int32      // [rows], the sequence of each row as KV knows it
	KV               KV
}

// Attend runs a; the keys and values of its rows are in the cache already.
func (p *Pool) Attend(a Attention) {
	p.attention = attentionJob{pool: p, Attention: a}
	p.run(len(a.Positions)*a.KVHeads, &p.attention)
}

type attentionJob struct {
	pool *Pool
	Attention
}

// do attends with the query heads that share one key-value head, for one row.
// A block yields its maximum, its sum of exponentials and its weighted values;
// blocks are merged left to right into the head's own (online softmax,
// Milakov and Gimelshein 2018).
func (j *attentionJob) do(worker, task int) {
	row, kvHead := task/j.KVHeads, task%j.KVHeads
	group := j.Heads / j.KVHeads
	pos := int(j.Positions[row])
	first := 0
	if j.Window > 0 {
		first = max(0, pos-j.Window+1)
	}
	s := j.scratch(worker, group)
	for g := range group {
		s.max[g], s.sum[g] = negInf, 0
	}
	clear(s.out)

	for b := first / KVBlock; b <= pos/KVBlock; b++ {
		from, to := max(first-b*KVBlock, 0), min(pos-b*KVBlock, KVBlock-1)+1
		kb, vb := j.KV.Block(int(j.Seqs[row]), b)
		k := j.values(kb, kvHead, j.KeyDim, to, s.k)[from*j.KeyDim:]
		v := j.values(vb, kvHead, j.ValueDim, to, s.v)[from*j.ValueDim:]
		for g := range group {
			head := kvHead*group + g
			q := j.Q[(row*j.Heads+head)*j.KeyDim:][:j.KeyDim]
			high, sum := j.block(s.scores[:to-from], s.block, q, k, v)
			if high == negInf {
				continue // no position of this block has any weight
			}
			merged := max(s.max[g], high)
			keep, gain := exp(s.max[g]-merged), exp(high-merged)
			o := s.out[g*j.ValueDim:][:j.ValueDim]
			for i := range o {
				o[i] = float32(o[i]*keep) + float32(s.block[i]*gain)
			}
			s.max[g], s.sum[g] = merged, float32(s.sum[g]*keep)+float32(sum*gain)
		}
	}
	for g := range group {
		o := j.Out[(row*j.Heads+kvHead*group+g)*j.ValueDim:][:j.ValueDim]
		inv := 1 / s.sum[g]
		for i := range o {
			o[i] = s.out[g*j.ValueDim+i] * inv
		}
	}
}

// block computes softmax's numerators for one query over one block: out =
// Σ exp(sᵢ - high)·vᵢ, and returns high = max sᵢ and sum = Σ exp(sᵢ - high).
func (j *attentionJob) block(scores, out, q, k, v []float32) (high, sum float32) {
	high = negInf
	for i := range scores {
		scores[i] = dot(q, k[i*j.KeyDim:][:j.KeyDim]) * j.Scale
		high = max(high, scores[i])
	}
	if high == negInf {
		return high, 0
	}
	clear(out)
	for i, s := range scores {
		w := exp(s - high)
		sum += w
		axpy(out, w, v[i*j.ValueDim:][:j.ValueDim])
	}
	return high, sum
}

var (
	negInf       = float32(math.Inf(-1))
	littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1 // as the cache is
)

// attentionScratch is a worker's memory for one task.
type attentionScratch struct {
	scores   []float32 // [KVBlock]
	k, v     []float32 // [KVBlock, KeyDim], [KVBlock, ValueDim]: decoded
	block    []float32 // [ValueDim]: what the block at hand yields
	max, sum []float32 // [group]
	out      []float32 // [group, ValueDim], unnormalised
}

func (j *attentionJob) scratch(worker, group int) (s attentionScratch) {
	buf := j.pool.buffer(worker, KVBlock*(1+j.KeyDim+j.ValueDim)+j.ValueDim+group*(2+j.ValueDim))
	for _, part := range []struct {
		to *[]float32
		n  int
	}{
		{&s.scores, KVBlock},
		{&s.k, KVBlock * j.KeyDim},
		{&s.v, KVBlock * j.ValueDim},
		{&s.block, j.ValueDim},
		{&s.max, group},
		{&s.sum, group},
		{&s.out, group * j.ValueDim},
	} {
		*part.to, buf = buf[:part.n], buf[part.n:]
	}
	return s
}

// values returns the first n rows of a head in a block as float32, decoded
// into scratch unless they are stored so.
func (j *attentionJob) values(block []byte, head, width, n int, scratch []float32) []float32 {
	size := j.DType.BlockBytes()
	src := block[head*KVBlock*width*size:][:n*width*size]
	if j.DType == tensor.F32 && littleEndian {
		return unsafe.Slice((*float32)(unsafe.Pointer(&src[0])), n*width)
	}
	tensor.Decode(j.DType, scratch[:n*width], src)
	return scratch
}
