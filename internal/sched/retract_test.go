package sched

import (
	"slices"
	"testing"
	"time"
)

// A fixed cache says what it is told to.
type fixed struct {
	roomy
	available, exclusive int
}

func (f fixed) Available() int       { return f.available }
func (f fixed) Exclusive(uint64) int { return f.exclusive }

// When all but the oldest are retracted it has its rows, although the pages
// that the others shared were exclusive to none of them; and when it is in its
// prompt it has them before those that decode have theirs.
func TestOldestHasItsRows(t *testing.T) {
	for _, tt := range []struct {
		name           string
		elder          int // tokens of its prompt, 8 of which are computed
		cache          fixed
		retracted, row int
	}{
		{"decoding, nothing is exclusive", 8, fixed{available: 0, exclusive: 0}, 2, 1},
		{"in its prompt, nothing is exclusive", 100, fixed{available: 0, exclusive: 0}, 2, 8},
		{"in its prompt, memory for the others only", 100, fixed{available: 2, exclusive: 1}, 2, 8},
		{"in its prompt, memory for all", 100, fixed{available: 4, exclusive: 0}, 0, 4}, // up to a page,
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := New(Config{Pages: 100, PageSize: 4, MaxRows: 8, MaxPartial: 3, MinChunk: 6, Slowdown: 1})
			if err != nil {
				t.Fatal(err)
			}
			submit := func(id uint64, prompt int) {
				if err := s.Submit(time.Time{}, Request{ID: id, Prompt: prompt, MaxNew: 50}); err != nil {
					t.Fatal(err)
				}
			}
			submit(1, tt.elder)
			s.Plan(time.Time{}, roomy{}, truth)
			s.Update(1, 8, max(tt.elder, 9))
			for id := range uint64(2) {
				submit(2+id, 4)
				s.waiting = nil // they decode: two that share all they have
				q := s.seqs[2+id]
				q.running, q.computed, q.length = true, 4, 5
				s.running = append(s.running, q)
			}
			p := s.Plan(time.Time{}, tt.cache, truth)
			rows := 0
			for _, span := range p.Spans {
				if span.ID == 1 {
					rows = span.Rows
				}
			}
			if len(p.Retracted) != tt.retracted || rows != tt.row {
				t.Errorf("%d retracted, %d rows for the oldest; want %d and %d: %+v", len(p.Retracted), rows, tt.retracted, tt.row, *p)
			}
		})
	}
}

// A prompt that is not the oldest takes the pages that there are and no more.
func TestPromptWaitsForPages(t *testing.T) {
	for _, tt := range []struct{ available, rows int }{{0, 0}, {1, 0}, {2, 4}, {3, 8}, {9, 16}} {
		s, err := New(Config{Pages: 100, PageSize: 4, MaxRows: 20, MinChunk: 15})
		if err != nil {
			t.Fatal(err)
		}
		for id, prompt := range []int{8, 43} {
			if err := s.Submit(time.Time{}, Request{ID: uint64(id), Prompt: prompt, MaxNew: 5}); err != nil {
				t.Fatal(err)
			}
		}
		s.Plan(time.Time{}, roomy{}, truth)
		s.Update(0, 8, 9)
		s.Update(1, 12, 43)
		p := s.Plan(time.Time{}, fixed{available: tt.available}, truth)
		if tt.available == 0 {
			if len(p.Retracted) != 1 {
				t.Errorf("no page for the oldest, but %+v", *p)
			}
			continue
		}
		rows := 0
		for _, span := range p.Spans[1:] {
			rows += span.Rows
		}
		if rows != tt.rows {
			t.Errorf("%d pages: %d rows of the prompt, want %d", tt.available, rows, tt.rows)
		}
	}
}

// A plan that was not run is made again.
func TestPlanIsDropped(t *testing.T) {
	s, err := New(Config{Pages: 100, PageSize: 4, MaxRows: 20, MaxSeqs: 3})
	if err != nil {
		t.Fatal(err)
	}
	for id := range uint64(3) {
		if err := s.Submit(time.Time{}, Request{ID: id, Prompt: 8, MaxNew: 5}); err != nil {
			t.Fatal(err)
		}
	}
	first := append([]Span(nil), s.Plan(time.Time{}, roomy{}, truth).Spans...)
	again := s.Plan(time.Time{}, roomy{}, truth)
	if !slices.Equal(first, again.Spans) || len(again.Admitted) != 0 {
		t.Errorf("at first %+v, then %+v", first, *again)
	}
}
