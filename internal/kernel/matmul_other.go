//go:build !amd64 && !arm64

package kernel

func panelsFor(CPU) panelKernels { return genericPanels() }
