package exec

import (
	"errors"
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// A step that was stopped leaves nothing that a later one reads.
func TestStoppedStep(t *testing.T) {
	s := open(t, testmodel.GGUF(t, testmodel.Family("gemma3_text")), 2)
	tokens := []int32{5, 80, 17, 33, 90, 4}
	var fresh, table kvcache.Table
	want := slices.Clone(s.logits(t, &fresh, 0, tokens, len(tokens)))
	s.cache.Release(&fresh)

	s.logits(t, &table, 0, tokens[:2], 2)
	if err := s.cache.Grow(&table, 6); err != nil {
		t.Fatal(err)
	}
	var step nn.Step
	step.Add(&table, 2, []int32{9, 9, 9, 9})
	asked := 0
	err := s.Run(&step, func() bool { asked++; return asked == 3 })
	if !errors.Is(err, ErrStopped) || asked != 3 {
		t.Fatalf("asked %d times: %v, want ErrStopped at the third layer", asked, err)
	}
	got := s.logits(t, &table, 2, tokens[2:], 4)
	if !slices.Equal(got, want[2*s.vocab:]) {
		t.Error("logits after a stopped step differ")
	}
}
