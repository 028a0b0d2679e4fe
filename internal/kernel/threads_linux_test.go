package kernel

import (
	"testing"
	"testing/fstest"
)

// A tree of files as the kernel shows them.
func system(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text + "\n")}
	}
	return m
}

func TestQuota(t *testing.T) {
	const (
		v2 = "30 23 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate"
		v1 = "22 1 8:1 / / rw - ext4 /dev/sda1 rw,cpu=none\n" +
			"31 23 0:28 / /sys/fs/cgroup/cpuset rw shared:9 - cgroup cgroup rw,cpuset\n" +
			"32 23 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:10 - cgroup cgroup rw,cpu,cpuacct\n" +
			"33 23 0:30 / /sys/fs/cgroup/unified rw shared:11 - cgroup2 cgroup2 rw"
	)
	for _, test := range []struct {
		name  string
		files map[string]string
		want  float64
	}{
		{"no cgroups", nil, 0},
		{"v2 at the root", map[string]string{
			"proc/self/cgroup":    "0::/",
			"proc/self/mountinfo": v2,
		}, 0},
		{"v2, a container that sees itself as the root", map[string]string{
			"proc/self/cgroup":      "0::/",
			"proc/self/mountinfo":   v2,
			"sys/fs/cgroup/cpu.max": "250000 100000",
		}, 2.5},
		{"v2 without a limit", map[string]string{
			"proc/self/cgroup":                 "0::/user.slice",
			"proc/self/mountinfo":              v2,
			"sys/fs/cgroup/user.slice/cpu.max": "max 100000",
		}, 0},
		{"v2, limited by a group further up", map[string]string{
			"proc/self/cgroup":                           "0::/pod/container/worker",
			"proc/self/mountinfo":                        v2,
			"sys/fs/cgroup/pod/cpu.max":                  "150000 100000",
			"sys/fs/cgroup/pod/container/cpu.max":        "400000 100000",
			"sys/fs/cgroup/pod/container/worker/cpu.max": "max 100000",
		}, 1.5},
		{"v2, a neighbour's limit", map[string]string{
			"proc/self/cgroup":           "0::/pod",
			"proc/self/mountinfo":        v2,
			"sys/fs/cgroup/pod2/cpu.max": "100000 100000",
		}, 0},
		{"v2, mounted from the container's group on", map[string]string{
			"proc/self/cgroup":        "0::/docker/ab c/job",
			"proc/self/mountinfo":     `9 2 0:27 /docker/ab\040c /cgroup\040here ro - cgroup2 cgroup2 rw`,
			"cgroup here/job/cpu.max": "300000 100000",
			"cgroup here/cpu.max":     "100000 50000",
			"docker/ab c/job/cpu.max": "1 1",
		}, 2},
		{"v2, a mount that shows other groups", map[string]string{
			"proc/self/cgroup":      "0::/../init",
			"proc/self/mountinfo":   "9 2 0:27 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n" + v2,
			"sys/fs/cgroup/cpu.max": "100000 100000",
		}, 0},
		{"v2, a mount that shows a group of a shorter name", map[string]string{
			"proc/self/cgroup":        "0::/docker/abc",
			"proc/self/mountinfo":     "9 2 0:27 /docker/ab /sys/fs/cgroup ro - cgroup2 cgroup2 rw",
			"sys/fs/cgroup/c/cpu.max": "100000 100000",
			"sys/fs/cgroup/cpu.max":   "100000 100000",
		}, 0},
		{"v1 beside v2", map[string]string{
			"proc/self/cgroup":    "4:cpuset:/\n3:cpu,cpuacct:/docker/abc\n0::/other",
			"proc/self/mountinfo": v1,
			"sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us":  "50000",
			"sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us": "100000",
			"sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us":      "-1",
			"sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us":     "100000",
			"sys/fs/cgroup/unified/other/cpu.max":                    "10000 100000",
		}, 0.5},
		{"v1, limited by a group further up", map[string]string{
			"proc/self/cgroup":    "0::/other\n3:cpu,cpuacct:/pod/abc",
			"proc/self/mountinfo": v1,
			"sys/fs/cgroup/cpu,cpuacct/pod/abc/cpu.cfs_quota_us":  "800000",
			"sys/fs/cgroup/cpu,cpuacct/pod/abc/cpu.cfs_period_us": "100000",
			"sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_quota_us":      "600000",
			"sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_period_us":     "200000",
		}, 3},
		{"v1 without a limit", map[string]string{
			"proc/self/cgroup":                            "3:cpu,cpuacct:/",
			"proc/self/mountinfo":                         v1,
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":  "-1",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
		}, 0},
		{"nonsense", map[string]string{
			"proc/self/cgroup":      "cpu\n::\n0:",
			"proc/self/mountinfo":   "1 2 3\n - cgroup2\n",
			"sys/fs/cgroup/cpu.max": "1 0",
		}, 0},
		{"nonsense in cpu.max", map[string]string{
			"proc/self/cgroup":      "0::/",
			"proc/self/mountinfo":   v2,
			"sys/fs/cgroup/cpu.max": "100000",
		}, 0},
	} {
		if got := quota(system(test.files)); got != test.want {
			t.Errorf("%s: quota of %v processors, want %v", test.name, got, test.want)
		}
	}
}

func TestOnline(t *testing.T) {
	for text, want := range map[string]int{"0": 1, "0-15": 16, "0-3,8,10-11": 7, "": 0, "3-1": 0, "a-b": 0} {
		if got := online(system(map[string]string{"sys/devices/system/cpu/online": text})); got != want {
			t.Errorf("online processors %q: %d, want %d", text, got, want)
		}
	}
	if got := online(system(nil)); got != 0 {
		t.Errorf("without the file: %d, want 0", got)
	}
}
