package kernel

import (
	"runtime"
	"strings"
	"testing"
)

func TestThreads(t *testing.T) {
	for _, test := range []struct {
		online, mask int
		quota        float64
		procs        int
		want         int
		why          string
	}{
		{2, 2, 0, 2, 2, "2 of 2 processors"},
		{16, 16, 2.5, 3, 2, "2 of 16 processors: cgroup quota of 2.5"},
		{16, 16, 0.25, 2, 1, "1 of 16 processors: cgroup quota of 0.25"},
		{16, 16, 1.999, 2, 1, "1 of 16 processors: cgroup quota of 1.999"},
		{16, 16, 32, 16, 16, "16 of 16 processors"},
		{16, 4, 0, 4, 4, "4 of 16 processors: affinity mask"},
		{16, 4, 2.5, 3, 2, "2 of 16 processors: cgroup quota of 2.5"},
		{16, 4, 6, 4, 4, "4 of 16 processors: affinity mask"},
		{16, 16, 8, 3, 3, "3 of 16 processors: GOMAXPROCS"},
		{16, 16, 2.5, 12, 2, "2 of 16 processors: cgroup quota of 2.5"},
		{0, 8, 0, 8, 8, "8 of 8 processors"}, // the system does not tell
	} {
		n, why := threads(test.online, test.mask, test.quota, test.procs)
		if n != test.want || why != test.why {
			t.Errorf("%d processors, mask of %d, quota %v, GOMAXPROCS %d: %d, %q; want %d, %q",
				test.online, test.mask, test.quota, test.procs, n, why, test.want, test.why)
		}
	}
}

func TestDefaultThreads(t *testing.T) {
	n, why := DefaultThreads()
	if n < 1 || n > runtime.NumCPU() || !strings.Contains(why, "processors") {
		t.Errorf("%d workers, %q; want between 1 and %d", n, why, runtime.NumCPU())
	}
}
