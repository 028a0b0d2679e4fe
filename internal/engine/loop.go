package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/sched"
)

// loop is the state of the step loop. Its goroutine alone touches all but the
// inbox and the channels.
type loop struct {
	inbox inbox
	jobs  chan job
	quit  chan struct{}
	done  chan struct{}

	sched *sched.Scheduler
	cost  sched.Estimator
	seqs  map[uint64]*sequence // in the scheduler
	last  uint64               // number that a sequence got
	ended []ending             // requests whose clients are to be told

	// What the step at hand is made of; the memory is used again.
	step     nn.Step
	planned  []planned  // of each span of step
	ready    []*planned // those whose next token can be sampled
	rows     []int      // of each that is ready, the last and those of its draft
	observed observed
}

// A job runs between steps with the runner to itself.
type job struct {
	run  func() error
	done chan<- error
}

// start begins the loop, once the engine is ready.
func (e *Engine) start() {
	go e.run()
	go e.watch(e.watchdog)
}

// ready makes what the loop works on.
func (e *Engine) ready() {
	e.loop.seqs = make(map[uint64]*sequence)
	e.loop.jobs, e.loop.quit, e.loop.done = make(chan job), make(chan struct{}), make(chan struct{})
	e.loop.inbox.wake = make(chan struct{}, 1)
	e.publish()
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

// An inbox takes requests in without waiting for the step at hand: whoever is
// refused for want of a place in the queue learns it at once.
type inbox struct {
	mu      sync.Mutex
	arrived []*group
	waiting int // requests that have not begun to run, those that arrived included
	closed  bool
	wake    chan struct{} // holds a value when something has arrived
}

// put queues a request, where at most most may wait; 0: any number.
func (b *inbox) put(g *group, most int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return ErrClosed
	case most > 0 && b.waiting >= most:
		return &QueueFull{Limit: most}
	}
	b.arrived = append(b.arrived, g)
	b.waiting++
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return nil
}

func (b *inbox) take() []*group {
	b.mu.Lock()
	defer b.mu.Unlock()
	arrived := b.arrived
	b.arrived = nil
	return arrived
}

// begun counts a request that no longer waits.
func (b *inbox) begun() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting--
}

// count is the number of requests that wait.
func (b *inbox) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting
}

func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
}

// MaxQueued is how many requests may wait; 0: any number.
func (e *Engine) MaxQueued() int { return e.maxQueued }

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
		quit := e.receive(len(l.seqs) == 0)
		e.accept()
		if quit {
			break
		}
		e.dropCancelled()
		e.advance()
	}
	l.inbox.close()
	e.accept()
	for _, s := range l.seqs {
		e.fail(s, ErrClosed)
	}
	e.settle()
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// receive runs the jobs that have come, waiting for something if wait is set,
// and reports whether the engine is being closed.
func (e *Engine) receive(wait bool) (quit bool) {
	l := &e.loop
	now := closed // ready unless there is something to wait for
	if wait {
		e.enter(stageIdle, 0)
		now = nil
	}
	for {
		select {
		case <-l.inbox.wake:
			now = closed
		case j := <-l.jobs:
			e.enter("job", 0)
			e.renew()
			j.done <- e.protect(j.run)
			now = closed
		case <-l.quit:
			return true
		case <-now:
			return l.stopping() // select takes either when both are ready
		}
	}
}

// accept hands the requests that have arrived to the scheduler. The choices of
// one begin when the first has computed their prompt, which they share then.
func (e *Engine) accept() {
	for _, g := range e.loop.inbox.take() {
		e.schedule(g.choices[:1])
	}
}

// schedule hands choices of a request to the scheduler.
func (e *Engine) schedule(choices []*sequence) {
	l := &e.loop
	for _, s := range choices {
		l.last++
		s.id = l.last
		l.seqs[s.id] = s
		if err := l.sched.Submit(time.Now(), e.demand(s)); err != nil {
			e.fail(s, err)
			return
		}
	}
}

// dropCancelled ends the sequences that nobody waits for any more.
func (e *Engine) dropCancelled() {
	for _, s := range e.loop.seqs {
		if err := s.group.out.ctx.Err(); err != nil {
			e.fail(s, err)
		}
	}
}

// abandoned reports whether nobody waits for the step at hand any more.
func (l *loop) abandoned() bool {
	return l.stopping() || !slices.ContainsFunc(l.planned, func(p planned) bool { return p.group.out.ctx.Err() == nil })
}
