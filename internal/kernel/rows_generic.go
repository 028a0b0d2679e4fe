package kernel

import "math"

// genericRows are the references of all row kernels.
func genericRows() rowKernels {
	return rowKernels{
		rmsNorm:     rmsNormGeneric,
		add:         addGeneric,
		scale:       scaleGeneric,
		swiglu:      swigluGeneric,
		geglu:       gegluGeneric,
		rotate:      rotateGeneric,
		rotatePairs: rotatePairsGeneric,
		squares:     squaresGeneric,
		sumStreams:  sumStreamsGeneric,
		mixStreams:  mixStreamsGeneric,
		quantize:    quantizeGeneric,
		toBF16:      toBF16Generic,
		peak:        peakGeneric,
		divide:      divideGeneric,
		expSum:      expSumGeneric,
		atLeast:     atLeastGeneric,
		mask:        maskGeneric,
		contenders:  contendersGeneric,
	}
}

// squareSums is how many sums of squares a row has: value i belongs to sum
// i%squareSums, and the sums are added as a tree. A square of a float32 is
// exact in float64, so that the bits are the same on every tier.
const squareSums = 32

func squaresGeneric(x []float32) float64 {
	var sums [squareSums]float64
	for i, v := range x {
		sums[i%squareSums] += float64(v) * float64(v)
	}
	for half := squareSums / 2; half > 0; half /= 2 {
		for j := range half {
			sums[j] += sums[j+half]
		}
	}
	return sums[0]
}

func rmsNormGeneric(y, x, w []float32, eps float32) {
	inv := float32(1 / math.Sqrt(squaresGeneric(x)/float64(len(x))+float64(eps)))
	for i, v := range x {
		y[i] = w[i] * float32(v*inv)
	}
}

func addGeneric(y, x []float32) {
	for i := range y {
		y[i] += x[i]
	}
}

func scaleGeneric(x []float32, a float32) {
	for i := range x {
		x[i] *= a
	}
}

func swigluGeneric(gate, up []float32) {
	for i, g := range gate {
		gate[i] = g / (1 + expGeneric(-g)) * up[i]
	}
}

// gelu(x) = x · (1 + tanh(u))/2 = x / (1 + exp(-2u)), where u = √(2/π)·(x + 0.044715·x³).
func gegluGeneric(gate, up []float32) {
	const sqrt2overPi = 0.79788456080286535588
	for i, g := range gate {
		u := g * (float32(float32(g*g)*(-2*sqrt2overPi*0.044715)) - 2*sqrt2overPi)
		gate[i] = g / (1 + expGeneric(u)) * up[i]
	}
}

func rotateGeneric(x, cos, sin []float32, heads, width int) {
	half := len(cos)
	for h := range heads {
		v := x[h*width:][:2*half] // of the last head there may be no more
		for i := range half {
			v[i], v[i+half] = turn(v[i], v[i+half], cos[i], sin[i])
		}
	}
}

func rotatePairsGeneric(x, cos, sin []float32, heads, width int) {
	for h := range heads {
		v := x[h*width:][:2*len(cos)]
		for i := range cos {
			v[2*i], v[2*i+1] = turn(v[2*i], v[2*i+1], cos[i], sin[i])
		}
	}
}

func turn(p, q, cos, sin float32) (float32, float32) {
	return float32(p*cos) - float32(q*sin), float32(q*cos) + float32(p*sin)
}

// expGeneric is the reference of the macro Exp in gen/x86, which explains it:
// exp(x) within 2e-7 of its value, 0 below -87, +Inf from 89 on.
func expGeneric(x float32) float32 {
	const magic = 1.5*(1<<23) + 126
	x = max(min(x, 89), -87)
	power := float32(x*1.44269504) + magic
	n := power - magic
	x -= float32(n * 0.693359375)
	x -= float32(n * -2.12194440e-4)
	p := math.Float32frombits(0x3b3511e8)
	for _, a := range [...]uint32{0x3c891d10, 0x3daaac79, 0x3eaaaa49, 0x3f7ffffe, 0x40000000, 0x40000000} {
		p = float32(p*x) + math.Float32frombits(a)
	}
	return p * math.Float32frombits(math.Float32bits(power)<<23)
}
