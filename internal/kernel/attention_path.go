package kernel

import (
	"math"
	"slices"
)

// A row of a tree of drafts reads the slots of its path as if they were its
// last positions. A score does not depend on the lane it is computed in, so
// the blocks that hold slots are scored as they lie, for all rows at once, and
// a row collects the scores of its path into the lanes of its positions.
// Values are summed in the order of positions, from wherever they lie. The row
// so has the bits that it has without a tree.
type pathScratch struct {
	starts []int     // [rows], the first position whose slot is another; math.MaxInt: none
	blocks []int     // those that hold the slots from there on
	scores []float32 // [len(blocks), M, KVBlock]
}

// in reports whether block b has positions of a row whose slots are others.
func (p *pathScratch) in(row, b int) bool { return p.starts[row] < (b+1)*KVBlock }

// pathStart is the first position of a row's path.
func (j *attentionJob) pathStart(row int) int {
	return int(j.Positions[row]) + 1 - len(j.Paths[row])
}

// slot returns where position pos of a row lies.
func (j *attentionJob) slot(row, pos int) int {
	if start := j.pathStart(row); pos >= start {
		return int(j.Paths[row][pos-start])
	}
	return pos
}

// beginPaths scores the slots of paths.
func (j *attentionJob) beginPaths(s *attentionScratch, t tile, head int) {
	p := &s.paths
	starts := grown(&p.starts, t.to-t.from)
	for i := range starts {
		starts[i] = math.MaxInt
	}
	if j.Paths == nil {
		return
	}
	p.blocks = p.blocks[:0]
	for row := t.from; row < t.to; row++ {
		path, start := j.Paths[row], j.pathStart(row)
		for len(path) > 0 && int(path[0]) == start {
			path, start = path[1:], start+1
		}
		if len(path) == 0 {
			continue
		}
		starts[row-t.from] = start
		for _, slot := range path {
			if b := int(slot) / KVBlock; !slices.Contains(p.blocks, b) {
				p.blocks = append(p.blocks, b)
			}
		}
	}
	size := (t.to - t.from) * j.group * KVBlock
	scores := grown(&p.scores, len(p.blocks)*size)
	for i, b := range p.blocks {
		keys, _ := j.layout.head(j.KV.Block(int(j.Seqs[t.from]), b), head)
		j.kernels.scores[j.layout.kind](scores[i*size:][:size], s.q, keys, j.KeyDim, &keys[0])
	}
}

// pathScores replaces the scores of block b that lie in other slots.
func (j *attentionJob) pathScores(s *attentionScratch, t tile, row, b int) {
	p := &s.paths
	from, to := j.sees(row, b)
	m, q := (t.to-t.from)*j.group, (row-t.from)*j.group
	for lane := max(from, p.starts[row-t.from]-b*KVBlock); lane < to; lane++ {
		slot := j.slot(row, b*KVBlock+lane)
		i := slices.Index(p.blocks, slot/KVBlock)
		for g := q; g < q+j.group; g++ {
			s.scores[(1+g)*KVBlock+lane] = p.scores[(i*m+g)*KVBlock+slot%KVBlock]
		}
	}
}

// pathValues sums the values of lanes [from, to) of a block for n query
// vectors of a row, the first being vector q of the tile.
func (j *attentionJob) pathValues(s *attentionScratch, row int, at *blockAt, out []float32, q, n, from, to int) {
	if j.layout.kind == kvPairs {
		j.pathPairs(s, row, at, out, s.scores[(1+q)*KVBlock:][:n*KVBlock], s.paths.starts[q/j.group], from, to)
		return
	}
	for lane := from; lane < to; {
		slot := j.slot(row, at.b*KVBlock+lane)
		first := slot % KVBlock
		run := 1 // positions whose values follow each other in one block
		for lane+run < to && first+run < KVBlock && j.slot(row, at.b*KVBlock+lane+run) == slot+run {
			run++
		}
		_, values := j.layout.head(j.KV.Block(int(j.Seqs[row]), slot/KVBlock), at.head)
		weights := s.scores[(1+q)*KVBlock+lane-first:][:n*KVBlock]
		j.kernels.values[j.layout.kind](out, weights, s.spare, values, j.ValueDim, first, first+run, &values[0])
		lane += run
	}
}
