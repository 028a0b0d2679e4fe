package serve

import (
	"math"
	"math/bits"
	"time"
)

// subBits is the resolution of a histogram: durations of the same bucket have
// their first subBits+1 bits in common, so that the middle of a bucket is less
// than 2^-(subBits+1), 0.025 %, away from what was counted.
const subBits = 11

// A histogram counts durations in buckets whose width grows with them, as HDR
// histograms do: the gaps between the chunks of 100,000 answers take as much
// memory as those of one.
type histogram struct {
	counts    []uint32
	total     int
	low, high time.Duration

	// Welford's running mean and sum of squared distances from it, in ms.
	mean, squares float64
}

// bucket is the index of a duration: itself, while it has no more than
// subBits+1 bits.
func bucket(d time.Duration) int {
	shift := max(0, bits.Len64(uint64(d))-subBits-1)
	return shift<<subBits + int(d>>shift)
}

// bounds are the least duration of a bucket, and the least of the next.
func bounds(index int) (from, to time.Duration) {
	shift := max(0, index>>subBits-1)
	from = time.Duration(index-shift<<subBits) << shift
	return from, from + 1<<shift
}

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	if h.total == 0 {
		h.low, h.high = d, d
	}
	h.low, h.high = min(h.low, d), max(h.high, d)
	i := bucket(d)
	if i >= len(h.counts) {
		h.counts = append(h.counts, make([]uint32, i+1-len(h.counts))...)
	}
	h.counts[i]++
	h.total++
	v := ms(d)
	off := v - h.mean
	h.mean += off / float64(h.total)
	h.squares += off * (v - h.mean)
}

func (h *histogram) len() int { return h.total }

// at is the k-th duration from the least one, in ms: the middle of its bucket,
// but for the ends, which are known.
func (h *histogram) at(k int) float64 {
	if k == 0 {
		return ms(h.low)
	}
	for i, n := range h.counts[:len(h.counts)-1] {
		if k -= int(n); k < 0 {
			from, to := bounds(i)
			return ms(max((from+to-1)/2, h.low))
		}
	}
	return ms(h.high)
}

func (h *histogram) moments() (mean, std float64) {
	return h.mean, math.Sqrt(h.squares / float64(max(1, h.total)))
}

// ms is a duration in milliseconds.
func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
