package kvcache

import "unsafe"

// allocate returns n bytes for pages, the first at the start of a cache line.
func allocate(n int) []byte {
	b := make([]byte, n+lineBytes-1)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % lineBytes)
	return b[skip:][:n:n]
}
