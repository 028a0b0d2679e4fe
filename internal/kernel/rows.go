package kernel

import "math"

// RMSNorm writes w · x / rms(x) for each row of x [rows, len(w)]. y may be x.
// (Zhang and Sennrich 2019; the mean is taken in float64, the rest in float32.)
func RMSNorm(y, x, w []float32, eps float32) {
	n := len(w)
	for len(x) > 0 {
		var sum float64
		for _, v := range x[:n] {
			sum += float64(v) * float64(v)
		}
		inv := float32(1 / math.Sqrt(sum/float64(n)+float64(eps)))
		for i, v := range x[:n] {
			y[i] = w[i] * (v * inv)
		}
		x, y = x[n:], y[n:]
	}
}

// Add adds x to y.
func Add(y, x []float32) {
	x = x[:len(y)]
	for i := range y {
		y[i] += x[i]
	}
}

// Scale multiplies x by a.
func Scale(x []float32, a float32) {
	for i := range x {
		x[i] *= a
	}
}

// SwiGLU writes silu(gate) · up into gate (Shazeer 2020).
func SwiGLU(gate, up []float32) {
	up = up[:len(gate)]
	for i, g := range gate {
		gate[i] = g / (1 + exp(-g)) * up[i]
	}
}

// GeGLU writes gelu(gate) · up into gate, with the tanh form of GELU.
func GeGLU(gate, up []float32) {
	const sqrt2overPi = 0.79788456080286535588
	up = up[:len(gate)]
	for i, v := range gate {
		g := float64(v)
		t := math.Tanh(sqrt2overPi * (g + float64(0.044715*g*g*g)))
		gate[i] = float32(0.5*g*(1+t)) * up[i]
	}
}

// Rotate applies rotary embeddings to every head of x [rows, heads, width]:
// the first 2·half values of a head are rotated in pairs by the angles whose
// cosines and sines are given as [rows, half]. Pairs are (i, i+half), or
// (2i, 2i+1) when interleaved.
func Rotate(x []float32, heads, width int, cos, sin []float32, half int, interleaved bool) {
	for len(x) > 0 {
		c, s := cos[:half], sin[:half]
		for h := range heads {
			v := x[h*width : (h+1)*width]
			for i := range half {
				a, b := i, i+half
				if interleaved {
					a, b = 2*i, 2*i+1
				}
				p, q := v[a], v[b]
				v[a] = float32(p*c[i]) - float32(q*s[i])
				v[b] = float32(p*s[i]) + float32(q*c[i])
			}
		}
		x, cos, sin = x[heads*width:], cos[half:], sin[half:]
	}
}
