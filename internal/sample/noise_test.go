package sample

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// chiSquare compares counts with expected probabilities.
func chiSquare(counts []int, probs []float64) (x float64) {
	n := 0
	for _, c := range counts {
		n += c
	}
	for i, c := range counts {
		e := float64(n) * probs[i]
		x += (float64(c) - e) * (float64(c) - e) / e
	}
	return x
}

func softmax(logits []float32) []float64 {
	p := make([]float64, len(logits))
	var total float64
	for i, l := range logits {
		p[i] = math.Exp(float64(l))
		total += p[i]
	}
	for i := range p {
		p[i] /= total
	}
	return p
}

// Draws follow softmax along every part of the key, and draws of neighbouring
// keys are independent. The keys are fixed: the test is deterministic. The
// limits are the 0.999 quantiles of χ² with 5 and 35 degrees of freedom.
func TestGumbelMaxLaw(t *testing.T) {
	logits := []float32{0, 1, -1, 0.5, 2, -2.5}
	p := softmax(logits)
	joint := make([]float64, 36)
	for i := range joint {
		joint[i] = p[i/6] * p[i%6]
	}
	d := Dist{X: logits, Max: 2}
	const n = 60000
	for name, key := range map[string]func(i int) (Key, Purpose){
		"positions":       func(i int) (Key, Purpose) { return Key{Seed: 7, Position: i}, Token },
		"seeds":           func(i int) (Key, Purpose) { return Key{Seed: uint64(i), Position: 3}, Token },
		"high seed bits":  func(i int) (Key, Purpose) { return Key{Seed: uint64(i) << 40}, Token },
		"choices":         func(i int) (Key, Purpose) { return Key{Seed: 1, Choice: uint32(i)}, Token },
		"purposes":        func(i int) (Key, Purpose) { return Key{Seed: 1, Position: i / 4}, Purpose(i % 4) },
		"seed = position": func(i int) (Key, Purpose) { return Key{Seed: uint64(i), Position: i}, Token },
	} {
		t.Run(name, func(t *testing.T) {
			single, pairs := make([]int, 6), make([]int, 36)
			last := 0
			for i := range n {
				k, purpose := key(i)
				token := int(d.Draw(k.Noise(purpose)))
				single[token]++
				if i%2 == 1 {
					pairs[last*6+token]++
				}
				last = token
			}
			if x := chiSquare(single, p); x > 20.5 {
				t.Errorf("χ² = %.1f for 5 degrees of freedom, counts %v", x, single)
			}
			if x := chiSquare(pairs, joint); x > 66.6 {
				t.Errorf("pairs: χ² = %.1f for 35 degrees of freedom", x)
			}
		})
	}
}

// The law does not depend on which token ids carry it.
func TestGumbelMaxLawOfSparseIDs(t *testing.T) {
	d := Dist{IDs: []int32{3, 700, 701, 150000}, X: []float32{0, 0.5, 1, -1}, Max: 1}
	counts := make([]int, 4)
	for i := range 60000 {
		token := d.Draw(Key{Seed: 99, Position: i}.Noise(Token))
		for j, id := range d.IDs {
			if id == token {
				counts[j]++
			}
		}
	}
	if x := chiSquare(counts, softmax(d.X)); x > 16.3 { // 3 degrees of freedom
		t.Errorf("χ² = %.1f, counts %v", x, counts)
	}
}

func TestNoiseMoments(t *testing.T) {
	n := Key{Seed: 5}.Noise(Token)
	u := Key{Seed: 5}.Noise(Accept)
	var g, g2, s float64
	const count = 1 << 20
	for i := range int32(count) {
		x := n.Gumbel(i)
		g, g2, s = g+x, g2+x*x, s+u.Uniform(i)
	}
	mean, variance := g/count, g2/count-g/count*g/count
	// Standard errors: 1.28/1024, 3.5/1024 (kurtosis 5.4), 0.29/1024.
	if math.Abs(mean-0.57722) > 0.004 || math.Abs(variance-math.Pi*math.Pi/6) > 0.011 {
		t.Errorf("Gumbel noise has mean %.4f and variance %.4f, want 0.5772 and 1.6449", mean, variance)
	}
	if math.Abs(s/count-0.5) > 0.001 {
		t.Errorf("uniform noise has mean %.5f", s/count)
	}
}

