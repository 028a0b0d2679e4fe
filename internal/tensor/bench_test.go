package tensor

import (
	"math/rand/v2"
	"testing"
)

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
