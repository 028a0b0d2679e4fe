package kernel

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/foretoken/foretoken/internal/kernel/panel"
	"pgregory.net/rapid"
)

// Integer sums are exact at the ends of their ranges: with all scales 1 every
// output is a whole number below 2^24, which float sums hold exactly.
func TestInt8KernelsAtTheirLimits(t *testing.T) {
	const one = 0x3c00
	bytes := []byte{0x00, 0xff, 0x0f, 0xf0, 0x55, 0xaa, 0x80, 0x7f}
	eachTier(t, func(t *testing.T) {
		for id, kernels := range active.panels.int8 {
			k := &panel.Kinds[id]
			rapid.Check(t, func(rt *rapid.T) {
				r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
				choices := rapid.IntRange(1, 2).Draw(rt, "codes")
				first := r.IntN(len(bytes))
				data := make([]byte, k.GroupBytes())
				for i := range data {
					data[i] = bytes[(first+r.IntN(choices))%len(bytes)]
				}
				for b := range k.Group() {
					scales := data[k.BlockAt(b)+k.CodeBytes():][:k.ScaleBytes()]
					for i := range scales {
						scales[i] = 1
					}
				}
				halves := data[k.HalvesAt():][:k.HalfBytes()]
				for i := 0; i < len(halves); i += 2 {
					h := uint16(one)
					if k.Scale == panel.BHalf {
						h = 0x3f80
					}
					binary.LittleEndian.PutUint16(halves[i:], h)
				}
				T := len(kernels)
				x := make([]QBlock, T*k.Group())
				signs := rapid.IntRange(0, 2).Draw(rt, "signs")
				for i := range x {
					q := &x[i]
					q.Scale = 1
					for j := range q.Q {
						q.Q[j] = 127
						if signs == 1 || signs == 2 && r.IntN(2) == 0 {
							q.Q[j] = -127
						}
						q.Neg[0] -= int32(q.Q[j])
						q.Neg[1+j/16] -= int32(q.Q[j])
					}
					for j := range q.Sum {
						q.Sum[j] = float32(-q.Neg[j])
					}
				}
				want := run(rt, dotInt8Generic(k, T), k, data, x, T, 1, 9)
				for T := 1; T <= len(kernels); T++ {
					same(rt, fmt.Sprintf("%s: %d rows", k.Name, T), run(rt, kernels[T-1], k, data, x[:T*k.Group()], T, 1, 9), want[:T*panel.Rows])
				}
			})
		}
	})
}
