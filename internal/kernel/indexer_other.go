//go:build !amd64 && !arm64

package kernel

func indexerFor(CPU) indexerKernels { return indexerGeneric }
