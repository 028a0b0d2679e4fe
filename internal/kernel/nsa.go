package kernel

// nsaJobs are the arguments of the call that runs, and the memory that calls
// share: the parts of native sparse attention that others do without.
type nsaJobs struct {
	scores  blockScoresJob
	mean    meanJob
	sigmoid sigmoidJob
	gated   gatedSumJob
}

// Means writes the mean of each count consecutive rows of x, of n values, to a
// row of y. Rows are added in order.
func (p *Pool) Means(y, x []float32, count, n int) {
	p.nsa.mean = meanJob{y, x, count, n}
	p.splitRows(len(y)/n, count*n, &p.nsa.mean)
}

type meanJob struct {
	y, x     []float32
	count, n int
}

func (j *meanJob) do(_, from, to int) {
	for i := from; i < to; i++ {
		y, x := j.y[i*j.n:][:j.n], j.x[i*j.count*j.n:][:j.count*j.n]
		copy(y, x)
		for at := j.n; at < len(x); at += j.n {
			active.rows.add(y, x[at:at+j.n])
		}
		active.rows.scale(y, 1/float32(j.count))
	}
}

// Sigmoid replaces each value of x by 1/(1 + exp(-x)).
func (p *Pool) Sigmoid(x []float32) {
	const grain = rowGrain / 8 // an exponential costs as much as 8 values that are only passed on
	p.nsa.sigmoid = sigmoidJob{x}
	p.split(len(x), grain, &p.nsa.sigmoid)
}

type sigmoidJob struct{ x []float32 }

func (j *sigmoidJob) do(_, from, to int) {
	for i, x := range j.x[from:to] {
		j.x[from+i] = 1 / (1 + expGeneric(-x))
	}
}

// Branches is how many results native sparse attention adds up: those of
// compressed entries, of selected blocks and of the window.
const Branches = 3

// GatedSum writes y = Σ gates[i, c]·branches[c] for each vector i of n values:
// gates [vectors, Branches]. A branch that is nil is left out.
func (p *Pool) GatedSum(y []float32, branches [Branches][]float32, gates []float32, n int) {
	p.nsa.gated = gatedSumJob{y, branches, gates, n}
	p.splitRows(len(y)/n, Branches*n, &p.nsa.gated)
}

type gatedSumJob struct {
	y        []float32
	branches [Branches][]float32
	gates    []float32
	n        int
}

func (j *gatedSumJob) do(_, from, to int) {
	for i := from; i < to; i++ {
		y := j.y[i*j.n:][:j.n]
		clear(y)
		for c, x := range j.branches {
			if x != nil {
				axpy(y, j.gates[i*Branches+c], x[i*j.n:])
			}
		}
	}
}
