package engine

import (
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/spec/adapt"
)

// A model whose steps are long is measured where it says most, before the time is up.
func TestProfileOrder(t *testing.T) {
	grid := profileGrid(128)
	var rows []int
	times := map[int]int{}
	for _, i := range profileOrder(grid) {
		rows = append(rows, grid[i])
		times[grid[i]]++
	}
	want := []int{1, 8, 32, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 28, 32, 1, 2}
	if !slices.Equal(rows[:len(want)], want) {
		t.Errorf("measured first are %v, expected %v", rows[:len(want)], want)
	}
	for n := 1; n <= 128; n++ {
		want := 0
		switch {
		case n <= 32:
			want = 2
		case slices.Contains(adapt.Grid(128), n):
			want = 1
		}
		if coarse(n) {
			want++
		}
		if n <= 32 && slices.Contains(adapt.Grid(128), n) {
			want++
		}
		if times[n] != want {
			t.Errorf("%d rows are measured %d times, expected %d", n, times[n], want)
		}
	}
	if grid := profileGrid(5); !slices.Equal(grid, []int{1, 2, 3, 4, 5}) {
		t.Errorf("up to five rows the grid is %v", grid)
	}
}
