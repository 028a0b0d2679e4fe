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
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// A Pool runs kernels on a fixed number of workers, the caller being one of
// them. Its methods are called from one goroutine at a time.
type Pool struct {
	scratch [][]float32 // one per worker, grown on demand
	wake    []chan struct{}
	done    sync.WaitGroup

	job   job
	tasks int64
	next  atomic.Int64
	fault atomic.Pointer[any] // what a worker panicked with

	matmul    matmulJob
	attention attentionJob
}

// A job is a kernel call cut into tasks that may run in any order.
type job interface {
	do(worker, task int)
}

// NewPool starts workers-1 goroutines.
func NewPool(workers int) *Pool {
	workers = max(workers, 1)
	p := &Pool{scratch: make([][]float32, workers), wake: make([]chan struct{}, workers-1)}
	for i := range p.wake {
		p.wake[i] = make(chan struct{}, 1)
		go p.work(i+1, p.wake[i])
	}
	return p
}

// Close ends the workers. No kernel may be running.
func (p *Pool) Close() {
	for _, c := range p.wake {
		close(c)
	}
	p.wake = nil
}

func (p *Pool) work(worker int, wake <-chan struct{}) {
	// A mapped file that shrinks faults where it is read; run hands the fault
	// to the caller, who knows the file.
	debug.SetPanicOnFault(true)
	for range wake {
		p.assist(worker)
	}
}

func (p *Pool) assist(worker int) {
	defer p.done.Done()
	defer func() {
		if v := recover(); v != nil {
			fault := v // v itself would be on the heap each time
			p.fault.Store(&fault)
		}
	}()
	p.drain(worker)
}

// run executes tasks 0…n-1 of j and returns when all are done. If one panics,
// run panics with the same value after the others have ended.
func (p *Pool) run(n int, j job) {
	p.job, p.tasks = j, int64(n)
	p.next.Store(0)
	helpers := min(n-1, len(p.wake))
	p.done.Add(max(helpers, 0))
	for i := range helpers {
		p.wake[i] <- struct{}{}
	}
	defer func() {
		p.done.Wait()
		if v := p.fault.Swap(nil); v != nil {
			panic(*v)
		}
	}()
	p.drain(0)
}

func (p *Pool) drain(worker int) {
	for {
		t := p.next.Add(1) - 1
		if t >= p.tasks {
			return
		}
		p.job.do(worker, int(t))
	}
}

// buffer returns n values of the worker's scratch memory.
func (p *Pool) buffer(worker, n int) []float32 {
	if len(p.scratch[worker]) < n {
		p.scratch[worker] = make([]float32, n)
	}
	return p.scratch[worker][:n]
}
