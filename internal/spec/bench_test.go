package spec

import (
	"math/rand/v2"
	"testing"

	"github.com/foretoken/foretoken/internal/sample"
)

// A vocabulary of 150k, seven drafts: the worst that a round of one sequence
// costs beside the target's step.
func BenchmarkVerify(b *testing.B) {
	const vocab, n = 150_000, 7
	r := rand.New(rand.NewPCG(1, 2))
	var p, q []Row
	for range n + 1 {
		x := make([]float32, vocab)
		for i := range x {
			x[i] = 3 * float32(r.NormFloat64())
		}
		d := sample.Dist{X: x, Max: 20}
		p = append(p, Row{})
		p[len(p)-1].Set(d)
		for i := range x {
			x[i] += 0.3 * float32(r.NormFloat64())
		}
		q = append(q, Row{})
		q[len(q)-1].Set(d)
	}
	target := func(row int) (Row, error) { return p[row], nil }
	for name, rule := range map[string]func(*Verifier, *Draft, Target, Draws) (Verdict, error){
		"rejection": (*Verifier).Rejection,
		"block":     (*Verifier).Block,
	} {
		b.Run(name, func(b *testing.B) {
			v := new(Verifier)
			d := &Draft{Q: q[:n], Tree: Tree{Tokens: make([]int32, n)}}
			var draws Draws = &Coins{}
			round, tokens := 0, 0
			b.ReportAllocs()
			for b.Loop() {
				key := sample.Key{Position: round}
				for i := range d.Tokens {
					d.Tokens[i] = q[i].pick(DraftNoise(key, i+1).Uniform(0))
				}
				*draws.(*Coins) = NewCoins(key)
				verdict, err := rule(v, d, target, draws)
				if err != nil {
					b.Fatal(err)
				}
				round, tokens = round+1, tokens+len(verdict.Path)+1
			}
			b.ReportMetric(float64(tokens)/float64(round), "tokens/round")
		})
	}
}

// text of words of a Zipf law, as language is.
func zipfText(n int) []int32 {
	r := rand.New(rand.NewPCG(3, 4))
	z := rand.NewZipf(r, 1.1, 3, 30_000)
	text := make([]int32, n)
	for i := range text {
		text[i] = int32(z.Uint64())
	}
	return text
}

func BenchmarkAutomaton(b *testing.B) {
	const n = 32 << 10
	equal := make([]int32, n)
	periodic := make([]int32, n)
	for i := range periodic {
		periodic[i] = int32(bits(i))
	}
	for name, text := range map[string][]int32{"zipf": zipfText(n), "equal tokens": equal, "thue-morse": periodic} {
		b.Run(name, func(b *testing.B) {
			var a *Automaton
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%n == 0 {
					a = NewAutomaton(32)
				}
				a.Append(text[i%n])
			}
		})
	}
}

// bits is the parity of the ones of i: no three repetitions in a row.
func bits(i int) (parity int) {
	for ; i > 0; i &= i - 1 {
		parity ^= 1
	}
	return parity
}

func BenchmarkPropose(b *testing.B) {
	text := zipfText(32 << 10)
	s := NewSuffixes(32, 1<<20)
	s.Append(text...)
	d := new(Draft)
	b.Run("suffixes", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Propose(d, text, 8, 1, s)
		}
	})
	b.Run("lookup", func(b *testing.B) {
		var draft []int32
		b.ReportAllocs()
		for b.Loop() {
			draft, _ = Lookup(draft[:0], text, 2, 8, 8)
		}
	})
}
