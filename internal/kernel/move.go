package kernel

// Vectors are rows·columns vectors somewhere in X: that of row i and column j
// begins at i·Row + j·Column.
type Vectors struct {
	X           []float32
	Row, Column int
}

// Move copies rows·columns vectors of n values from one arrangement to another:
// heads in front of rows and back, parts of vectors into wider ones.
func (p *Pool) Move(to, from Vectors, rows, columns, n int) {
	p.rowJobs.move = moveJob{to, from, columns, n}
	p.splitRows(rows*columns, n, &p.rowJobs.move)
}

type moveJob struct {
	to, from   Vectors
	columns, n int
}

func (j *moveJob) do(_, first, last int) {
	for i := first; i < last; i++ {
		row, column := i/j.columns, i%j.columns
		copy(j.to.at(row, column, j.n), j.from.at(row, column, j.n))
	}
}

func (v *Vectors) at(row, column, n int) []float32 {
	return v.X[row*v.Row+column*v.Column:][:n]
}
