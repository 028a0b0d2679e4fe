//go:build !linux

package kernel

func onlineProcessors() int { return 0 }

func cgroupQuota() float64 { return 0 }
