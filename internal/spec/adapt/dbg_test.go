package adapt

import "testing"

func TestDbg(t *testing.T) {
	w := newWorld(t, 1, curves["linear"],
		model(func(_, step int) float64 { return []float64{0, 0.9}[min(step/500, 1)] }))
	for i := range 900 {
		w.run(1)
		if i == 499 {
			t.Log("change")
		}
		n := w.requests[0].drafts[0].Len()
		if n > 0 {
			t.Log(i, n, w.c.plans[0].rows, w.c.plans[0].least, w.c.probing, w.c.Steps.seconds(1), w.c.Steps.seconds(2), w.c.arms[0].passes.seconds(1), w.requests[0].learnt.arms[0], w.c.arms[0].classes[0].levels[0], w.c.arms[0].classes[0].first)
		}
	}
}
