package exec

import (
	"testing"

	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// Once its workspace has grown, a step allocates nothing: neither a chunk of a
// prompt nor a decoded token.
func TestStepAllocatesNothing(t *testing.T) {
	for _, family := range []string{"llama", "gemma3_text", "qwen3_moe", "deepseek_v3", "deepseek_v32", "deepseek_v4", "nsa"} {
		for _, rows := range []int{1, 16} {
			s := open(t, testmodel.Safetensors(t, testmodel.Family(family)), 4)
			var table kvcache.Table
			if err := s.cache.Grow(&table, 512); err != nil {
				t.Fatal(err)
			}
			var step nn.Step
			pos, tokens, last := 0, make([]int32, rows), []int{rows - 1}
			run := func() {
				step.Reset()
				step.Add(&table, pos, tokens)
				if err := s.Run(&step, nil); err != nil {
					t.Fatal(err)
				}
				s.Logits(last)
				pos += rows
			}
			const steps = 20
			for range 1 + steps { // scores are as long as their context
				run()
			}
			pos = 0
			if n := testing.AllocsPerRun(steps, run); n != 0 {
				t.Errorf("%s: a step of %d rows allocates %v times", family, rows, n)
			}
		}
	}
}
