package nn

import (
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/kvcache"
)

// Pieces cover all rows, and no piece has more rows of a sequence than asked
// for, wherever sequences begin.
func TestPieces(t *testing.T) {
	for _, test := range []struct {
		spans []int // rows
		want  [][2]int
	}{
		{nil, nil},
		{[]int{3}, [][2]int{{0, 3}}},
		{[]int{4}, [][2]int{{0, 4}}},
		{[]int{5}, [][2]int{{0, 4}, {4, 5}}},
		{[]int{1, 1, 1, 1, 1, 1}, [][2]int{{0, 6}}},
		{[]int{3, 4, 2}, [][2]int{{0, 9}}},
		{[]int{2, 9, 3}, [][2]int{{0, 6}, {6, 10}, {10, 14}}},
	} {
		var step Step
		for _, n := range test.spans {
			step.Add(new(kvcache.Table), 0, make([]int32, n))
		}
		var got [][2]int
		for from, to := range step.Pieces(4) {
			got = append(got, [2]int{from, to})
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("spans of %v rows: %v, want %v", test.spans, got, test.want)
		}
		for from := range step.Pieces(1) { // leaving early is allowed
			if from > 0 {
				break
			}
		}
	}
}
