//go:build !amd64 && !arm64

package kernel

func rowsFor(CPU) rowKernels { return genericRows() }
