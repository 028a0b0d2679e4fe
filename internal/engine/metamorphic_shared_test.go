//go:build shared

package engine

import (
	"testing"

	"github.com/foretoken/foretoken/internal/fixtures"
)

// 200 requests to a golden model of every family, and to the forms of
// attention and of the cache that an option chooses.
func TestMetamorphicGolden(t *testing.T) {
	const short, long = 100, 270 // prompts of a few pages, which have 32 or 128 positions
	for _, tc := range []struct {
		name, model    string
		base           Options
		configurations int
		prompt, output int
	}{
		{"llama", "llama", Options{MaxModelLen: 256}, 10, short, 36},
		{"qwen3moe", "qwen3moe", Options{MaxModelLen: 256}, 10, short, 36},
		{"gemma3", "gemma3", Options{MaxModelLen: 256}, 10, short, 36},
		{"deepseek2", "deepseek2", Options{MaxModelLen: 256}, 10, short, 36},
		{"deepseek2 expanded", "deepseek2", Options{MaxModelLen: 256, MLA: "expanded"}, 3, short, 36},
		{"deepseek32", "deepseek32", Options{MaxModelLen: 256}, 10, short, 36},
		{"deepseek32 rounded", "deepseek32", Options{MaxModelLen: 256, RoundCache: true}, 3, short, 36},
		{"deepseek4", "deepseek4", Options{MaxModelLen: 640}, 10, long, 36},
		{"deepseek4 rounded", "deepseek4", Options{MaxModelLen: 640, RoundCache: true}, 3, long, 36},
		{"float32", "llama", Options{MaxModelLen: 256, DType: "float32"}, 3, short, 36},
		{"q8_0 cache", "qwen3", Options{MaxModelLen: 256, KVCacheDType: "q8_0"}, 3, short, 36},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var sum Stats
			subject{
				path: fixtures.Golden(t, "models", tc.model, "model.gguf"), base: tc.base,
				configurations: tc.configurations, requests: 20, prompt: tc.prompt, output: tc.output,
			}.test(t, &sum)
			enough(t, sum)
		})
	}
}
