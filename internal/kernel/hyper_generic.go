package kernel

func sumStreamsGeneric(y, x, w []float32) {
	n := len(y)
	a, b, c, d := x[:n], x[n:][:n], x[2*n:][:n], x[3*n:][:n]
	for i := range y {
		y[i] = weighStreams(float32(w[0]*a[i]), b[i], c[i], d[i], w[1], w[2], w[3])
	}
}

func mixStreamsGeneric(x, y, post, comb []float32) {
	n := len(y)
	a, b, c, d := x[:n], x[n:][:n], x[2*n:][:n], x[3*n:][:n]
	p, m := (*[Streams]float32)(post), (*[Streams * Streams]float32)(comb)
	for i, y := range y {
		s, t, u, v := a[i], b[i], c[i], d[i]
		a[i] = weighStreams(float32(p[0]*y)+float32(m[0]*s), t, u, v, m[4], m[8], m[12])
		b[i] = weighStreams(float32(p[1]*y)+float32(m[1]*s), t, u, v, m[5], m[9], m[13])
		c[i] = weighStreams(float32(p[2]*y)+float32(m[2]*s), t, u, v, m[6], m[10], m[14])
		d[i] = weighStreams(float32(p[3]*y)+float32(m[3]*s), t, u, v, m[7], m[11], m[15])
	}
}

// weighStreams adds three weighted streams to sum.
func weighStreams(sum, b, c, d, wb, wc, wd float32) float32 {
	sum += float32(wb * b)
	sum += float32(wc * c)
	return sum + float32(wd*d)
}
