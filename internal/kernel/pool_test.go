package kernel

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

type countJob struct {
	seen  []atomic.Int32
	panic int
}

func (j *countJob) do(_, task int) {
	if task == j.panic {
		panic("task failed")
	}
	j.seen[task].Add(1)
}

func TestRunDoesEveryTaskOnce(t *testing.T) {
	for _, workers := range []int{1, 2, 8} {
		pool := NewPool(workers)
		if pool.Workers() != workers {
			t.Errorf("%d workers, want %d", pool.Workers(), workers)
		}
		for n := range 40 {
			j := &countJob{seen: make([]atomic.Int32, n), panic: -1}
			pool.run(n, j)
			for i := range j.seen {
				if got := j.seen[i].Load(); got != 1 {
					t.Fatalf("%d workers: task %d of %d ran %d times", workers, i, n, got)
				}
			}
		}
		pool.Close()
	}
}

// A panic in any task reaches the caller, and the pool works on.
func TestRunPassesPanicsOn(t *testing.T) {
	pool := NewPool(4)
	defer pool.Close()
	for task := range 50 {
		func() {
			defer func() {
				if v := recover(); v != "task failed" {
					t.Errorf("task %d: recovered %v", task, v)
				}
			}()
			pool.run(50, &countJob{seen: make([]atomic.Int32, 50), panic: task})
		}()
	}
	j := &countJob{seen: make([]atomic.Int32, 9), panic: -1}
	pool.run(9, j)
	for i := range j.seen {
		if j.seen[i].Load() != 1 {
			t.Errorf("after a panic, task %d ran %d times", i, j.seen[i].Load())
		}
	}
}

// A meeting is a job of one task for each worker: nobody leaves before all
// have come, so that each has a task.
type meeting struct {
	all   int64
	here  atomic.Int64
	ended atomic.Int64
	fail  func(worker int) bool
}

func (j *meeting) do(worker, _ int) {
	for j.here.Add(1); j.here.Load() < j.all; {
		runtime.Gosched()
	}
	if j.fail != nil && j.fail(worker) {
		panic(worker)
	}
	if worker != 0 {
		time.Sleep(time.Millisecond) // so that a caller who panics could be gone
	}
	j.ended.Add(1)
}

// Whoever panics, run returns after the others have ended.
func TestRunEndsBeforeItPanics(t *testing.T) {
	const workers = 4
	for name, fail := range map[string]func(worker int) bool{
		"the caller":        func(worker int) bool { return worker == 0 },
		"a worker":          func(worker int) bool { return worker == 2 },
		"caller and worker": func(worker int) bool { return worker == 0 || worker == 2 },
		"all of them":       func(int) bool { return true },
	} {
		pool := NewPool(workers)
		for range 20 {
			j := &meeting{all: workers, fail: fail}
			want := int64(0)
			for w := range workers {
				if !fail(w) {
					want++
				}
			}
			func() {
				defer func() {
					if v, ok := recover().(int); !ok || !fail(v) {
						t.Errorf("%s: recovered %v", name, v)
					}
				}()
				pool.run(workers, j)
			}()
			if got := j.ended.Load(); got != want {
				t.Fatalf("%s: %d tasks had ended, want %d", name, got, want)
			}
			pool.run(workers, &meeting{all: workers}) // the pool is whole
		}
		pool.Close()
	}
}

// A plainJob is written and read without any synchronisation but run's own, so
// that the race detector sees a worker that is still at an earlier job.
type plainJob struct {
	open  bool // while run may call do
	tasks []int
	late  *atomic.Int64
}

func (j *plainJob) do(_, task int) {
	if !j.open {
		j.late.Add(1)
	}
	j.tasks[task]++
}

