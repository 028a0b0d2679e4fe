// Package kernel computes: matrix products, attention, norms, rotary
// embeddings and activations, on slices that the caller owns. It is the only
// package that may hold assembly; its plain Go is the reference for every kernel
// and runs everywhere.
//
// A row's result never depends on the rows beside it, on the number of
// workers or on how work was cut among them: every output element is summed
// by one worker in one fixed order.
package kernel

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/cpu"
)

// A Pool runs kernels on a fixed number of workers, the caller being one of
// them. Its methods are called from one goroutine at a time.
//
// A decode step is hundreds of jobs of some 20 µs to 1 ms, so workers wait for
// the next one, and the caller for the last task, by spinning: fork and join
// take 0.2 µs then, where waking a goroutine takes 10 to 100. They spin for a
// short time only and then sleep, so that an idle pool costs nothing and a
// busy machine little. Nobody waits for a worker that has claimed nothing, so
// one that the system has descheduled delays a job by the task it is at, if
// any.
type Pool struct {
	scratch [][]float32    // one per worker, grown on demand
	workers sync.WaitGroup // the goroutines
	wait    spinner        // the caller's
	joined  chan struct{}  // wakes the caller
	wake    chan struct{}  // wakes a worker, no matter which
	closed  atomic.Bool
	fault   atomic.Pointer[any] // what a worker panicked with

	// The job at hand, written before unclaimed and unended. Whoever has
	// claimed a task may read them until that task has ended; others may not.
	job   job
	tasks int

	// Each on a cache line of its own, for spinning workers read one of them all
	// the time.
	_         cpu.CacheLinePad
	unclaimed atomic.Int64 // tasks that nobody has begun; at most 0 between jobs
	_         cpu.CacheLinePad
	unended   atomic.Int64 // twice the tasks that have not ended, plus one if the caller sleeps
	_         cpu.CacheLinePad
	sleepers  atomic.Int64 // workers asleep, less those that are being woken
	_         cpu.CacheLinePad

	matmul    matmulJob
	attention attentionJob
	entries   entriesJob
	indexer   indexerJobs
	rowJobs   rowJobs
	hyper     hyperJobs
	nsa       nsaJobs
	ranges    rangesJob
}

// A job is a kernel call cut into tasks that may run in any order.
type job interface {
	do(worker, task int)
}

// NewPool starts workers-1 goroutines.
func NewPool(workers int) *Pool {
	workers = max(workers, 1)
	p := &Pool{
		scratch: make([][]float32, workers),
		wait:    newSpinner(workers),
		joined:  make(chan struct{}, 1),
		// One channel serves all, since any worker will do. It has room for two
		// tokens for each, one that wakes it and one of Close, so that nobody
		// blocks on waking one, and a token sent before its worker has gone to
		// sleep is not lost.
		wake: make(chan struct{}, 2*workers),
	}
	for i := range workers - 1 {
		p.workers.Go(func() { p.work(i + 1) })
	}
	return p
}

// Workers is the number of workers, the caller included.
func (p *Pool) Workers() int { return len(p.scratch) }

// Close ends the workers. No kernel may be running.
func (p *Pool) Close() {
	if p.closed.Swap(true) {
		return
	}
	for range p.Workers() - 1 {
		p.wake <- struct{}{}
	}
	p.workers.Wait()
}

// run executes tasks 0…n-1 of j and returns when all have ended. If one
// panics, run panics with the same value after the others have ended; tasks
// that nobody has begun by then may be left out.
func (p *Pool) run(n int, j job) {
	if n <= 1 || p.Workers() == 1 {
		for task := range n {
			j.do(0, task)
		}
		return
	}
	p.job, p.tasks = j, n
	p.unended.Store(2 * int64(n))
	p.unclaimed.Store(int64(n))
	awake := p.Workers() - int(p.sleepers.Load()) // with the caller
	p.rouse(n - awake)

	panicked := true
	defer func() {
		if panicked {
			// Nothing can be said of the job's result: count the task that
			// failed and those that nobody has begun as ended.
			p.end(1 + max(0, p.unclaimed.Swap(0)))
		}
		p.join()
		if v := p.fault.Swap(nil); v != nil {
			panic(*v)
		}
	}()
	p.drain(0)
	panicked = false
}

// drain runs tasks until all are claimed.
//
// A worker may come late: for a job that has ended meanwhile, or while the
// caller prepares the next. It cannot mistake one for the other, because
// unclaimed is all it looks at: counted down from zero it claims nothing
// and touches nothing else, and counted down from the next job's number it
// claims a task of that.
func (p *Pool) drain(worker int) {
	for {
		left := p.unclaimed.Add(-1)
		if left < 0 {
			return
		}
		p.job.do(worker, p.tasks-1-int(left))
		p.end(1)
		if left == 0 {
			return
		}
	}
}

