package kernel

import (
	"fmt"
	"math"
)

// Hadamard multiplies each n values of x, a power of two, by the Hadamard
// matrix in natural order (Sylvester's), times n^-½: an orthogonal matrix that
// is its own inverse.
func (p *Pool) Hadamard(x []float32, n int) {
	if n <= 0 || n&(n-1) != 0 {
		panic(fmt.Sprintf("kernel: a Hadamard matrix of %d rows", n))
	}
	p.indexer.hadamard = hadamardJob{x, n}
	p.splitRows(len(x)/n, n, &p.indexer.hadamard)
}

type hadamardJob struct {
	x []float32
	n int
}

func (j *hadamardJob) do(_, from, to int) {
	factor := float32(1 / math.Sqrt(float64(j.n)))
	for at := from * j.n; at < to*j.n; at += j.n {
		x := j.x[at : at+j.n]
		active.indexer.hadamard(x)
		active.rows.scale(x, factor)
	}
}

// hadamardWide leaves the first strides to registers, a kernel that transforms
// each n values; plain Go does the others, and what is narrower.
func hadamardWide(x []float32, registers func(x []float32), n int) {
	if len(x) < n {
		hadamardGeneric(x)
		return
	}
	registers(x)
	butterflies(x, n)
}
