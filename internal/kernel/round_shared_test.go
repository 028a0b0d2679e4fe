//go:build shared

package kernel

import (
	"math"
	"os"
	"testing"

	"github.com/foretoken/foretoken/internal/fixtures"
	"github.com/foretoken/foretoken/internal/tensor"
)

// The tables of all codes of the shared fixtures are the values that rounding
// knows: all are left as they are, and what lies between two becomes the
// nearer, or the one whose code is even.
func TestGoldenSmallFormats(t *testing.T) {
	for _, f := range smallFormats {
		b, err := os.ReadFile(fixtures.Golden(t, "quant", f.name+".f32"))
		if err != nil {
			t.Fatal(err)
		}
		table := make([]float32, len(b)/4)
		tensor.Decode(tensor.F32, table, b)
		positive := table[:len(table)/2]
		if last := len(positive) - 1; positive[last] != positive[last] { // e4m3 ends with NaN
			positive = positive[:last]
		}
		if len(positive) != len(f.values) {
			t.Fatalf("%s: %d values, want %d", f.name, len(f.values), len(positive))
		}
		eachTier(t, func(t *testing.T) {
			const parts = 16 // of the way to the next value
			var x, want []float32
			for code, v := range positive {
				if float64(v) != f.values[code] {
					t.Fatalf("%s: code %d is %v, want %v", f.name, code, f.values[code], v)
				}
				if code+1 == len(positive) {
					x, want = append(x, v, -v), append(want, v, -v)
					continue
				}
				next := positive[code+1]
				for part := range parts {
					y := v + (next-v)*float32(part)/parts // exact
					nearest := v
					if part > parts/2 || part == parts/2 && code%2 == 1 {
						nearest = next
					}
					x, want = append(x, y, -y), append(want, nearest, -nearest)
				}
			}
			got := append([]float32(nil), x...)
			f.round(NewPool(1), got, len(x))
			for i := range x {
				if math.Float32bits(got[i]) != math.Float32bits(want[i]) && got[i] != want[i] {
					t.Fatalf("%s of %v is %v, want %v", f.name, x[i], got[i], want[i])
				}
			}
		})
	}
}
