package sched

import (
	"testing"
	"time"
)

// Check finds what does not balance.
func TestCheck(t *testing.T) {
	for name, damage := range map[string]func(s *Scheduler){
		"a sequence that is nowhere":   func(s *Scheduler) { s.waiting = s.waiting[1:] },
		"one that is there twice":      func(s *Scheduler) { s.waiting[0] = s.waiting[1] },
		"one that is in both lists":    func(s *Scheduler) { s.waiting[0] = s.running[0] },
		"one in the wrong list":        func(s *Scheduler) { s.running[0].running = false },
		"memory in the queue":          func(s *Scheduler) { s.waiting[0].computed = 1 },
		"more computed than there is":  func(s *Scheduler) { s.running[0].computed = 100 },
		"more tokens than asked for":   func(s *Scheduler) { s.running[0].length = 100 },
		"an account of another":        func(s *Scheduler) { s.waiting[0].account = &account{} },
		"a wrong number of requests":   func(s *Scheduler) { s.accounts[""].requests++ },
		"too many that run":            func(s *Scheduler) { s.cfg.MaxSeqs = 1 },
		"a ratio above 1":              func(s *Scheduler) { s.ratio.now = 1.1 },
		"a plan with too many rows":    func(s *Scheduler) { s.plan.Spans[0].Draft = 1 },
		"a plan beyond what is left":   func(s *Scheduler) { s.plan.Spans[0].Rows = 0 },
		"two spans of a sequence":      func(s *Scheduler) { s.plan.Spans[1].ID = s.plan.Spans[0].ID },
		"a plan with too many prompts": func(s *Scheduler) { s.cfg.Prefill = 7 },
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New(Config{Pages: 100, PageSize: 1, MaxRows: 8, MaxSeqs: 2})
			if err != nil {
				t.Fatal(err)
			}
			for id := range uint64(4) {
				if err := s.Submit(time.Time{}, Request{ID: id, Prompt: 4, MaxNew: 4}); err != nil {
					t.Fatal(err)
				}
			}
			s.Plan(time.Time{}, roomy{}, truth)
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			damage(s)
			if err := s.Check(); err == nil {
				t.Error("not found")
			}
		})
	}
}
