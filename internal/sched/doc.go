// Package sched decides which tokens of which sequences the next step
// computes. It is a pure state machine: the time, the state of the cache and
// the cost curve are arguments, a Plan is the result, and equal histories give
// equal plans.
//
// # One rule
//
// A sequence has tokens, some of which are computed, and catches up. A prompt
// of 40 tokens in steps of 16 rows has 16, 16 and 8 of them; then a token is
// generated and one is left to compute: it decodes. A cached prefix is tokens
// that are computed already, a chunk is fewer than are left, and a sequence
// that was retracted has none computed any more. Drafts are rows behind the
// last token; what of them was accepted, Update says.
//
//	Submit ─► waiting ──admit──► running ──Finish─►
//	             ▲                  │
//	             └─────retract──────┘
//
// Waiting sequences hold no memory, running ones do. The loop of an engine is
//
//	plan := s.Plan(now, cache, cost)
//	… release plan.Retracted, attach plan.Admitted, grow and run plan.Spans …
//	for each span: s.Update(id, computed, length)
//	for each that has ended: s.Finish(id)
//
// # A plan
//
// A plan hands out three things that are scarce: rows (the workspace of a
// step), pages (of the cache) and time (until those who decode see their next
// token). It does so in this order:
//
//  1. Memory for one more token of every sequence that decodes. If there is
//     not enough, sequences are retracted (retract.go).
//  2. A row for each of them. MaxSeqs ≤ MaxRows, so there always is one.
//  3. Rows for prompts that have begun, the oldest first: as many as there are
//     rows and pages, and as the cost curve says fit into the target for
//     inter-token latency; but at least MinChunk (plan.go, cost.go).
//  4. Requests from the queue, while rows and memory are left (admit.go), in the
//     order of fair.go and policy.go.
//  5. Room for drafts in what remains.
//
// # Memory
//
// How much a sequence will generate is not known. Keeping all it may would
// leave most of the pool empty, keeping nothing would retract all the time. Of
// what running sequences may generate, admission keeps the new-token ratio
// (ratio.go), which falls while memory suffices and rises when it did not. When
// it has not sufficed, those that lose least are retracted, and enough of them
// that the others can go on for a while.
//
// # Order
//
// Keys come in turn, the one that was served least first, by the virtual token
// counter (fair.go). The policy orders the requests of a key, and Priority also
// orders the keys' first requests. Nobody overtakes a request that is next and
// does not fit.
//
// # Nobody starves
//
// The running sequence that arrived first is never retracted and has rows in
// every step (in every other one, if Separate): it ends. Then the next one is
// the first. A request that has waited for Patience precedes all those of its
// key that the policy prefers, and under Priority all priorities; the turns of
// the keys give each its share. So everything that Submit accepts comes to its
// end, in memory for as little as the longest request alone.
//
// # Where it departs from others
//
// The rules are those of SGLang's scheduler, with these differences. What
// cannot be honoured is refused, not clamped. The oldest sequence is never
// retracted. Memory for the rest of a prompt that has begun is kept. All
// policies that look up prefixes give way to first come, first served in long
// queues. Chunks end at pages only where that costs little. Priorities within
// 10 of each other do not preempt, as there, but impatient sequences are not
// preempted at all.
package sched
