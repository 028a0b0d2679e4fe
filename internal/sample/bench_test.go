package sample

import "testing"

// One draw from a vocabulary of 150k with logits like those of a model: a few
// likely tokens over a bell of others. Copying the row is part of the time.
func BenchmarkSample(b *testing.B) {
	const vocab = 151936
	logits, row := make([]float32, vocab), make([]float32, vocab)
	noise := Key{Seed: 1}.Noise(Draft)
	for i := range logits {
		for j := range int32(4) {
			logits[i] += float32(noise.Uniform(4*int32(i)+j)*5 - 2.5)
		}
	}
	for i := range int32(10) {
		logits[1000*i+77] += 10 + float32(i)
	}
	mask := make([]uint64, (vocab+63)/64)
	for i := range mask {
		mask[i] = Noise(i).bits(0)
	}
	for _, bench := range []struct {
		name   string
		change func(*Params)
		mask   []uint64
	}{
		{"greedy", func(p *Params) { p.Temperature = 0 }, nil},
		{"plain", func(p *Params) {}, nil},
		{"temperature", func(p *Params) { p.Temperature = 0.7 }, nil},
		{"top-k 50", func(p *Params) { p.TopK = 50 }, nil},
		{"top-p 0.95", func(p *Params) { p.TopP = 0.95 }, nil},
		{"flat top-p 0.95", func(p *Params) { p.TopP, p.Temperature = 0.95, 50 }, nil},
		{"min-p 0.05", func(p *Params) { p.MinP = 0.05 }, nil},
		{"typical-p 0.95", func(p *Params) { p.TypicalP = 0.95 }, nil},
		{"common", func(p *Params) { p.Temperature, p.TopK, p.TopP = 0.7, 40, 0.95 }, nil},
		{"grammar", func(p *Params) {}, mask},
		{"logprobs 20", func(p *Params) { p.LogProbs = 20 }, nil},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var s Sampler
			r := &Row{Params: with(bench.change), Allowed: bench.mask}
			for b.Loop() {
				copy(row, logits)
				r.Position++
				if _, err := s.Sample(row, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
