//go:build !amd64 && !arm64

package kernel

func entriesFor(CPU) entryKernels { return entriesGeneric }
