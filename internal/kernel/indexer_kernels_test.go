package kernel

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The sum of a lane is four chains of multiply-adds, fused or not.
func TestSumHeadsAgainstTwin(t *testing.T) {
	eachTier(t, rapidCheck(func(t *rapid.T) {
		heads := rapid.IntRange(0, 21).Draw(t, "heads")
		scores, weights := drawValues(t, heads*KVBlock, true), drawValues(t, heads, true)
		s, w, out := fenced(scores), fenced(weights), fenced(make([]float32, KVBlock))
		active.indexer.sumHeads((*[KVBlock]float32)(out.slice), s.slice, w.slice)
		var want, size [KVBlock]float32
		sumHeadsGeneric(&want, scores, weights)
		sumHeadsGeneric(&size, scores, magnitudes(weights))
		bound := func(l int) float64 { return float64(heads)*0x1p-23*float64(size[l]) + 0x1p-140 }
		if l := unequal(out.slice, want[:], bound); l >= 0 {
			t.Fatalf("lane %d: %v, twin %v", l, out.slice[l], want[l])
		}
		s.check(t, "s")
		w.check(t, "w")
		out.check(t, "out")
	}))
}

func TestSumHeads(t *testing.T) {
	nan := float32(math.NaN())
	eachTier(t, func(t *testing.T) {
		s := make([]float32, 6*KVBlock)
		for h, x := range []float32{1, -5, 2, 3, 4, -1} {
			for l := range KVBlock {
				s[h*KVBlock+l] = x * float32(l)
			}
		}
		s[4*KVBlock+7] = nan
		var out [KVBlock]float32
		active.indexer.sumHeads(&out, s, []float32{1, 1, -1, 10, 100, 1000})
		for l, got := range out {
			want := float32(l) * (1 - 2 + 30 + 400)
			if l == 7 {
				want = nan
			}
			if got != want && (got == got || want == want) {
				t.Errorf("lane %d: %v, want %v", l, got, want)
			}
		}
	})
}
