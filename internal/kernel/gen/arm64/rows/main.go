// Command rows writes the kernels that work on rows of activations and of
// logits, for arm64.
package main

import (
	"math"

	. "github.com/foretoken/foretoken/internal/kernel/gen/arm64/neon"
)

func main() {
	rmsNorm()
	squares()
	sumStreams()
	mixStreams()
	add()
	scale()
	divide()
	swiglu()
	geglu()
	rotate()
	rotatePairs()
	quantize()
	toBF16()
	peak()
	expSum()
	atLeast()
	mask()
	contenders()
	Generate()
}

// pointer loads the address of a slice that is a parameter, length its length.
func pointer(name string) R { return Param(name + "_base") }
func length(name string) R  { return Param(name + "_len") }

func broadcast(x float32) V {
	v := NewV()
	Broadcast(v, math.Float32bits(x))
	return v
}
