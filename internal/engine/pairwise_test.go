package engine

import (
	"math/rand/v2"
	"testing"
)

// pairwise returns rows of levels, one level below levels[i] for each factor i,
// so that any two levels of any two factors meet in some row. It is greedy: a row
// is the best of many random ones that begin with a pair not met yet.
func pairwise(rnd *rand.Rand, levels []int) (rows [][]int) {
	type pair struct{ i, a, j, b int }
	open := map[pair]bool{}
	var order []pair // so that nothing depends on the order of a map
	for i := range levels {
		for j := range i {
			for a := range levels[i] {
				for b := range levels[j] {
					p := pair{i, a, j, b}
					open[p] = true
					order = append(order, p)
				}
			}
		}
	}
	met := func(row []int, f func(pair)) {
		for i := range row {
			for j := range i {
				if p := (pair{i, row[i], j, row[j]}); open[p] {
					f(p)
				}
			}
		}
	}
	for _, first := range order {
		if !open[first] {
			continue
		}
		var best []int
		most := 0
		for range 50 {
			row := make([]int, len(levels))
			for i := range row {
				row[i] = rnd.IntN(levels[i])
			}
			row[first.i], row[first.j] = first.a, first.b
			n := 0
			if met(row, func(pair) { n++ }); n > most {
				best, most = row, n
			}
		}
		met(best, func(p pair) { delete(open, p) })
		rows = append(rows, best)
	}
	return rows
}

func TestPairwise(t *testing.T) {
	levels := []int{6, 4, 3, 3, 2}
	rows := pairwise(rand.New(rand.NewPCG(1, 0)), levels)
	if len(rows) > 40 {
		t.Errorf("%d rows, expected at most 40 for pairs that 24 could hold", len(rows))
	}
	for i := range levels {
		for j := range i {
			met := map[[2]int]bool{}
			for _, r := range rows {
				met[[2]int{r[i], r[j]}] = true
			}
			if len(met) != levels[i]*levels[j] {
				t.Errorf("factors %d and %d: %d pairs met, expected %d", i, j, len(met), levels[i]*levels[j])
			}
		}
	}
}
