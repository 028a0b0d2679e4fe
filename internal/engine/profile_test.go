package engine

import (
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/spec/adapt"
)

// A model whose steps are long is measured where it says most, before the time is up.
func TestProfileOrder(t *testing.T) {
	grid := adapt.Grid(128)
	var rows []int
	times := map[int]int{}
	for _, i := range profileOrder(grid) {
		rows = append(rows, grid[i])
		times[grid[i]]++
	}
	if want := []int{1, 8, 32, 1, 2, 3}; !slices.Equal(rows[:len(want)], want) {
		t.Errorf("measured first are %v, expected %v", rows[:len(want)], want)
	}
	for _, n := range grid {
		want := 2
		if n <= 32 {
			want = 3
		}
		if coarse(n) {
			want++
		}
		if times[n] != want {
			t.Errorf("%d rows are measured %d times, expected %d", n, times[n], want)
		}
	}
}
