package exec

import (
	"math"
	"testing"

	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/tensor"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// However few experts are packed at a time, one or nearly all, and whatever the
// rows of a step, a row has the bits that it has when all are.
func TestExpertMemory(t *testing.T) {
	tokens := randomTokens(40)[0]
	for _, family := range []string{"mixtral", "qwen3_moe"} {
		for _, tc := range []struct {
			stored tensor.DType
			mode   mode
		}{{tensor.F32, exactMode}, {tensor.Q8_0, mode{cache: tensor.F16}}, {tensor.BF16, mode{cache: tensor.F16}}} {
			spec := testmodel.Family(family)
			spec.DType, spec.Experts.Inner = tc.stored, 64
			path := testmodel.GGUF(t, spec)
			all := openMode(t, path, 2, tc.mode)
			experts := int64(spec.Layers * spec.Experts.Count)
			size := all.model.Idle(0) / experts
			var table kvcache.Table
			want := all.logits(t, &table, 0, tokens, len(tokens))
			for _, packed := range []int64{1, 2, 5, experts - 1, experts} {
				s := openWith(t, path, 2, tc.mode, model.Options{ExpertMemory: packed * size})
				if got := s.model.Idle(0); got != packed*size {
					t.Errorf("%s: memory for %d bytes of experts, want %d", family, got, packed*size)
				}
				for _, chunk := range []int{1, 7, len(tokens)} {
					table = kvcache.Table{}
					for i, v := range s.logits(t, &table, 0, tokens, chunk) {
						if math.Float32bits(v) != math.Float32bits(want[i]) {
							t.Fatalf("%s, %v, %d of %d experts, chunks of %d: value %d is %v, want %v", family, tc.stored, packed, experts, chunk, i, v, want[i])
						}
					}
					s.cache.Release(&table)
				}
			}
		}
	}
}