// end counts n claimed tasks as ended. After that the caller may be anywhere.
func (p *Pool) end(n int64) {
	if p.unended.Add(-2*n) == 1 {
		p.joined <- struct{}{}
		// The runtime has made the caller the next to run on this processor.
		// If this goroutine went on, the caller would have to be stolen from
		// it, for which the runtime waits some 70 µs.
		runtime.Gosched()
	}
}

// join waits until every task has ended.
func (p *Pool) join() {
	if p.wait.until(func() bool { return p.unended.Load() == 0 }) {
		return
	}
	// Going to sleep is counted in the same word as the tasks, so that either
	// the last of them sees it, or none is left here.
	if p.unended.Add(1) > 1 {
		<-p.joined
	}
}

func (p *Pool) work(worker int) {
	// A mapped file that shrinks faults where it is read; run hands the fault
	// to the caller, who knows the file.
	debug.SetPanicOnFault(true)
	wait := newSpinner(p.Workers())
	for p.await(&wait) {
		p.assist(worker)
	}
}

func (p *Pool) assist(worker int) {
	defer func() {
		if v := recover(); v != nil {
			fault := v // v itself would be on the heap each time
			p.fault.Store(&fault)
			p.end(1) // the task that failed
		}
	}()
	p.drain(worker)
}

// await waits until there are tasks to claim, or until the pool is closed:
// then it returns false.
func (p *Pool) await(wait *spinner) bool {
	return wait.until(p.claimable) || p.sleep()
}

func (p *Pool) sleep() bool {
	p.sleepers.Add(1)
	// Either run sees this sleeper, or this worker sees run's tasks. If both,
	// the sleeper may be one already to whom a token is due.
	if p.claimable() && p.takeSleeper() {
		return true
	}
	<-p.wake
	if p.closed.Load() {
		return false
	}
	// One wakes two, while there is work for more: the caller alone would
	// take long to wake a machine full of workers.
	if p.claimable() {
		p.rouse(2)
	}
	return true
}

func (p *Pool) claimable() bool { return p.unclaimed.Load() > 0 }

// rouse wakes n workers, if as many sleep, but two at most: they wake others.
func (p *Pool) rouse(n int) {
	for range min(n, 2) {
		if !p.takeSleeper() {
			return
		}
		p.wake <- struct{}{}
	}
}

// takeSleeper takes one worker off the count of sleepers, if there is one: a
// token on wake is then due to it.
func (p *Pool) takeSleeper() bool {
	for n := p.sleepers.Load(); n > 0; n = p.sleepers.Load() {
		if p.sleepers.CompareAndSwap(n, n-1) {
			return true
		}
	}
	return false
}

// A rangeJob is work on [0, n) whose results do not depend on how it is cut.
type rangeJob interface {
	do(worker, from, to int)
}

// rangesPerWorker evens out what workers have to do.
const rangesPerWorker = 4

// split runs j over [0, n) in ranges of at least grain, cut at multiples of
// grain: on the caller alone if that makes only one.
func (p *Pool) split(n, grain int, j rangeJob) {
	parts := min(n/grain, rangesPerWorker*p.Workers())
	if parts <= 1 || p.Workers() == 1 {
		if n > 0 {
			j.do(0, 0, n)
		}
		return
	}
	p.ranges = rangesJob{j, n, grain, parts}
	p.run(parts, &p.ranges)
}

type rangesJob struct {
	job             rangeJob
	n, grain, parts int
}

func (j *rangesJob) do(worker, task int) {
	units := j.n / j.grain
	from, to := task*units/j.parts*j.grain, (task+1)*units/j.parts*j.grain
	if task == j.parts-1 {
		to = j.n
	}
	j.job.do(worker, from, to)
}

// buffer returns n values of the worker's scratch memory.
func (p *Pool) buffer(worker, n int) []float32 {
	if len(p.scratch[worker]) < n {
		p.scratch[worker] = make([]float32, n)
	}
	return p.scratch[worker][:n]
}

// Each calls f with each i in [0, n), in any order and on any worker, grain or
// more of them on one. Callers keep f, for making it costs an allocation.
func (p *Pool) Each(n, grain int, f func(i int)) {
	p.rowJobs.each = eachJob{f}
	p.split(n, grain, &p.rowJobs.each)
}

type eachJob struct{ f func(i int) }

func (j *eachJob) do(_, from, to int) {
	for i := from; i < to; i++ {
		j.f(i)
	}
}
