package adapt

import "testing"

func TestDbg(t *testing.T) {
	w := newWorld(t, 8, curves["stepped"], model(always(0.6)))
	for i := range 400 {
		w.run(1)
		var l [8]int
		for r, q := range w.requests {
			l[r] = q.drafts[0].Len()
		}
		if i > 370 || i < 20 {
			p := &w.c.plans[0]
			q := &w.c.plans[1]
			t.Log(i, l, w.c.choices, p.arm, p.rate, p.depth, q.arm, q.rate, q.depth, w.c.arms[0].passes.seconds(8))
		}
	}
	for _, q := range w.requests {
		t.Log(q.learnt.arms)
	}
	t.Log(w.c.arms[0].classes[0].levels)
	t.Log(w.c.arms[0].classes[0].pool)
}
