//go:build darwin || dragonfly || freebsd || linux

package pull

import "golang.org/x/sys/unix"

// freeSpace returns the bytes an ordinary user may still write below path; ok is false where the system does not say.
func freeSpace(path string) (free int64, ok bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, false
	}
	return max(0, int64(st.Bavail)*int64(st.Bsize)), true // the BSDs go below zero in the reserve for root
}
