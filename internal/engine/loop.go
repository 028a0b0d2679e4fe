package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/foretoken/foretoken/internal/exec"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// defaultStepRows bounds the rows of one step, and so its workspace: decoding
// sequences have one row each, prompts fill the rest in chunks.
const defaultStepRows = 128

// loop is the state of the step loop. Its goroutine alone touches all but the
// channels.
type loop struct {
	submitted chan []*sequence
	jobs      chan job
	quit      chan struct{}
	done      chan struct{}

	waiting []*sequence // first come, first served
	running []*sequence // oldest first

	// What the step at hand is made of; the memory is used again.
	step    nn.Step
	planned []*sequence // of each span of step
	ready   []*sequence // those whose next token can be sampled
	rows    []int       // the last row of each that is ready
}

// A job runs between steps with the runner to itself.
type job struct {
	run  func() error
	done chan<- error
}

func (e *Engine) start() {
	e.loop = loop{
		submitted: make(chan []*sequence), jobs: make(chan job),
		quit: make(chan struct{}), done: make(chan struct{}),
	}
	go e.run()
}

// stop ends the loop and waits for it. Further calls find it ended.
func (e *Engine) stop() {
	if !e.loop.stopping() {
		close(e.loop.quit)
	}
	<-e.loop.done
}

// stopping reports whether stop was called.
func (l *loop) stopping() bool {
	select {
	case <-l.quit:
		return true
	default:
		return false
	}
}

func (e *Engine) submit(s []*sequence) error {
	select {
	case e.loop.submitted <- s:
		return nil
	case <-s[0].out.ctx.Done():
		return s[0].out.ctx.Err()
	case <-e.loop.done:
		return ErrClosed
	}
}

// exclusive runs f on the loop's goroutine, between steps.
func (e *Engine) exclusive(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	select {
	case e.loop.jobs <- job{f, done}:
		return <-done
	case <-ctx.Done():
		return ctx.Err()
	case <-e.loop.done:
		return ErrClosed
	}
}

func (e *Engine) run() {
	l := &e.loop
	defer close(l.done)
	for {
		idle := len(l.waiting)+len(l.running) == 0
		if e.receive(idle) {
			for _, s := range append(l.waiting, l.running...) {
				e.finish(s, ErrClosed)
			}
			return
		}
		e.dropCancelled()
		e.advance()
	}
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// receive takes in what has come, waiting for something if wait is set, and
// reports whether the engine is being closed.
func (e *Engine) receive(wait bool) (quit bool) {
	l := &e.loop
	var now chan struct{} // ready unless there is something to wait for
	if !wait {
		now = closed
	}
	for {
		select {
		case s := <-l.submitted:
			l.waiting = append(l.waiting, s...)
			now = closed
		case j := <-l.jobs:
			j.done <- e.checkpoint.Guard(j.run)
			now = closed
		case <-l.quit:
			return true
		case <-now:
			return l.stopping() // select takes either when both are ready
		}
	}
}

func (e *Engine) dropCancelled() {
	l := &e.loop
	for _, list := range []*[]*sequence{&l.waiting, &l.running} {
		*list = slices.DeleteFunc(*list, func(s *sequence) bool {
			err := s.out.ctx.Err()
			if err != nil {
				e.finish(s, err)
			}
			return err != nil
		})
	}
}

// finish ends s and gives its memory back.
func (e *Engine) finish(s *sequence, err error) {
	e.cache.Release(&s.table)
	if *s.live--; *s.live == 0 || err != nil {
		s.out.end(err)
	}
}

// advance runs one step: every running sequence catches up with its tokens.
func (e *Engine) advance() {
	l := &e.loop
	e.plan()
	if len(l.planned) == 0 {
		return
	}
	err := e.checkpoint.Guard(func() error { return e.runner.Run(&l.step, l.abandoned) })
	if errors.Is(err, exec.ErrStopped) {
		return // nobody waits for this step; those who did are dropped next
	}
	if err != nil {
		for _, s := range l.planned {
			e.end(s, fmt.Errorf("step of %d rows: %w", l.step.Rows(), err))
		}
		return
	}
	l.ready, l.rows = l.ready[:0], l.rows[:0]
	for i, s := range l.planned {
		span := l.step.Spans[i]
		s.computed += span.To - span.From
		if s.computed == len(s.tokens) {
			l.ready, l.rows = append(l.ready, s), append(l.rows, span.To-1)
		}
	}
	if len(l.ready) == 0 {
		return
	}
	var logits []float32
	if err := e.checkpoint.Guard(func() error { logits = e.runner.Logits(l.rows); return nil }); err != nil {
		for _, s := range l.ready {
			e.end(s, err)
		}
		return
	}
	vocab := e.Config().Vocab
	for i, s := range l.ready {
		if ended, err := s.next(e, logits[i*vocab:(i+1)*vocab]); ended || err != nil {
			e.end(s, err)
		}
	}
}

// abandoned reports whether nobody waits for the step at hand any more.
func (l *loop) abandoned() bool {
	return l.stopping() || !slices.ContainsFunc(l.planned, func(s *sequence) bool { return s.out.ctx.Err() == nil })
}

// end finishes a running sequence.
func (e *Engine) end(s *sequence, err error) {
	l := &e.loop
	l.running = slices.DeleteFunc(l.running, func(r *sequence) bool { return r == s })
	e.finish(s, err)
}

// plan fills the step. Running sequences come first, oldest first; waiting
// ones join while rows and memory are left.
func (e *Engine) plan() {
	l := &e.loop
	l.step.Reset()
	l.planned = l.planned[:0]
	rows := e.stepRows
	add := func(s *sequence) {
		n := min(rows, len(s.tokens)-s.computed)
		l.step.Add(&s.table, s.computed, s.tokens[s.computed:s.computed+n])
		l.planned = append(l.planned, s)
		rows -= n
	}
	for i := 0; i < len(l.running) && rows > 0; i++ {
		s := l.running[i]
		// The pool holds the longest sequence there can be, so the oldest
		// always gets its memory.
		for i < len(l.running) && e.cache.Grow(&s.table, len(s.tokens)) != nil {
			e.retract()
		}
		if i < len(l.running) {
			add(s)
		}
	}
	for len(l.waiting) > 0 && rows > 0 {
		s := l.waiting[0]
		if e.cache.Grow(&s.table, len(s.tokens)) != nil {
			break
		}
		l.waiting = l.waiting[1:]
		l.running = append(l.running, s)
		add(s)
	}
}

// retract takes the memory of the youngest running sequence and sends it back
// to the head of the queue, to be computed anew.
func (e *Engine) retract() {
	l := &e.loop
	last := len(l.running) - 1
	s := l.running[last]
	e.cache.Release(&s.table)
	s.computed = 0
	l.running = l.running[:last]
	l.waiting = append([]*sequence{s}, l.waiting...)
}