// hammer runs many jobs of changing sizes and checks each.
func hammer(t *testing.T, pool *Pool, runs int) {
	t.Helper()
	var late atomic.Int64
	j := &plainJob{late: &late, tasks: make([]int, 20)}
	for i := range runs {
		n := i*7%19 + 1
		j.open = true
		pool.run(n, j)
		j.open = false
		for task, times := range j.tasks {
			if want := min(max(n-task, 0), 1); times != want {
				t.Fatalf("run %d: task %d of %d ran %d times", i, task, n, times)
			}
			j.tasks[task] = 0
		}
		if i%64 == 0 {
			runtime.Gosched()
		}
	}
	if late.Load() != 0 {
		t.Errorf("%d tasks ran outside of run", late.Load())
	}
}

func TestRunsInARow(t *testing.T) {
	for _, workers := range []int{2, 3, 8} {
		pool := NewPool(workers)
		hammer(t, pool, 5000)
		pool.Close()
	}
}

// With far fewer processors than workers and busy goroutines beside them,
// workers come late, or never, to most jobs. All that is asked of them is
// done all the same.
func TestRunsOnABusyMachine(t *testing.T) {
	for _, procs := range []int{1, 2} {
		func() {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			var stop atomic.Bool
			defer stop.Store(true)
			for range procs {
				go func() {
					for !stop.Load() {
					}
				}()
			}
			for _, workers := range []int{procs, 8} {
				pool := NewPool(workers)
				hammer(t, pool, 2000)
				pool.Close()
			}
		}()
	}
}

// Between jobs workers go to sleep, all of them, however the last was left,
// and wake for the next.
func TestIdlePoolSleeps(t *testing.T) {
	const workers = 8
	pool := NewPool(workers)
	defer pool.Close()
	for n := range 20 {
		pool.run(n, &countJob{seen: make([]atomic.Int32, n), panic: -1})
		for pool.sleepers.Load() != workers-1 {
			time.Sleep(time.Millisecond)
		}
		pool.run(workers, &meeting{all: workers})
	}
}

// A worker that goes to sleep while run publishes tasks either finds them
// itself, and is no sleeper, or has been counted as one and takes the token that
// is due to it.
func TestSleepWhileTasksArrive(t *testing.T) {
	for name, test := range map[string]struct{ sleepers, tokens int64 }{
		"run has not seen the sleeper":    {0, 0},
		"run has, and has sent its token": {-1, 1},
	} {
		pool := &Pool{wake: make(chan struct{}, 1)}
		pool.unclaimed.Store(3)
		pool.sleepers.Store(test.sleepers) // -1: run has taken the one to come
		for range test.tokens {
			pool.wake <- struct{}{}
		}
		if !pool.sleep() {
			t.Errorf("%s: closed", name)
		}
		if pool.sleepers.Load() != 0 || len(pool.wake) != 0 {
			t.Errorf("%s: %d sleepers and %d tokens are left, want none", name, pool.sleepers.Load(), len(pool.wake))
		}
	}
}

func TestCloseEndsTheWorkers(t *testing.T) {
	before := goleak.IgnoreCurrent()
	pool := NewPool(8)
	pool.run(20, &countJob{seen: make([]atomic.Int32, 20), panic: -1})
	pool.Close()
	pool.Close()
	goleak.VerifyNone(t, before)
	j := &countJob{seen: make([]atomic.Int32, 20), panic: -1}
	pool.run(20, j)
	for i := range j.seen {
		if j.seen[i].Load() != 1 {
			t.Errorf("after Close task %d ran %d times", i, j.seen[i].Load())
		}
	}
	defer func() {
		if v := recover(); v != "task failed" {
			t.Errorf("after Close: recovered %v", v)
		}
	}()
	pool.run(20, &countJob{seen: make([]atomic.Int32, 20), panic: 7})
}

func TestRunDoesNotAllocate(t *testing.T) {
	pool := NewPool(4)
	defer pool.Close()
	j := &countJob{seen: make([]atomic.Int32, 50), panic: -1}
	r := &rangeLog{}
	pool.run(50, j)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const runs = 1000
	for range runs {
		pool.run(50, j)
		pool.split(1000, 16, r)
	}
	runtime.ReadMemStats(&after)
	if n := after.Mallocs - before.Mallocs; n > runs/10 { // the runtime has its own
		t.Errorf("%d runs took %d pieces of memory", runs, n)
	}
}

