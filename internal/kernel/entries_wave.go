package kernel

// Where tiles and heads are fewer than workers, blocks are spread over workers,
// too: a wave of them at a time, whose results stay in the caches until they
// are merged in order, as if one worker had read them all.
type wave struct {
	first  int // block of every task that the wave begins with
	blocks int // of the task that has most
	pieces int // of splitBlocks blocks, that the wave has of each task
	cuts   int // parts of a task's query vectors that are merged by themselves

	merged  []attentionScratch // [tasks], what is merged
	results [][]blockResult    // [tasks][pieces·splitBlocks]
	memory  []float32
}

// spread reports whether blocks are spread over workers, and makes room for the
// results of a wave.
func (j *entriesJob) spread(tasks, workers int) bool {
	w := &j.wave
	if tasks >= workers {
		return false
	}
	w.first, w.blocks = 0, 0
	for task := range tasks {
		w.blocks = max(w.blocks, j.count(j.task(task)))
	}
	// Twice as many pieces as workers even out their speeds.
	w.cuts = (2*workers + tasks - 1) / tasks
	w.pieces = min(w.cuts, w.blocks/splitBlocks)
	if w.pieces < 2 {
		return false
	}
	total := 0
	for task := range tasks {
		total += j.vectors(task) * w.pieces * splitBlocks * (2 + j.ValueDim)
	}
	memory := grown(&w.memory, total)
	take := func(n int) (s []float32) {
		s, memory = memory[:n:n], memory[n:]
		return s
	}
	grown(&w.merged, tasks)
	for task := range grown(&w.results, tasks) {
		m := j.vectors(task)
		for i := range grown(&w.results[task], w.pieces*splitBlocks) {
			w.results[task][i] = blockResult{take(m), take(m), take(m * j.ValueDim)}
		}
	}
	return true
}

// vectors is the number of query vectors of a task.
func (j *entriesJob) vectors(task int) int {
	t, _ := j.task(task)
	return (t.to - t.from) * j.group
}

// reduce reduces a piece.
func (j *entriesJob) reduce(worker, n int) {
	w := &j.wave
	task, piece := n/w.pieces, n%w.pieces
	t, head := j.task(task)
	if w.first == 0 && piece == 0 {
		j.clear(&w.merged[task], t)
	}
	first := w.first + piece*splitBlocks
	if first >= j.count(t, head) {
		return
	}
	results := w.results[task][piece*splitBlocks:][:splitBlocks]
	for i := range results {
		clear(results[i].out)
	}
	s := &j.scratch[worker]
	j.begin(s, t, head)
	j.walk(s, &j.packed[worker], t, head, first, first+splitBlocks, results)
}

// merge merges the wave's blocks for some of a task's query vectors.
func (j *entriesJob) merge(n int) {
	w := &j.wave
	task, cut := n/w.cuts, n%w.cuts
	t, head := j.task(task)
	m, d, s, results := j.vectors(task), j.ValueDim, &w.merged[task], w.results[task]
	from, to := cut*m/w.cuts, (cut+1)*m/w.cuts
	for src, b := range j.blocksOf(t, head, w.first, w.first+w.pieces*splitBlocks) {
		r := &results[0]
		results = results[1:]
		for q := from; q < to; {
			row := t.from + q/j.group
			end := min(to, (row+1-t.from)*j.group)
			if !j.lanes(src, row, head, b).empty() {
				j.kernels.merge(s.out[q*d:end*d], r.out[q*d:end*d], s.top[q:end], s.total[q:end], r.high[q:end], r.sum[q:end], d)
			}
			q = end
		}
	}
}
