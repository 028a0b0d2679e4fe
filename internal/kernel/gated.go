package kernel

import "math"

// A GatedWindow is what one mean is made of: values and their gates.
type GatedWindow struct {
	Values, Gates [][]float32 // [n], each of dim values
}

// GatedMeans writes, for each window, the mean of its values weighted channel by
// channel by the softmax of their gates, to dst [len(windows), dim].
func (p *Pool) GatedMeans(dst []float32, dim int, windows []GatedWindow) {
	if len(windows) == 0 {
		return
	}
	p.rowJobs.gated = gatedJob{dst, dim, windows}
	p.splitRows(len(windows), gatedCost*dim*len(windows[0].Values), &p.rowJobs.gated)
}

// gatedCost is what an exponential costs, in values that are only passed on.
const gatedCost = 8

type gatedJob struct {
	dst     []float32
	dim     int
	windows []GatedWindow
}

func (j *gatedJob) do(_, from, to int) {
	for i := from; i < to; i++ {
		j.windows[i].mean(j.dst[i*j.dim:][:j.dim])
	}
}

// mean sums a channel at a time over positions in their order.
func (w *GatedWindow) mean(dst []float32) {
	for c := range dst {
		high := float32(math.Inf(-1))
		for _, g := range w.Gates {
			high = max(high, g[c])
		}
		var sum, total float32
		for t, g := range w.Gates {
			e := expGeneric(g[c] - high)
			total += e
			sum += float32(e * w.Values[t][c])
		}
		dst[c] = sum / total
	}
}
