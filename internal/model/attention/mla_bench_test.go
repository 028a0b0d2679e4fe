package attention

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
)

// deepseekShape is that of all published models; they differ in their heads.
var deepseekShape = MLAConfig{QueryRank: 1536, Rank: 512, NopeDim: 128, RopeDim: 64, ValueDim: 128}

// decode measures a decoded token's attention in one layer: what depends on the
// context, with the indexer, and the products of each head, without the
// projections of queries and outputs. The cache is filled beforehand.
func decode(b *testing.B, m MLA, context int) {
	const hidden = 7168
	m.MLAConfig, m.Scale = deepseekShape, 0.1
	l := newLatentLayer(b, m, hidden, runtime.GOMAXPROCS(0), context, tensor.BF16)
	l.begin(context-1, 1)
	l.fill(0, context)
	q, latent := l.values(m.Heads*m.HeadDim()), l.values(m.Width())
	x, low, out := l.values(hidden), l.values(m.QueryRank), make([]float32, m.Heads*m.ValueDim)
	l.attend(q, latent, x, low, out)
	b.ResetTimer()
	for b.Loop() {
		l.attend(q, latent, x, low, out)
	}
	read := context * 2 * m.Width()
	if x := l.Indexer; x != nil && context > x.TopK {
		read = x.TopK*2*m.Width() + context*2*x.Dim
	}
	b.ReportMetric(float64(read)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
}

// Absorbed and expanded attention.
func BenchmarkMLADecode(b *testing.B) {
	for _, heads := range []int{16, 128} { // V2-Lite, V3
		for _, form := range []string{"absorbed", "expanded"} {
			b.Run(fmt.Sprintf("%d heads/8k/%s", heads, form), func(b *testing.B) {
				decode(b, MLA{Heads: heads, Expanded: form == "expanded"}, 8<<10)
			})
		}
	}
}

// Sparse attention of V3.2 and what it would be without the indexer.
func BenchmarkDSADecode(b *testing.B) {
	for _, context := range []int{32 << 10, 64 << 10} {
		for _, form := range []string{"sparse", "dense"} {
			b.Run(fmt.Sprintf("%dk/%s", context>>10, form), func(b *testing.B) {
				m := MLA{Heads: 128}
				if form == "sparse" {
					m.Indexer = &Indexer{IndexerConfig: IndexerConfig{Heads: 64, Dim: 128, TopK: 2048}}
				}
				decode(b, m, context)
			})
		}
	}
}
