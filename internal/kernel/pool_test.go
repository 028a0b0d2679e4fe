package kernel

import (
	"sync/atomic"
	"testing"
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