// A rangeLog notes how a range was cut.
type rangeLog struct {
	calls  atomic.Int64
	least  atomic.Int64 // shortest range
	odd    atomic.Int64 // ranges that begin off the grain
	others atomic.Int64 // calls not on the caller
	grain  int
	seen   []atomic.Int32
}

func (r *rangeLog) do(worker, from, to int) {
	r.calls.Add(1)
	if worker != 0 {
		r.others.Add(1)
	}
	for l := r.least.Load(); int64(to-from) < l && !r.least.CompareAndSwap(l, int64(to-from)); l = r.least.Load() {
	}
	if r.grain > 0 && from%r.grain != 0 {
		r.odd.Add(1)
	}
	if r.seen != nil {
		for i := from; i < to; i++ {
			r.seen[i].Add(1)
		}
	}
}

func TestSplitCoversTheRangeOnce(t *testing.T) {
	for _, workers := range []int{1, 2, 5} {
		pool := NewPool(workers)
		for _, grain := range []int{1, 16, 64} {
			for n := range 400 {
				r := &rangeLog{grain: grain, seen: make([]atomic.Int32, n)}
				r.least.Store(int64(n))
				pool.split(n, grain, r)
				for i := range r.seen {
					if got := r.seen[i].Load(); got != 1 {
						t.Fatalf("%d workers, grain %d: element %d of %d was visited %d times", workers, grain, i, n, got)
					}
				}
				calls := int(r.calls.Load())
				switch {
				case n == 0 && calls != 0,
					n > 0 && calls == 0,
					n < 2*grain && n > 0 && calls != 1,
					workers > 1 && n >= 2*grain && calls < 2,
					calls > 4*workers:
					t.Fatalf("%d workers, grain %d: %d elements in %d ranges", workers, grain, n, calls)
				case calls == 1 && r.others.Load() != 0:
					t.Fatalf("%d workers, grain %d: %d elements were not done by the caller", workers, grain, n)
				case calls > 1 && int(r.least.Load()) < grain:
					t.Fatalf("%d workers, grain %d: %d elements in ranges of %d", workers, grain, n, r.least.Load())
				case r.odd.Load() != 0:
					t.Fatalf("%d workers, grain %d: %d elements were cut within a grain", workers, grain, n)
				}
			}
		}
		pool.Close()
	}
}

// rendezvous is a job of two tasks that begin at the same time.
type rendezvous struct{ here, round int64 }

func (j *rendezvous) do(int, int) {
	atomic.AddInt64(&j.here, 1)
	for atomic.LoadInt64(&j.here) < 2*j.round {
		pause()
	}
}

// Fork and join of two workers that both come. It means something only with
// two free processors.
func BenchmarkForkJoin(b *testing.B) {
	pool := NewPool(2)
	defer pool.Close()
	j := &rendezvous{}
	b.ReportAllocs()
	for b.Loop() {
		j.round++
		pool.run(2, j)
	}
}

// A job of two tasks that nobody need come for.
func BenchmarkEmptyRun(b *testing.B) {
	pool := NewPool(2)
	defer pool.Close()
	j := &plainJob{open: true, tasks: make([]int, 2)}
	b.ReportAllocs()
	for b.Loop() {
		pool.run(2, j)
	}
}

// work is a job of tasks that take 20 µs.
type work struct{ sums [64]float64 }

func (j *work) do(_, task int) {
	x := 1.0
	for range 4500 {
		x = 1 / (1 + x)
	}
	j.sums[task*8%64] = x
}

// Jobs of 2, 8 and 32 tasks: compare one worker with two, on a free machine,
// beside busy processes, and on one processor of two (taskset -c 0).
func BenchmarkRun(b *testing.B) {
	for _, tasks := range []int{2, 8, 32} {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("tasks=%d/workers=%d", tasks, workers), func(b *testing.B) {
				pool := NewPool(workers)
				defer pool.Close()
				j := &work{}
				for b.Loop() {
					pool.run(tasks, j)
				}
			})
		}
	}
}
