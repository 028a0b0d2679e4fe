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

// Neither does verifying a tree of drafts, and keeping what is accepted.
func TestTreesAllocateNothing(t *testing.T) {
	for _, family := range []string{"llama", "gemma3_text", "mixtral"} {
		s := open(t, testmodel.Safetensors(t, testmodel.Family(family)), 1)
		var table kvcache.Table
		if err := s.cache.Grow(&table, 512); err != nil {
			t.Fatal(err)
		}
		var step nn.Step
		parents, tokens, rows := []int32{-1, -1, 0, 1, 1, 4, 4}, make([]int32, 7), []int{0, 2, 5, 6}
		pos, path := 0, []int32{1, 4, 6}
		run := func() {
			step.Reset()
			step.Add(&table, pos, tokens[:1])
			step.Draft(parents, tokens)
			if err := s.Run(&step, nil); err != nil {
				t.Fatal(err)
			}
			s.Logits(rows)
			s.States(rows)
			if err := s.Keep(&table, pos+1, path); err != nil {
				t.Fatal(err)
			}
			pos += 1 + len(path)
		}
		const steps = 20
		for range 1 + steps {
			run()
		}
		pos = 0
		if n := testing.AllocsPerRun(steps, run); n != 0 {
			t.Errorf("%s: verifying a tree allocates %v times", family, n)
		}
	}
}
