package kernel

import (
	"fmt"
	"runtime"
)

// DefaultThreads returns how many workers this process can keep busy, and why
// in words: "2 of 16 processors: cgroup quota of 2.5".
//
// The runtime's default GOMAXPROCS knows most of it: the affinity mask, which
// is what a cpuset shows as, and the quota of the process's own cgroup. But
// it rounds a quota up, and to two at least; goroutines hardly notice when they are
// throttled, whereas workers that meet at every product all wait for the one whose
// share ran out. Nor does it see the quota of a cgroup further up, such as a
// pod's around its container. So the quota is read here again, and
// GOMAXPROCS counts as a bound that a person or a program may have set.
func DefaultThreads() (n int, why string) {
	return threads(onlineProcessors(), runtime.NumCPU(), cgroupQuota(), runtime.GOMAXPROCS(0))
}

// threads is the least of what an affinity mask, a quota in processors (0:
// none) and GOMAXPROCS leave of the machine's online processors (0: unknown).
func threads(online, mask int, quota float64, procs int) (n int, why string) {
	n, online = mask, max(online, mask)
	if mask < online {
		why = ": affinity mask"
	}
	if whole := max(int(quota), 1); quota > 0 && whole < n {
		n, why = whole, fmt.Sprintf(": cgroup quota of %.4g", quota)
	}
	if procs < n {
		n, why = procs, ": GOMAXPROCS"
	}
	return n, fmt.Sprintf("%d of %d processors%s", n, online, why)
}
