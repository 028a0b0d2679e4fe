package engine

import (
	"context"
	"time"
)

// Stats are figures of an engine. Counters count from when it was opened.
type Stats struct {
	Waiting, Running int     // sequences
	CacheUsage       float64 // share of the cache that running sequences hold, 0 to 1
	CacheTokens      int     // that the cache can hold
	SharedTokens     int     // that the prefix cache keeps, held or not

	Steps         uint64
	PromptTokens  uint64 // computed, of prompts
	OutputTokens  uint64
	PrefixQueries uint64 // tokens of prompts that were looked up
	PrefixHits    uint64 // of them, those found
	Evicted       uint64 // pages
	Retractions   uint64 // sequences that gave their memory back and were computed again

	Stage string        // what the loop does: idle, step, job, …
	For   time.Duration // how long it has been doing that
}

// A RequestState is a line of the table of requests.
type RequestState struct {
	ID       string
	Key      string
	State    string // waiting, prefill or decode
	Priority int
	Prompt   int // tokens
	Cached   int // of them, those that were taken from the cache
	Computed int // tokens
	Output   int // tokens
	Age      time.Duration
}

// Stats returns the figures as they were after the last step.
func (e *Engine) Stats() Stats { return Stats{CacheTokens: e.cache.Capacity()} }

// Requests lists the requests that wait or run, between two steps.
func (e *Engine) Requests(ctx context.Context) ([]RequestState, error) {
	var list []RequestState
	err := e.exclusive(ctx, func() error { return nil })
	return list, err
}
