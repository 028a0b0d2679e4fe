package kernel

import "math"

// LayerNorm writes w · (x - mean) / √(variance + eps) + b for each row of
// x [rows, len(w)]. y may be x. (Ba, Kiros and Hinton 2016; mean and variance
// are taken in float64.)
func (p *Pool) LayerNorm(y, x, w, b []float32, eps float32) {
	if len(w) == 0 {
		return
	}
	p.rowJobs.layerNorm = layerNormJob{y, x, w, b, eps}
	p.splitRows(len(x)/len(w), len(w), &p.rowJobs.layerNorm)
}

type layerNormJob struct {
	y, x, w, b []float32
	eps        float32
}

// do is plain Go on every tier: models norm a vector of 128 values per token
// in this way, the index key.
func (j *layerNormJob) do(_, from, to int) {
	n := len(j.w)
	for at := from * n; at < to*n; at += n {
		x, y := j.x[at:at+n], j.y[at:at+n]
		var mean, variance float64
		for _, v := range x {
			mean += float64(v)
		}
		mean /= float64(n)
		for _, v := range x {
			d := float64(v) - mean
			variance += float64(d * d)
		}
		inv := 1 / math.Sqrt(variance/float64(n)+float64(j.eps))
		for i, v := range x {
			y[i] = float32(j.w[i]*float32((float64(v)-mean)*inv)) + j.b[i]
		}
	}
}
