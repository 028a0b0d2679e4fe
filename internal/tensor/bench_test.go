package tensor

import (
	"math/rand/v2"
	"testing"
)

// One core of an EPYC 9004 (2.6 GHz), billions of values a second: F8 3.5,
// Q8_0 3.1, F32 2.9, BF16, Q4_0 and MXFP4 2.7, Q2_K 2.6, Q4_1 2.4, F4_E2M1 and
// IQ4_NL 2.2, Q4_K 2.1, IQ4_XS 2.0, F16 1.8, Q5_0 to Q6_K 1.1 to 1.5.
func BenchmarkDecode(b *testing.B) {
	const n = 4096 // a row, which stays in the first-level cache
	for _, d := range []DType{F32, F16, BF16, F8E4M3, F4E2M1, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS, MXFP4} {
		b.Run(d.String(), func(b *testing.B) {
			dst, src := make([]float32, n), make([]byte, d.RowBytes(n))
			r := rand.New(rand.NewPCG(1, 2))
			for i := range src {
				src[i] = byte(r.Uint32())
			}
			if d == F16 { // as weights are distributed
				for i := range dst {
					dst[i] = float32(r.NormFloat64() * 0.02)
				}
				if err := Encode(d, src, dst); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				Decode(d, dst, src)
			}
			b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gvalues/s")
		})
	}
}

// As above: F32 1.2, BF16 0.8, Q8_0 0.7, F16 0.4, Q4_1 0.04, Q4_0 0.03.
func BenchmarkEncode(b *testing.B) {
	const n = 4096
	for _, d := range encodable {
		b.Run(d.String(), func(b *testing.B) {
			dst, src := make([]byte, d.RowBytes(n)), make([]float32, n)
			r := rand.New(rand.NewPCG(1, 2))
			for i := range src {
				src[i] = float32(r.NormFloat64())
			}
			for b.Loop() {
				if err := Encode(d, dst, src); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gvalues/s")
		})
	}
}
