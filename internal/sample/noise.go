package sample

import (
	"math"
	"math/bits"

	"github.com/foretoken/foretoken/internal/kernel"
)

// A Key names the place of a draw. Equal keys give equal noise, wherever and
// whenever they are used: that is what couples a draft to its target.
type Key struct {
	Seed     uint64
	Choice   uint32 // index among the n choices of a request
	Position int    // of the token that is drawn, in the sequence
}

// A Purpose separates the uses of one key, which must be independent of each
// other.
type Purpose uint32

// The purposes of noise.
const (
	Token    Purpose = iota // the target's own sample, and drafts coupled to it
	Draft                   // drafts that are verified by rejection
	Accept                  // acceptance of a draft
	Residual                // the token after a rejection
)

// Noise is the stream of random numbers of one key and purpose, indexed by a
// token id or a counter. It has no state.
//
// It is SplitMix64 (Steele, Lea, Flood 2014, with Stafford's variant 13 as
// finaliser) started at a hash of key and purpose: number i is mix(start +
// (i+1)·γ). SplitMix64 passes BigCrush and costs two multiplications a number;
// Philox4x32-10, the usual choice, costs twenty for two numbers, which over a
// vocabulary of 150k would be most of the time of a draw.
type Noise uint64

const gamma = 0x9e3779b97f4a7c15 // 2^64 / golden ratio, odd

// mix is a bijection in which every input bit moves every output bit.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Noise returns the stream of k for purpose p.
func (k Key) Noise(p Purpose) Noise {
	h := mix(k.Seed + gamma)
	h = mix(h ^ (uint64(k.Choice)<<32 | uint64(p)) + gamma)
	return Noise(mix(h ^ uint64(k.Position) + gamma))
}

func (n Noise) bits(i int32) uint64 {
	return mix(uint64(n) + (uint64(uint32(i))+1)*gamma)
}

// Uniform returns number i of the stream, in (0, 1): an odd multiple of 2^-53.
func (n Noise) Uniform(i int32) float64 { return unit(n.bits(i)) }

// unit takes 52 bits, so that adding a half is exact and neither end is reached.
func unit(r uint64) float64 { return (float64(r>>12) + 0.5) * 0x1p-52 }

// Gumbel returns standard Gumbel noise for a token, between -3.7 and 36.8. A
// token with the greatest logit + noise is a sample of softmax(logits).
func (n Noise) Gumbel(token int32) float64 { return gumbel(n.bits(token)) }

// gumbel is -log(-log(1-v)): the upper tail, which decides draws, is where v is
// small and exact.
func gumbel(r uint64) float64 { return -math.Log(-math.Log1p(-unit(r))) }

// gumbelBound is an upper bound of gumbel(r) by the leading zeros of r: since
// -log(1-v) > v, the noise is below -log(v). It spares the logarithms of all
// tokens that cannot win, which are nearly all.
var gumbelBound = func() (bound [65]float64) {
	for zeros := range bound {
		bound[zeros] = float64(min(zeros+1, 53))*math.Ln2 + 1e-9
	}
	return bound
}()

// race returns the index of the greatest x[i] + noise(token of i), the lowest
// index on ties, or -1 if every x is -Inf. ids are the tokens of x; nil means
// 0, 1, 2, ...
func (n Noise) race(ids []int32, x []float32) int {
	if ids == nil {
		return n.raceAll(x)
	}
	best, winner := math.Inf(-1), -1
	for i, v := range x {
		r := n.bits(ids[i])
		if float64(v)+gumbelBound[bits.LeadingZeros64(r)] <= best {
			continue
		}
		if s := float64(v) + gumbel(r); s > best {
			best, winner = s, i
		}
	}
	return winner
}

// raceAll is race for a whole vocabulary. A kernel picks the few that may win,
// from runs of tokens that grow as the best so far becomes hard to beat.
func (n Noise) raceAll(x []float32) int {
	best, winner := math.Inf(-1), -1
	for from, run := 0, 64; from < len(x); from, run = from+run, min(2*run, 1024) {
		part := x[from:min(from+run, len(x))]
		set := kernel.Contenders(part, uint64(n)+uint64(from)*gamma, best)
		for w, word := range set[:(len(part)+63)/64] {
			for ; word != 0; word &= word - 1 {
				i := from + 64*w + bits.TrailingZeros64(word)
				if s := float64(x[i]) + gumbel(n.bits(int32(i))); s > best {
					best, winner = s, i
				}
			}
		}
	}
	return winner
}
