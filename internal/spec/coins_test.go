package spec

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/foretoken/foretoken/internal/sample"
)

// keyedRound draws a chain with a round's noise and verifies it with its coins.
type keyedRound func(m toy, seed uint64, text []int32, depth int) []int32

// draft draws a chain by Gumbel-max with the noise of each depth.
func (m toy) draft(text []int32, n int, noise func(depth int) sample.Noise) *Draft {
	d := new(Draft)
	for i := range n {
		q := m.q(history(text, d, i))
		d.Q = append(d.Q, q)
		d.Tokens = append(d.Tokens, distOf(q).Draw(noise(i+1)))
	}
	return d
}

// distOf is the distribution of a row as a sampler has it.
func distOf(r Row) sample.Dist {
	d := sample.Dist{IDs: r.IDs, X: make([]float32, len(r.W)), Max: float32(math.Inf(-1))}
	for i, w := range r.W {
		d.X[i] = float32(math.Log(w))
		d.Max = max(d.Max, d.X[i])
	}
	return d
}

func inService(rule func(v *Verifier, d *Draft, p Target, draws Draws) (Verdict, error)) keyedRound {
	return func(m toy, seed uint64, text []int32, depth int) []int32 {
		key := sample.Key{Seed: seed, Position: len(text)}
		d := m.draft(text, depth, func(depth int) sample.Noise { return DraftNoise(key, depth) })
		v, err := rule(new(Verifier), d, m.rows(text, d), NewCoins(key))
		return verify(d, v, err)
	}
}

// treesInService draws two siblings under every node.
func treesInService(m toy, seed uint64, text []int32, depth int) []int32 {
	key := sample.Key{Seed: seed, Position: len(text)}
	d, rest := new(Draft), new(Row)
	d.Reset()
	level := []int{0}
	for depth := range depth {
		var below []int
		for _, row := range level {
			q := m.q(history(text, d, row))
			d.Q = append(d.Q, make([]Row, row+1-len(d.Q))...)
			d.Q[row] = q
			for _, x := range Siblings(nil, q, 2, DraftNoise(key, depth+1), rest) {
				below = append(below, d.Add(x, row-1)+1)
			}
		}
		level = below
	}
	v, err := new(Verifier).Rejection(d, m.rows(text, d), NewCoins(key))
	return verify(d, v, err)
}

// byPosition keys noise and coins by each token's own position, as coupled
// sampling may: the next round sees again what this one looked at.
type byPosition struct {
	seed uint64
	base int
}

func (c byPosition) noise(p sample.Purpose, i int) sample.Noise {
	return sample.Key{Seed: c.seed, Position: c.base + i}.Noise(p)
}

func (c byPosition) Accept(node int, num, den float64) bool {
	return c.noise(sample.Accept, node).Uniform(0)*den < num
}

func (c byPosition) Pick(row int, p Row) int32 {
	return p.pick(c.noise(sample.Residual, row).Uniform(0))
}

func blockByPosition(m toy, seed uint64, text []int32, depth int) []int32 {
	c := byPosition{seed, len(text)}
	d := m.draft(text, depth, func(depth int) sample.Noise { return c.noise(sample.Draft, depth-1) })
	v, err := new(Verifier).Block(d, m.rows(text, d), c)
	return verify(d, v, err)
}

// chiSquare is the statistic of the texts of many seeds against the target's
// law, and its degrees of freedom.
func chiSquare(t *testing.T, m toy, tokens, depth int, round keyedRound) (statistic, freedom float64) {
	const seeds = 50_000
	counts := map[string]float64{}
	for seed := range uint64(seeds) {
		var text []int32
		for len(text) < tokens {
			text = append(text, round(m, seed, text, min(depth, tokens-len(text)-1))...)
		}
		counts[fmt.Sprint(text)]++
	}
	for text, p := range m.target(t, tokens) {
		f, _ := p.Float64()
		diff := counts[text] - f*seeds
		statistic += diff * diff / (f * seeds)
		delete(counts, text)
		freedom++
	}
	if len(counts) > 0 {
		t.Errorf("texts %v are impossible", counts)
	}
	return statistic, freedom - 1
}

// Rounds in service, one after another, with real noise and coins, keep the
// law of the text. The seeds are fixed: this test cannot fail by chance.
func TestCoinsKeepTheLawOverRounds(t *testing.T) {
	m := toy{
		p: func(h []int32) Row { return [...]Row{weights(3, 1, 2), weights(1, 4, 1), weights(2, 3, 0)}[len(h)%3] },
		q: func(h []int32) Row { return [...]Row{weights(1, 3, 1), weights(3, 2, 2), weights(4, 1, 2)}[len(h)%3] },
	}
	for _, c := range []struct {
		name  string
		round keyedRound
		lossy bool
	}{
		{"rejection", inService((*Verifier).Rejection), false},
		{"rejection of trees", treesInService, false},
		{"block", inService((*Verifier).Block), false},
		{"block, keyed by the position of each token", blockByPosition, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			statistic, freedom := chiSquare(t, m, 4, 3, c.round)
			// The χ² law has mean f and variance 2f; six deviations are 1e-7 or so.
			bound := freedom + 6*math.Sqrt(2*freedom)
			if lossy := statistic > bound; lossy != c.lossy {
				t.Errorf("χ² is %.1f at %v degrees of freedom; lossy: %v, expected %v", statistic, freedom, lossy, c.lossy)
			}
		})
	}
}

