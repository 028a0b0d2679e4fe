package kernel

// Where tiles and heads are fewer than workers, a long context is cut into
// ranges of blocks. Every block's results are kept and then merged in order,
// as if one worker had read them all: the cut leaves no trace.
type split struct {
	ranges  int
	results [][]blockResult // [tiles·KVHeads][blocks]
	memory  []float32
}

// blockResult is what a block yields for the M query vectors of a tile.
type blockResult struct {
	high, sum []float32 // [M]
	out       []float32 // [M, ValueDim]
}

// splitBlocks is the least number of blocks that are worth a range.
const splitBlocks = 8

// splitBytes bounds the memory for results.
const splitBytes = 256 << 20

// ranges returns into how many ranges each task's blocks are cut.
func (j *attentionJob) ranges(tasks, workers int) int {
	if tasks >= workers {
		return 1
	}
	most, results := 0, 0
	for _, t := range j.tiles {
		first, last := j.blocks(t)
		most = max(most, last-first)
		results += (last - first) * (t.to - t.from)
	}
	if results*j.Heads*(2+j.ValueDim)*4 > splitBytes {
		return 1
	}
	// Twice as many pieces as workers even out their speeds.
	return min((2*workers+tasks-1)/tasks, most/splitBlocks)
}

// allot makes room for the results of all blocks.
func (j *attentionJob) allot(tasks, ranges int) {
	p := &j.split
	p.ranges = ranges
	total := 0
	for _, t := range j.tiles {
		first, last := j.blocks(t)
		total += (last - first) * (t.to - t.from) * j.Heads * (2 + j.ValueDim)
	}
	memory := grown(&p.memory, total)
	take := func(n int) (s []float32) {
		s, memory = memory[:n:n], memory[n:]
		return s
	}
	results := grown(&p.results, tasks)
	for task := range results {
		t, _ := j.task(task)
		first, last := j.blocks(t)
		m := (t.to - t.from) * j.group
		r := grown(&results[task], last-first)
		for b := range r {
			r[b] = blockResult{take(m), take(m), take(m * j.ValueDim)}
		}
	}
}

// reduce reduces one range of blocks.
func (j *attentionJob) reduce(s *attentionScratch, n int) {
	task, part := n/j.split.ranges, n%j.split.ranges
	t, head := j.task(task)
	first, last := j.blocks(t)
	count := last - first
	from, to := part*count/j.split.ranges, (part+1)*count/j.split.ranges
	if from == to {
		return
	}
	results := j.split.results[task][from:to]
	for b := range results {
		clear(results[b].out)
	}
	j.begin(s, t, head)
	j.walk(s, t, head, first+from, first+to, results)
}

// merge merges the results of a task's blocks.
func (j *attentionJob) merge(s *attentionScratch, task int) {
	t, head := j.task(task)
	j.clear(s, t)
	first, last := j.blocks(t)
	d := j.ValueDim
	for b := first; b < last; b++ {
		r := &j.split.results[task][b-first]
		for run := range j.seeing(t, b) {
			q, end := (run.from-t.from)*j.group, (run.to-t.from)*j.group
			j.kernels.merge(s.out[q*d:end*d], r.out[q*d:end*d], s.top[q:end], s.total[q:end], r.high[q:end], r.sum[q:end], d)
		}
	}
	j.finish(s, t, head)
}
