package sample

import "math"

// expTable is 2^(j/64).
var expTable = func() (t [64]float64) {
	for j := range t {
		t[j] = math.Exp2(float64(j) / 64)
	}
	return t
}()

// exp is e^x for faint <= x <= 0, to 1e-14, in about half the time of math.Exp
// (Tang 1989): 2^(n/64) is looked up, and the rest is at most ln2/128.
func exp(x float64) float64 {
	const step = math.Ln2 / 64
	n := int64(float64(x*(1/step)) - 0.5) // to nearest, for x <= 0
	r := x - float64(float64(n)*step)
	// 1 + r + r²/2 + r³/6 + r⁴/24 + r⁵/120
	p := float64(r*(1.0/120)) + 1.0/24
	p = float64(p*r) + 1.0/6
	p = float64(p*r) + 0.5
	p = float64(p*r) + 1
	p = float64(p*r) + 1
	scale := math.Float64frombits(uint64(1023+n>>6) << 52)
	return expTable[n&63] * p * scale
}
