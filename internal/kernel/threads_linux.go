package kernel

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// onlineProcessors counts the machine's processors, whoever may use them; 0
// if the system does not say.
func onlineProcessors() int { return online(os.DirFS("/")) }

// cgroupQuota returns how many processors' time the control groups of this
// process may use, 0 for no limit.
func cgroupQuota() float64 { return quota(os.DirFS("/")) }

// online reads the list of online processors, such as "0-3,8".
func online(root fs.FS) (n int) {
	data, err := fs.ReadFile(root, "sys/devices/system/cpu/online")
	if err != nil {
		return 0
	}
	for part := range strings.SplitSeq(strings.TrimSpace(string(data)), ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err != nil || err2 != nil || to < from {
			return 0
		}
		n += to - from + 1
	}
	return n
}

// quota returns the smallest quota on the path from this process's cgroup up
// to the mount that shows it, in processors; 0 if none has a quota.
func quota(root fs.FS) (least float64) {
	group, v2, ok := cpuGroup(root)
	if !ok {
		return 0
	}
	mount, below, ok := cpuMount(root, group, v2)
	if !ok {
		return 0
	}
	for {
		dir := path.Join(mount, below)
		q := quotaV1(root, dir)
		if v2 {
			q = quotaV2(root, dir)
		}
		if q > 0 && (least == 0 || q < least) {
			least = q
		}
		if below == "/" {
			return least
		}
		below = path.Dir(below)
	}
}

// cpuGroup returns the path of the cgroup whose cpu controller governs this
// process. A line of /proc/self/cgroup is hierarchy:controllers:path, the
// hierarchy of v2 being 0; a controller that v1 has, v2 has not (cgroups(7)).
func cpuGroup(root fs.FS) (group string, v2, ok bool) {
	data, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return "", false, false
	}
	for line := range strings.Lines(string(data)) {
		hierarchy, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, name, found := strings.Cut(rest, ":")
		switch {
		case !found || !strings.HasPrefix(name, "/"):
		case hierarchy == "0":
			group, v2, ok = name, true, true
		case listed(controllers, "cpu"):
			return name, false, true
		}
	}
	return group, v2, ok
}

// cpuMount finds where the group's hierarchy is mounted, and the group's path
// below that. A mount of a container may show the hierarchy from the
// container's own group on. A line of /proc/self/mountinfo is
//
//	36 35 98:0 /root/within /mount/point rw shared:1 - cgroup source rw,cpu
//
// with any number of fields before the dash (proc_pid_mountinfo(5)).
func cpuMount(root fs.FS, group string, v2 bool) (mount, below string, ok bool) {
	data, err := fs.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return "", "", false
	}
	for line := range strings.Lines(string(data)) {
		head, tail, _ := strings.Cut(line, " - ")
		place, kind := strings.Fields(head), strings.Fields(tail)
		if len(place) < 5 || len(kind) < 3 {
			continue
		}
		if v2 && kind[0] != "cgroup2" || !v2 && (kind[0] != "cgroup" || !listed(kind[2], "cpu")) {
			continue
		}
		from := unescape.Replace(place[3])
		below, ok := strings.CutPrefix(group, strings.TrimSuffix(from, "/"))
		if !ok || below != "" && below[0] != '/' || strings.HasPrefix(below, "/..") {
			continue // shows other groups than ours
		}
		return strings.TrimPrefix(unescape.Replace(place[4]), "/"), path.Clean("/" + below), true
	}
	return "", "", false
}

// unescape undoes the escapes of mountinfo.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func listed(list, name string) bool {
	for s := range strings.SplitSeq(list, ",") {
		if s == name {
			return true
		}
	}
	return false
}

// quotaV2 reads cpu.max, "max 100000" or "250000 100000": microseconds of
// processor time in each period.
func quotaV2(root fs.FS, dir string) float64 {
	data, err := fs.ReadFile(root, path.Join(dir, "cpu.max"))
	if err != nil {
		return 0 // the hierarchy's root has none
	}
	time, period, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	return share(time, period)
}

// quotaV1 reads the same from two files; -1 is no limit.
func quotaV1(root fs.FS, dir string) float64 {
	time, err := fs.ReadFile(root, path.Join(dir, "cpu.cfs_quota_us"))
	if err != nil {
		return 0
	}
	period, err := fs.ReadFile(root, path.Join(dir, "cpu.cfs_period_us"))
	if err != nil {
		return 0
	}
	return share(strings.TrimSpace(string(time)), strings.TrimSpace(string(period)))
}

func share(time, period string) float64 {
	t, err := strconv.ParseInt(time, 10, 64)
	p, err2 := strconv.ParseInt(period, 10, 64)
	if err != nil || err2 != nil || t <= 0 || p <= 0 {
		return 0
	}
	return float64(t) / float64(p)
}
