package sched

import "fmt"

// Check reports the first thing that does not balance: every request is in
// exactly one list, no limit is exceeded, and the last plan is within rows and
// pages.
func (s *Scheduler) Check() error {
	c := &s.cfg
	if n := len(s.waiting) + len(s.running); n != len(s.seqs) {
		return fmt.Errorf("%d waiting and %d running sequences, but %d known", len(s.waiting), len(s.running), len(s.seqs))
	}
	requests, listed := make(map[*account]int), make(map[uint64]bool)
	for i, q := range append(append([]*sequence(nil), s.waiting...), s.running...) {
		running := i >= len(s.waiting)
		switch {
		case s.seqs[q.ID] != q || listed[q.ID]:
			return fmt.Errorf("sequence %d is listed but not known, or twice", q.ID)
		case q.running != running:
			return fmt.Errorf("sequence %d: running is %v in the wrong list", q.ID, q.running)
		case !running && q.computed != 0:
			return fmt.Errorf("sequence %d waits with %d tokens computed", q.ID, q.computed)
		case q.computed < 0 || q.computed > q.length || q.length < q.Prompt || q.length > q.Prompt+q.MaxNew:
			return fmt.Errorf("sequence %d: %d of %d tokens computed, prompt %d, at most %d new", q.ID, q.computed, q.length, q.Prompt, q.MaxNew)
		case s.accounts[q.Key] != q.account:
			return fmt.Errorf("sequence %d is not on the account of its key", q.ID)
		}
		listed[q.ID] = true
		requests[q.account]++
	}
	for key, a := range s.accounts {
		if a.requests != requests[a] || a.served < 0 {
			return fmt.Errorf("key %q: %d requests counted, %d there; %d tokens served", key, a.requests, requests[a], a.served)
		}
	}
	switch {
	case len(s.running) > c.MaxSeqs:
		return fmt.Errorf("%d sequences run, at most %d may", len(s.running), c.MaxSeqs)
	case s.ratio.now < 0 || s.ratio.now > 1:
		return fmt.Errorf("new-token ratio is %v", s.ratio.now)
	}
	return s.checkPlan()
}

func (s *Scheduler) checkPlan() error {
	rows, prompt := 0, 0
	spans := make(map[uint64]bool)
	for _, p := range s.plan.Spans {
		if p.Rows < 1 || p.Draft < 0 || p.Draft > s.cfg.MaxDraft || spans[p.ID] {
			return fmt.Errorf("span of sequence %d: %d rows, %d drafts", p.ID, p.Rows, p.Draft)
		}
		spans[p.ID] = true
		rows += p.Rows + p.Draft
		if p.Rows > 1 {
			prompt += p.Rows
		}
	}
	if rows > s.cfg.MaxRows || prompt > s.cfg.Prefill {
		return fmt.Errorf("a plan of %d rows, %d of prompts; at most %d and %d", rows, prompt, s.cfg.MaxRows, s.cfg.Prefill)
	}
	return nil
}
