package kernel

import "math"

// attentionScratch is a worker's memory for one tile and head: M query
// vectors, one for each of the tile's rows and of the query heads that share
// the key-value head.
type attentionScratch struct {
	packed []byte
	copied []float32 // [M, layout.query]
	q      []float32 // [M, layout.query]: copied, or a part of Q
	scores []float32 // [1+M+1, KVBlock]: a block's scores, then its weights, with room for shifting lanes
	lanes  []uint32  // [M], the lanes of a block that a query sees
	high   []float32 // [M], the maximum of a block
	sum    []float32 // [M], its sum of exponentials
	spare  []float32 // [mergeQueries, KVBlock]
	block  []float32 // [mergeQueries, ValueDim], its weighted values; zero between blocks
	top    []float32 // [M], maximum, sum and weighted values of what is merged
	total  []float32 // [M]
	out    []float32 // [M, ValueDim]
	paths  pathScratch
	values []byte // values of a block of pairs that a path puts together
}

// mergeQueries is how many query vectors are taken through a block's values
// before they are merged: whole register tiles of every tier (8, 6 and 4).
const mergeQueries = 24

// grown returns the first n values of a slice that grows on demand.
func grown[T any](s *[]T, n int) []T {
	if len(*s) < n {
		*s = make([]T, n+n/4) // contexts grow by a token at a time
	}
	return (*s)[:n]
}

// attend computes a tile's rows for the query heads that share a key-value
// head.
func (j *attentionJob) attend(s *attentionScratch, task int) {
	t, head := j.task(task)
	j.begin(s, t, head)
	j.clear(s, t)
	first, last := j.blocks(t)
	j.walk(s, t, head, first, last, nil)
	j.finish(s, t, head)
}

// begin readies s for reading blocks.
func (j *attentionJob) begin(s *attentionScratch, t tile, head int) {
	m := (t.to - t.from) * j.group
	grown(&s.scores, (1+m+1)*KVBlock)
	grown(&s.lanes, m)
	grown(&s.high, m)
	grown(&s.sum, m)
	grown(&s.spare, mergeQueries*KVBlock)
	pairs := j.layout.kind == kvPairs
	if t.to-t.from == 1 && !pairs {
		s.q = j.queries(t.from, head)
	} else {
		s.q = grown(&s.copied, m*j.layout.query)
		n := j.group * j.layout.query
		for row := t.from; row < t.to; row++ {
			q := s.q[(row-t.from)*n:][:n]
			if pairs {
				j.kernels.pack[kvPairs](bytesOf(q), j.queries(row, head))
			} else {
				copy(q, j.queries(row, head))
			}
		}
	}
	j.beginPaths(s, t, head)
}

// queries returns a row's query vectors for a key-value head.
func (j *attentionJob) queries(row, head int) []float32 {
	return j.Q[(row*j.Heads+head*j.group)*j.KeyDim:][:j.group*j.KeyDim]
}

// clear makes room for merged blocks, of which there are none yet.
func (j *attentionJob) clear(s *attentionScratch, t tile) {
	m := (t.to - t.from) * j.group
	top := grown(&s.top, m)
	for i := range top {
		top[i] = -math.MaxFloat32
	}
	clear(grown(&s.total, m))
	clear(grown(&s.out, m*j.ValueDim))
	clear(grown(&s.block, min(m, mergeQueries)*j.ValueDim))
}

// finish divides the weighted values by the sum of the weights.
func (j *attentionJob) finish(s *attentionScratch, t tile, head int) {
	for row := t.from; row < t.to; row++ {
		q := (row - t.from) * j.group
		out := j.Out[(row*j.Heads+head*j.group)*j.ValueDim:][:j.group*j.ValueDim]
		j.kernels.normalise(out, s.out[q*j.ValueDim:], s.total[q:q+j.group], j.ValueDim)
	}
}

