package sched

import "maps"

// outputWeight is what a generated token costs its key; one of a prompt that
// has to be computed costs 1.
const outputWeight = 2

// An account is what a key has been served: the virtual token counter of
// Sheng et al., "Fairness in Serving Large Language Models" (OSDI 2024), §4.
// The key with the least comes first, so that keys with requests waiting get
// equal shares however many each has sent.
type account struct {
	served   int64
	requests int // in the scheduler
}

// join counts a request of a key. A key that had none starts level with the
// least served of the others: what it did not use is not saved up. Accounts
// that say no more than that are dropped.
func (s *Scheduler) join(key string) *account {
	a := s.accounts[key]
	if a == nil {
		a = &account{}
		s.accounts[key] = a
	}
	if a.requests++; a.requests > 1 {
		return a
	}
	least := int64(-1)
	for _, b := range s.accounts {
		if b != a && b.requests > 0 && (least < 0 || b.served < least) {
			least = b.served
		}
	}
	a.served = max(a.served, least)
	maps.DeleteFunc(s.accounts, func(_ string, b *account) bool { return b.requests == 0 && b.served <= least })
	return a
}

// next is the index of the waiting sequence whose turn it is: in the highest
// class, of the key that was served least, the first. -1 if none waits.
func (p *step) next() int {
	best := -1
	for i, q := range p.waiting {
		if best < 0 {
			best = i
		} else if b := p.waiting[best]; q.class < b.class {
			break
		} else if q.account.served < b.account.served {
			best = i
		}
	}
	return best
}
