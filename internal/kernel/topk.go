package kernel

import (
	"math"
	"math/bits"
	"slices"
)

// TopK returns the indices of the k greatest values of each row of scores, in
// ascending order; all indices of a row that has no more than k. Of equal
// values, -0 and 0 among them, the first are taken, and a NaN, which has no
// order, only where numbers are fewer than k. The memory of out is reused for
// the result.
func (p *Pool) TopK(scores [][]float32, k int, out [][]int32) [][]int32 {
	out = slices.Grow(out, max(0, len(scores)-len(out)))[:len(scores)]
	j := &p.indexer.top
	if len(j.scratch) < p.Workers() {
		j.scratch = make([]topKScratch, p.Workers())
	}
	j.scores, j.out, j.k = scores, out, max(k, 0)
	longest := 0
	for _, x := range scores {
		longest = max(longest, len(x))
	}
	p.splitRows(len(scores), longest, j)
	return out
}

type topKJob struct {
	scores  [][]float32
	out     [][]int32
	k       int
	scratch []topKScratch // one per worker
}

func (j *topKJob) do(worker, from, to int) {
	for row := from; row < to; row++ {
		x, out := j.scores[row], j.out[row][:0]
		out = slices.Grow(out, min(j.k, len(x)))
		j.out[row] = j.scratch[worker].top(out, x, j.k)
	}
}

// topKScratch is a worker's memory.
type topKScratch struct {
	indices []int32 // candidates
	keys    []uint32
	count   [1 << keyDigit]int32
	set     [64]uint64 // a bit for each value of a part of the row
}

// top appends the indices of the k greatest values of x to out.
func (s *topKScratch) top(out []int32, x []float32, k int) []int32 {
	if k == 0 {
		return out
	}
	candidates := s.candidates(x, k)
	if len(candidates) <= k {
		return append(out, candidates...)
	}
	keys := grown(&s.keys, len(candidates))
	for i, at := range candidates {
		keys[i] = sortKey(x[at])
	}
	least, ties := s.least(keys, k)
	for _, at := range candidates {
		switch key := sortKey(x[at]); {
		case key > least:
			out = append(out, at)
		case key == least && ties > 0:
			out = append(out, at)
			ties--
		}
	}
	return out
}

// topKSample is how many values of a long row are looked at to tell what the
// k-th greatest is likely not below.
const topKSample = 512

// candidates returns the indices of values among which are the k greatest, all
// indices if nothing better is known.
func (s *topKScratch) candidates(x []float32, k int) []int32 {
	indices := grown(&s.indices, len(x))[:0]
	if len(x) >= 4*max(k, topKSample) {
		sample := grown(&s.keys, topKSample)
		for i := range sample {
			sample[i] = sortKey(x[i*len(x)/topKSample])
		}
		// Of the k greatest, the sample has about share, and seldom more than three
		// standard deviations more.
		share := topKSample * float64(k) / float64(len(x))
		floor, _ := s.least(sample, int(share+3*math.Sqrt(share))+1)
		indices = s.atLeast(indices, x, keyValue(floor))
	}
	if len(indices) >= k {
		return indices
	}
	indices = indices[:len(x)]
	for i := range indices {
		indices[i] = int32(i)
	}
	return indices
}

// atLeast appends the indices of values that are not below floor.
func (s *topKScratch) atLeast(indices []int32, x []float32, floor float32) []int32 {
	for from := 0; from < len(x); from += 64 * len(s.set) {
		part := x[from:min(from+64*len(s.set), len(x))]
		AtLeast(s.set[:], part, floor)
		for w, word := range s.set[:words(part)] {
			for ; word != 0; word &= word - 1 {
				indices = append(indices, int32(from+64*w+bits.TrailingZeros64(word)))
			}
		}
	}
	return indices
}

// keyDigit is how many bits of keys are told apart at a time.
const keyDigit = 11

// least returns the least of the k greatest keys, and how many of those equal
// to it are among these k. Keys are selected by their upper 11 bits first, then
// by the next 11 of those that share the deciding upper ones, and so on, in time
// that hardly depends on what they are. They are overwritten.
func (s *topKScratch) least(keys []uint32, k int) (key uint32, ties int32) {
	left := int32(k)
	for _, shift := range [...]int{32 - keyDigit, 32 - 2*keyDigit, 0} {
		digit := func(key uint32) uint32 { return key >> shift & (1<<keyDigit - 1) }
		clear(s.count[:])
		for _, key := range keys {
			s.count[digit(key)]++
		}
		d := len(s.count) - 1
		for ; s.count[d] < left; d-- {
			left -= s.count[d]
		}
		n := 0
		for _, key := range keys {
			keys[n] = key
			if digit(key) == uint32(d) {
				n++
			}
		}
		keys = keys[:n]
	}
	return keys[0], left
}

// sortKey maps numbers to integers in their order, NaN to the lowest.
func sortKey(v float32) uint32 {
	b := math.Float32bits(v)
	switch {
	case b&^(1<<31) > infBits:
		return 0
	case b == 1<<31: // -0
		return 1 << 31
	}
	return b ^ (uint32(int32(b)>>31) | 1<<31)
}

// keyValue returns the number of a key.
func keyValue(key uint32) float32 {
	if key == 0 {
		return float32(math.NaN())
	}
	return math.Float32frombits(key ^ (^uint32(int32(key)>>31) | 1<<31))
}
