package kernel

import "math"

// sumBlock is how many products are summed before the sum joins the running
// total. It bounds the rounding error of long rows, and it is the length of a
// quantised block, so that packed kernels can keep the same order.
const sumBlock = 32

// A tile is panelRows weight rows times two activation rows: the largest whose
// sums and operands the compiler keeps in registers.
const panelRows = 3

// dot3x2 adds to acc the products of three weight rows with two activation
// rows, all of one length: acc[2i+j] += w_i · x_j. An element is summed in
// the order of dot3x1, whatever its neighbours.
func dot3x2(acc *[2 * panelRows]float32, w0, w1, w2, x0, x1 []float32) {
	n := len(x0)
	w0, w1, w2, x1 = w0[:n], w1[:n], w2[:n], x1[:n]
	k := 0
	for ; k+sumBlock <= n; k += sumBlock {
		p0, p1, p2 := (*[sumBlock]float32)(w0[k:]), (*[sumBlock]float32)(w1[k:]), (*[sumBlock]float32)(w2[k:])
		a, b := (*[sumBlock]float32)(x0[k:]), (*[sumBlock]float32)(x1[k:])
		var s0, s1, s2, s3, s4, s5 float32
		for i := range sumBlock {
			u, v := a[i], b[i]
			s0 += float32(p0[i] * u)
			s1 += float32(p0[i] * v)
			s2 += float32(p1[i] * u)
			s3 += float32(p1[i] * v)
			s4 += float32(p2[i] * u)
			s5 += float32(p2[i] * v)
		}
		acc[0] += s0
		acc[1] += s1
		acc[2] += s2
		acc[3] += s3
		acc[4] += s4
		acc[5] += s5
	}
	if k == n {
		return
	}
	var s [2 * panelRows]float32
	for ; k < n; k++ {
		u, v := x0[k], x1[k]
		s[0] += float32(w0[k] * u)
		s[1] += float32(w0[k] * v)
		s[2] += float32(w1[k] * u)
		s[3] += float32(w1[k] * v)
		s[4] += float32(w2[k] * u)
		s[5] += float32(w2[k] * v)
	}
	for i := range s {
		acc[i] += s[i]
	}
}

// dot3x1 adds to acc the products of three weight rows with one activation
// row: acc[i] += w_i · x.
func dot3x1(acc *[panelRows]float32, w0, w1, w2, x []float32) {
	n := len(x)
	w0, w1, w2 = w0[:n], w1[:n], w2[:n]
	k := 0
	for ; k+sumBlock <= n; k += sumBlock {
		p0, p1, p2 := (*[sumBlock]float32)(w0[k:]), (*[sumBlock]float32)(w1[k:]), (*[sumBlock]float32)(w2[k:])
		a := (*[sumBlock]float32)(x[k:])
		var s0, s1, s2 float32
		for i := range sumBlock {
			u := a[i]
			s0 += float32(p0[i] * u)
			s1 += float32(p1[i] * u)
			s2 += float32(p2[i] * u)
		}
		acc[0] += s0
		acc[1] += s1
		acc[2] += s2
	}
	if k == n {
		return
	}
	var s [panelRows]float32
	for ; k < n; k++ {
		u := x[k]
		s[0] += float32(w0[k] * u)
		s[1] += float32(w1[k] * u)
		s[2] += float32(w2[k] * u)
	}
	for i := range s {
		acc[i] += s[i]
	}
}

// dot returns a · b in four interleaved sums.
func dot(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += float32(a[i] * b[i])
		s1 += float32(a[i+1] * b[i+1])
		s2 += float32(a[i+2] * b[i+2])
		s3 += float32(a[i+3] * b[i+3])
	}
	for ; i < len(a); i++ {
		s0 += float32(a[i] * b[i])
	}
	return (s0 + s1) + (s2 + s3)
}

// axpy adds a·x to y.
func axpy(y []float32, a float32, x []float32) {
	x = x[:len(y)]
	for i := range y {
		y[i] += float32(a * x[i])
	}
}

func exp(x float32) float32 { return float32(math.Exp(float64(x))) }