// Siblings are different tokens, as many as there are, in the order of draws
// without replacement.
func TestSiblings(t *testing.T) {
	q := Row{IDs: []int32{3, 5, 6, 9}, W: []float64{5, 3, 0, 2}, Total: 10}
	counts := map[string]float64{}
	const seeds = 20_000
	rest := new(Row)
	for seed := range uint64(seeds) {
		noise := DraftNoise(sample.Key{Seed: seed}, 1)
		all := Siblings([]int32{7}, q, 4, noise, rest)
		if two := Siblings([]int32{7}, q, 2, noise, rest); !slices.Equal(two, all[:3]) {
			t.Fatalf("two siblings are %v, all are %v", two, all)
		}
		counts[fmt.Sprint(all)]++
	}
	if len(counts) != 6 {
		t.Errorf("drawn: %v, expected the six orders of three tokens", counts)
	}
	statistic := 0.0
	for order, p := range map[string]float64{
		"[7 3 5 9]": .5 * 3 / 5, "[7 3 9 5]": .5 * 2 / 5,
		"[7 5 3 9]": .3 * 5 / 7, "[7 5 9 3]": .3 * 2 / 7,
		"[7 9 3 5]": .2 * 5 / 8, "[7 9 5 3]": .2 * 3 / 8,
	} {
		diff := counts[order] - p*seeds
		statistic += diff * diff / (p * seeds)
	}
	if statistic > 25 { // 1e-4 at five degrees of freedom
		t.Errorf("χ² is %.1f: %v", statistic, counts)
	}
}

func TestCoinsAreSureOfWhatIsSure(t *testing.T) {
	coins := NewCoins(sampleKey)
	for node := range 100 {
		for _, c := range []struct {
			num, den float64
			want     bool
		}{{0, 0, false}, {0, 1, false}, {1, 0, true}, {1, 1, true}, {2, 1, true}, {1e-300, 1e-300, true}} {
			if got := coins.Accept(node, c.num, c.den); got != c.want {
				t.Errorf("node %d accepted with probability %v/%v: %v", node, c.num, c.den, got)
			}
		}
	}
}

// Noise of different depths and purposes of a round is different.
func TestRoundNoiseIsApart(t *testing.T) {
	key := sample.Key{Seed: 1, Position: 7}
	seen := map[sample.Noise]string{}
	for _, p := range []sample.Purpose{sample.Token, sample.Draft, sample.Accept, sample.Residual} {
		seen[key.Noise(p)] = fmt.Sprint("purpose ", p)
	}
	for depth := 1; depth < 300; depth++ {
		n := DraftNoise(key, depth)
		if other, ok := seen[n]; ok {
			t.Errorf("depth %d has the noise of %s", depth, other)
		}
		seen[n] = fmt.Sprint("depth ", depth)
	}
}

// Coupled: the text is a function of the seed alone, whatever is drafted, at
// any temperature, 0 included. Drafts with the target's own noise are accepted
// more often than others.
func TestCoupledTextDoesNotDependOnDrafts(t *testing.T) {
	coupled, apart := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		m := randomToy(rapid.Uint64().Draw(t, "toy"), 4, 9)
		params := sample.Default()
		params.Seed = rapid.Uint64().Draw(t, "seed")
		params.Temperature = rapid.SampledFrom([]float32{0, 0.5, 1, 2}).Draw(t, "temperature")
		params.TopK = rapid.IntRange(0, 3).Draw(t, "top_k")
		params.RepetitionPenalty = rapid.SampledFrom([]float32{1, 1.5}).Draw(t, "penalty")
		var s sample.Sampler
		// next is the target's own token after a text.
		next := func(text []int32) (int32, error) {
			h := sample.NewHistory(nil)
			h.Add(text...)
			r, err := s.Sample(logitsOf(m.p(text), 4), &sample.Row{Params: &params, Position: len(text), History: h})
			return r.Token, err
		}
		var want []int32
		for len(want) < 12 {
			x, err := next(want)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, x)
		}
		own := rapid.Bool().Draw(t, "drafts have the target's noise")
		var got []int32
		for len(got) < len(want) {
			key := sample.Key{Seed: params.Seed, Position: len(got)}
			depth := rapid.IntRange(0, 3).Draw(t, "depth")
			d := m.draft(got, depth, func(depth int) sample.Noise {
				if own {
					return sample.Key{Seed: params.Seed, Position: len(got) + depth - 1}.Noise(sample.Token)
				}
				return DraftNoise(key, depth)
			})
			if rapid.Bool().Draw(t, "tree") {
				d = m.bestTree(got, min(depth, 2))
			}
			v, err := new(Verifier).Match(&d.Tree, func(row int) (int32, error) { return next(history(got, d, row)) })
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, accepted(d, v)...)
		}
		if got = got[:len(want)]; !slices.Equal(got, want) {
			t.Fatalf("text is %v, without drafts %v", got, want)
		}
	})
	// How often one draft is accepted, over seeds.
	p, q := weights(5, 3, 2), weights(4, 3, 3)
	for seed := range uint64(2000) {
		noise := sample.Key{Seed: seed}
		token := distOf(p).Draw(noise.Noise(sample.Token))
		if distOf(q).Draw(noise.Noise(sample.Token)) == token {
			coupled++
		}
		if distOf(q).Draw(DraftNoise(noise, 1)) == token {
			apart++
		}
	}
	if coupled < 2*apart {
		t.Errorf("of 2000 drafts %d are accepted with the target's noise, %d with other noise", coupled, apart)
	}
}

// logitsOf are logits of a whole vocabulary.
func logitsOf(r Row, vocab int) []float32 {
	x := make([]float32, vocab)
	for i := range x {
		x[i] = float32(math.Log(r.Weight(int32(i))))
	}
	return x
}

var sampleKey = sample.Key{Seed: 42}
