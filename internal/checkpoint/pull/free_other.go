//go:build !(darwin || dragonfly || freebsd || linux || windows)

package pull

func freeSpace(string) (free int64, ok bool) { return 0, false }
