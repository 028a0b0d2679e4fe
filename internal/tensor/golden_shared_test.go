//go:build shared

package tensor

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/foretoken/foretoken/internal/fixtures"
)

// golden reads a file of the shared fixtures (quant/ of their README).
func golden(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(fixtures.Golden(t, "quant", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func goldenFloats(t *testing.T, name string) []float32 {
	b := golden(t, name)
	x := make([]float32, len(b)/4)
	Decode(F32, x, b)
	return x
}

func byName(t *testing.T, name string) DType {
	for d := F64; d <= MXFP4; d++ {
		if d.String() == name {
			return d
		}
	}
	t.Fatalf("no dtype %s", name)
	return Invalid
}

func TestGoldenBlocks(t *testing.T) {
	var meta struct {
		Types map[string]struct {
			PerBlock   int     `json:"values_per_block"`
			BlockBytes int     `json:"bytes_per_block"`
			RMS        float64 `json:"rms_error"`
		}
	}
	if err := json.Unmarshal(golden(t, "meta.json"), &meta); err != nil {
		t.Fatal(err)
	}
	if len(meta.Types) != 15 {
		t.Errorf("%d types, want 15", len(meta.Types))
	}
	input := goldenFloats(t, "input.f32")
	for name, m := range meta.Types {
		t.Run(name, func(t *testing.T) {
			d := byName(t, name)
			if d.BlockLen() != m.PerBlock || d.BlockBytes() != m.BlockBytes {
				t.Fatalf("blocks of %d values and %d bytes, want %d and %d", d.BlockLen(), d.BlockBytes(), m.PerBlock, m.BlockBytes)
			}
			want := goldenFloats(t, name+".f32")
			got := make([]float32, len(want))
			Decode(d, got, golden(t, name+".bin"))
			for i := range want {
				if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
					t.Fatalf("value %d is %v, want %v", i, got[i], want[i])
				}
			}

			coded := make([]byte, d.RowBytes(len(input)))
			if err := Encode(d, coded, input); err != nil {
				switch d {
				case F16, BF16, Q8_0, Q4_0, Q4_1:
					t.Fatal(err)
				}
				return // no encoder
			}
			Decode(d, got, coded)
			var sum float64
			for i := range input {
				e := float64(got[i]) - float64(input[i])
				sum += e * e
			}
			rms := math.Sqrt(sum / float64(len(input)))
			t.Logf("rms error %.4g, reference %.4g", rms, m.RMS)
			if rms > 1.05*m.RMS {
				t.Errorf("rms error %.4g, want at most 1.05 × %.4g", rms, m.RMS)
			}
		})
	}
}

func TestGoldenTables(t *testing.T) {
	for file, table := range map[string][]float32{"e4m3.f32": f8e4m3[:], "e8m0.f32": f8e8m0[:], "e2m1.f32": f4e2m1[:]} {
		want := goldenFloats(t, file)
		if len(want) != len(table) {
			t.Fatalf("%s: %d entries, want %d", file, len(want), len(table))
		}
		for c := range want {
			if !same(table[c], want[c]) {
				t.Errorf("%s: code %#02x is %v, want %v", file, c, table[c], want[c])
			}
		}
	}
}