// The first numbers of SplitMix64 seeded with 1234567, as published for its
// reference implementation.
func TestSplitMix64(t *testing.T) {
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		if got := Noise(1234567).bits(int32(i)); got != want {
			t.Errorf("number %d is %d, want %d", i, got, want)
		}
	}
}

// The noise of a key never changes between versions: a seed is a promise.
func TestNoiseIsFixed(t *testing.T) {
	k := Key{Seed: 42, Choice: 1, Position: 7}
	if got := k.Noise(Token).bits(5); got != 0xf4eb0d950976b590 {
		t.Errorf("number 5 of %v is %#x", k, got)
	}
}

func TestNoiseEnds(t *testing.T) {
	for _, tt := range []struct {
		r             uint64
		uniform, want float64
	}{
		{0, 0x1p-53, 53 * math.Ln2},
		{math.MaxUint64, 1 - 0x1p-53, -math.Log(53 * math.Ln2)},
		{1 << 63, 0.5 + 0x1p-53, -math.Log(math.Ln2)},
	} {
		if u := unit(tt.r); u != tt.uniform {
			t.Errorf("unit(%#x) = %v, want %v", tt.r, u, tt.uniform)
		}
		if g := gumbel(tt.r); math.Abs(g-tt.want) > 1e-14 {
			t.Errorf("gumbel(%#x) = %v, want %v", tt.r, g, tt.want)
		}
	}
}

// The bound must hold for every number of leading zeros, at both ends.
func TestGumbelBound(t *testing.T) {
	for zeros := range 64 {
		low := uint64(1) << (63 - zeros)
		for _, r := range []uint64{low, low | (low - 1)} {
			if g := gumbel(r); g > gumbelBound[zeros] {
				t.Errorf("gumbel(%#x) = %v above its bound %v", r, g, gumbelBound[zeros])
			}
		}
	}
	if gumbel(0) > gumbelBound[64] {
		t.Errorf("gumbel(0) = %v above its bound %v", gumbel(0), gumbelBound[64])
	}
}

// Skipping tokens that cannot win changes nothing.
func TestRaceIsTheMaximum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spread := rapid.Float64Range(0, 20).Draw(t, "spread")
		seed := rapid.Uint64().Draw(t, "seed")
		n := Key{Seed: seed}.Noise(Token)
		logits := Key{Seed: seed}.Noise(Draft)
		x := make([]float32, rapid.IntRange(1, 2000).Draw(t, "vocabulary"))
		for i := range x {
			x[i] = float32(spread * logits.Uniform(int32(i)))
			if rapid.IntRange(0, 9).Draw(t, "masked") == 0 {
				x[i] = negInf
			}
		}
		best, want := math.Inf(-1), -1
		for i, v := range x {
			if s := float64(v) + n.Gumbel(int32(i)); s > best {
				best, want = s, i
			}
		}
		if got := n.race(nil, x); got != want {
			t.Fatalf("won by %d, want %d", got, want)
		}
	})
}

// What couples a draft to its target: removing tokens that did not win, or
// lifting the one that did, leaves the draw as it is.
func TestDrawIsCoupled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float32Range(-5, 5), 2, 50).Draw(t, "logits")
		n := Key{Seed: rapid.Uint64().Draw(t, "seed"), Position: rapid.IntRange(0, 1<<20).Draw(t, "position")}.Noise(Token)
		token := Dist{X: x}.Draw(n)
		x[token] += rapid.Float32Range(0, 5).Draw(t, "lift")
		var d Dist
		for i, v := range x {
			if int32(i) == token || rapid.Bool().Draw(t, "kept") {
				d.IDs, d.X = append(d.IDs, int32(i)), append(d.X, v)
			}
		}
		if got := d.Draw(n); got != token {
			t.Fatalf("drew %d, without some losers %d", token, got)
		}
	})
}