// walk reduces blocks [first, last), and merges each or leaves it in results.
func (j *attentionJob) walk(s *attentionScratch, t tile, head, first, last int, results []blockResult) {
	seq := int(j.Seqs[t.from])
	keys, values := j.layout.head(j.KV.Block(seq, first), head)
	for b := first; b < last; b++ {
		nextKeys, nextValues := keys, values
		if b+1 < last {
			nextKeys, nextValues = j.layout.head(j.KV.Block(seq, b+1), head)
		}
		at := blockAt{b, head, keys, values, &nextKeys[0], nil}
		if results != nil {
			at.result = &results[b-first]
		}
		for run := range j.seeing(t, b) {
			j.reduceBlock(s, t, run, &at)
		}
		keys, values = nextKeys, nextValues
	}
}

// blockAt is one head of one block.
type blockAt struct {
	b, head      int
	keys, values []byte
	next         *byte        // what is read after them
	result       *blockResult // where the block's results stay; nil: they are merged
}

// seeing yields the longest runs of t's rows that see some of block b.
func (j *attentionJob) seeing(t tile, b int) func(yield func(tile) bool) {
	return func(yield func(tile) bool) {
		run := tile{t.from, t.from}
		for row := t.from; row < t.to; row++ {
			if from, to := j.sees(row, b); from < to {
				run.to = row + 1
				continue
			}
			if run.from < run.to && !yield(run) {
				return
			}
			run = tile{row + 1, row + 1}
		}
		if run.from < run.to {
			yield(run)
		}
	}
}

// reduceBlock reduces a block for rows that all see some of it.
func (j *attentionJob) reduceBlock(s *attentionScratch, t, run tile, at *blockAt) {
	q, end := (run.from-t.from)*j.group, (run.to-t.from)*j.group
	scores := s.scores[(1+q)*KVBlock : (1+end)*KVBlock]
	j.kernels.scores[j.layout.kind](scores, s.q[q*j.layout.query:end*j.layout.query], at.keys, j.KeyDim, &at.values[0])
	for row := run.from; row < run.to; row++ {
		from, to := j.sees(row, at.b)
		seen := uint32(1<<to - 1<<from)
		for i := range j.group {
			s.lanes[(row-t.from)*j.group+i] = seen
		}
		if s.paths.in(row-t.from, at.b) {
			j.pathScores(s, t, row, at.b)
		}
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

	// Positions that a row does not see take no part, not even with a weight of
	// 0: what they hold may be no number.
	for row := run.from; row < run.to; {
		from, to := j.sees(row, at.b)
		same := tile{row, row + 1}
		if !s.paths.in(row-t.from, at.b) {
			for ; same.to < run.to && !s.paths.in(same.to-t.from, at.b); same.to++ {
				if f, e := j.sees(same.to, at.b); f != from || e != to {
					break
				}
			}
		}
		j.weigh(s, t, same, at, from, to)
		row = same.to
	}
}

// weigh sums the values of lanes [from, to) of a block for rows that see just
// these.
func (j *attentionJob) weigh(s *attentionScratch, t, rows tile, at *blockAt, from, to int) {
	d := j.ValueDim
	end := (rows.to - t.from) * j.group
	for q := (rows.from - t.from) * j.group; q < end; q += mergeQueries {
		n := min(mergeQueries, end-q)
		var out []float32
		if at.result != nil {
			out = at.result.out[q*d:][:n*d]
		} else {
			out = s.block[:n*d]
		}
		if s.paths.in(rows.from-t.from, at.b) {
			j.pathValues(s, rows.from, at, out, q, n, from, to)
		} else {
			j.kernels.values[j.layout.kind](out, s.scores[(1+q)*KVBlock:][:n*KVBlock], s.spare, at.values, d, from, to, at.next)
		}
		if at.result == nil {
			j.kernels.merge(s.out[q*d:][:n*d], out, s.top[q:q+n], s.total[q:q+n], s.high[q:q+n], s.sum[q:q+n], d)
		}
	}
}
