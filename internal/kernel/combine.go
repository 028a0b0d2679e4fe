package kernel

// A Combination sums what experts made of a row, for every row of a step. The
// order depends on the experts alone, so that one rank and eight give the same
// bits: expert e is in shard ⌊8e/Experts⌋; a shard sums its experts by number,
// and shards are summed as a balanced binary tree.
type Combination struct {
	Y      []float32 // [rows, Width]
	X      []float32 // [terms, Width], what experts made; it is overwritten
	Shared []float32 // [rows, Width], added last; nil: nothing
	Width  int

	Experts int       // how many there are
	Active  int       // terms of a row
	Chosen  []int32   // [rows, Active]: the expert of each term, ascending
	Places  []int32   // [rows, Active]: its row of X, no other term's
	Weights []float32 // [rows, Active], which multiply terms; nil: 1
}

// Combine sums the terms of every row of c.
func (p *Pool) Combine(c Combination) {
	rows := len(c.Y) / c.Width
	p.rowJobs.combine = combineJob{c}
	p.splitRows(rows, c.Active*c.Width, &p.rowJobs.combine)
}

type combineJob struct{ Combination }

func (j *combineJob) do(_, from, to int) {
	for row := from; row < to; row++ {
		y := j.Y[row*j.Width : (row+1)*j.Width]
		clear(y)
		if sum := j.sum(row); sum != nil {
			active.rows.add(y, sum) // to zeros: -0 would tell one rank from several
		}
		if j.Shared != nil {
			active.rows.add(y, j.Shared[row*j.Width:(row+1)*j.Width])
		}
	}
}

// sum adds the terms of a row in one of them.
func (j *combineJob) sum(row int) []float32 {
	var shards [maxSegments][]float32
	for t := row * j.Active; t < (row+1)*j.Active; t++ {
		x := j.X[int(j.Places[t])*j.Width:][:j.Width]
		if j.Weights != nil {
			active.rows.scale(x, j.Weights[t])
		}
		addTo(&shards[int(j.Chosen[t])*maxSegments/j.Experts], x)
	}
	for step := 1; step < maxSegments; step *= 2 {
		for s := 0; s < maxSegments; s += 2 * step {
			if shards[s+step] != nil {
				addTo(&shards[s], shards[s+step])
			}
		}
	}
	return shards[0]
}

// addTo adds x to sum, which x becomes where there is none.
func addTo(sum *[]float32, x []float32) {
	if *sum == nil {
		*sum = x
		return
	}
	active.rows.add(*sum, x)
}
