package attention

import (
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// 64 values share a scale, no more and no fewer: what is too small for that of
// its block is lost, in another block it stays; rotated values are not rounded.
func TestRoundEntries(t *testing.T) {
	const rotated, tiny = 2, 1.0 / (1 << 20)
	row := slices.Concat(
		slices.Repeat([]float32{1}, 32), slices.Repeat([]float32{tiny}, 32), // one block
		slices.Repeat([]float32{tiny}, 64),
		[]float32{1.0 / 3, tiny / 3},
	)
	want := slices.Clone(row)
	clear(want[32:64])
	pool := kernel.NewPool(1)
	defer pool.Close()
	got := slices.Concat(row, row)
	roundEntries(&nn.State{Pool: pool}, got, len(row), rotated)
	if !slices.Equal(got, slices.Concat(want, want)) {
		t.Errorf("%v\nexpected %v in both rows", got, want)
	}
}

// So do 32 values of an index query or key, of fp4 and turned by Hadamard's matrix.
func TestRoundIndexVectors(t *testing.T) {
	pool := kernel.NewPool(1)
	defer pool.Close()
	const tiny = 1.0 / 64
	x := slices.Concat(slices.Repeat([]float32{1}, 16), slices.Repeat([]float32{tiny}, 16), slices.Repeat([]float32{tiny}, 32))
	want := slices.Clone(x)
	clear(want[16:32])
	pool.Hadamard(x, 64) // which is its own inverse
	n := EntryIndexer{Dim: 64, RoundFP4: true}
	n.round(&nn.State{Pool: pool}, x)
	if !slices.Equal(x, want) {
		t.Errorf("%v, expected %v", x, want)
	}
}
