//go:build !amd64 && !arm64

package kernel

func attentionFor(CPU) attentionKernels { return attentionGeneric }
