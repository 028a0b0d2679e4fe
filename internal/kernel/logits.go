package kernel

import "slices"

// Kernels over a row of logits, as long as a vocabulary. They run on the
// calling goroutine: a row is some tens of microseconds.

// PeakGroup is how many values have a peak in common.
const PeakGroup = 256

// Peaks writes the greatest of each PeakGroup values of x to dst, the last
// group being what is left: NaN if a value of the group is NaN.
func Peaks(dst, x []float32) {
	for i := range (len(x) + PeakGroup - 1) / PeakGroup {
		dst[i] = active.rows.peak(x[i*PeakGroup : min((i+1)*PeakGroup, len(x))])
	}
}

// Argmax returns the index of the greatest value of x, the lowest on ties; if
// a value is NaN the index of the first that is; -1 if x is empty.
func Argmax(x []float32) int {
	const part = 1024
	best, at := negInf, 0
	for from := 0; from < len(x); from += part {
		v := active.rows.peak(x[from:min(from+part, len(x))])
		if v != v {
			return from + slices.IndexFunc(x[from:], func(v float32) bool { return v != v })
		}
		if v > best {
			best, at = v, from
		}
	}
	return at + slices.Index(x[at:], best)
}

// Divide divides x by a.
func Divide(x []float32, a float32) {
	for from := 0; from < len(x); from += rowGrain {
		active.rows.divide(x[from:min(from+rowGrain, len(x))], a)
	}
}

// ExpSum returns the sum of exp(x - shift). Each term has a relative error of
// 2e-7 and of a 2⁻²⁴th of |x - shift|; those below exp(-87) count as zero.
func ExpSum(x []float32, shift float32) float64 {
	var sum float64
	for from := 0; from < len(x); from += rowGrain {
		sum += active.rows.expSum(x[from:min(from+rowGrain, len(x))], shift)
	}
	return sum
}

// AtLeast sets bit i%64 of word i/64 for every x[i] >= floor, and clears the
// others.
func AtLeast(set []uint64, x []float32, floor float32) {
	whole := len(x) / 64
	active.rows.atLeast(set[:whole], x[:whole*64], floor)
	atLeastGeneric(set[whole:words(x)], x[whole*64:], floor)
}

// Mask sets x[i] to -Inf where bit i%64 of word i/64 of allowed is not set.
func Mask(x []float32, allowed []uint64) {
	whole := len(x) / 64
	active.rows.mask(x[:whole*64], allowed[:whole])
	maskGeneric(x[whole*64:], allowed[whole:words(x)])
}

// Contenders has bit i%64 of word i/64 set for every x[i], of 1024 at most,
// that may win a race: it and Gumbel noise from number i of the SplitMix64
// stream that starts at state sum to best or more. Nearly all values that
// cannot win are left out: those where an upper bound of the noise, at most 0.1
// too great, falls short.
func Contenders(x []float32, state uint64, best float64) (set [16]uint64) {
	_ = set[:words(x)] // x is not longer
	floor := contenderFloor(best)
	whole := len(x) &^ 63
	set = active.rows.contenders(x[:whole], state, floor)
	if whole < len(x) {
		tail := contendersGeneric(x[whole:], state+uint64(whole)*splitGamma, floor)
		set[whole/64] = tail[0]
	}
	return set
}

// words is how many words have a bit for each value.
func words(x []float32) int { return (len(x) + 63) / 64 }
