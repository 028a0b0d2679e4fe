package spec

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// branched is a tree with a distribution after every row, of one token of the
// row's number.
//
//	anchor ─┬─ 0 ─┬─ 2 ── 5
//	        │     └─ 3
//	        └─ 1 ─── 4
func branched() *Draft {
	d := &Draft{
		Tree:       Tree{Tokens: []int32{10, 11, 12, 13, 14, 15}, Parents: []int32{-1, -1, 0, 0, 1, 2}},
		Confidence: []float64{0, 1. / 8, 2. / 8, 3. / 8, 4. / 8, 5. / 8},
		Peak:       []float64{0, 1. / 16, 2. / 16, 3. / 16, 4. / 16, 5. / 16},
	}
	for row := range 7 {
		d.Q = append(d.Q, Row{IDs: []int32{int32(row)}, W: []float64{1}, Total: 1})
	}
	return d
}

func TestKeep(t *testing.T) {
	for _, c := range []struct {
		keep    string
		parents []int32
		nodes   []int32
	}{
		{"111111", []int32{-1, -1, 0, 0, 1, 2}, []int32{0, 1, 2, 3, 4, 5}},
		{"010010", []int32{-1, 0}, []int32{1, 4}},
		{"101001", []int32{-1, 0, 1}, []int32{0, 2, 5}},
		{"110100", []int32{-1, -1, 0}, []int32{0, 1, 3}},
		{"000000", []int32{}, nil},
	} {
		for _, rows := range []int{7, 4, 1, 0} {
			d := branched()
			d.Q = d.Q[:rows]
			var keep []bool
			for _, x := range c.keep {
				keep = append(keep, x == '1')
			}
			d.Keep(keep)
			if diff := cmp.Diff(c.parents, d.Parents); diff != "" {
				t.Errorf("%s: parents (-want +got):\n%s", c.keep, diff)
			}
			memory := map[*float64]bool{}
			for r, q := range d.Q[:cap(d.Q)][:rows] {
				if memory[&q.W[0]] {
					t.Errorf("%s: row %d has the memory of another", c.keep, r)
				}
				memory[&q.W[0]] = true
			}
			for i, node := range c.nodes {
				if d.Tokens[i] != 10+node || d.Confidence[i] != float64(node)/8 || d.Peak[i] != float64(node)/16 {
					t.Errorf("%s: node %d is token %d, confidence %v, peak %v", c.keep, i, d.Tokens[i], d.Confidence[i], d.Peak[i])
				}
				q, drawn := d.drawn(i + 1)
				if want := int(node)+1 < rows; drawn != want || drawn && q.IDs[0] != node+1 {
					t.Errorf("%s: %d rows: children of node %d are drawn: %v, of %v", c.keep, rows, i, drawn, q.IDs)
				}
			}
			if d.Len() != len(c.nodes) || len(d.Confidence) != d.Len() || len(d.Peak) != d.Len() || d.Check(100) != nil {
				t.Errorf("%s: %d tokens, %d confidences, %d peaks, %v", c.keep, d.Len(), len(d.Confidence), len(d.Peak), d.Check(100))
			}
			if q, drawn := d.drawn(0); drawn != (rows > 0) || drawn && q.IDs[0] != 0 {
				t.Errorf("%s: the anchor's children are drawn: %v", c.keep, drawn)
			}
		}
	}
}

func TestKeepOfChains(t *testing.T) {
	for n := range 4 {
		d := &Draft{Tree: Tree{Tokens: []int32{7, 8, 9}}, Q: make([]Row, 3), Peak: []float64{.1, .2, .3}}
		keep := make([]bool, 3)
		for i := range n {
			keep[i] = true
		}
		d.Keep(keep)
		if d.Len() != n || d.Parents != nil || d.Confidence != nil || len(d.Peak) != n || len(d.Q) != min(n+1, 3) {
			t.Errorf("the first %d kept: %+v", n, d)
		}
	}
}

// Nodes of trees are admitted in order of their path's probability.
func TestTreeAdmission(t *testing.T) {
	d := branched()
	d.Q = nil
	// Paths: 0.5, 0.4; 0.25, 0.05, 0.36; 0.025.
	confidence := []float64{.5, .4, .5, .1, .9, .1}
	for budget, want := range []string{"000000", "100000", "110000", "110010", "111010", "111110", "111111", "111111"} {
		a := new(Admission)
		a.Begin(2)
		a.Add(new(Draft), nil, 0)
		a.Add(d, confidence, 0)
		a.Top(budget)
		if got := flags(a.Keep(1)); got != want || a.rows != 4+min(budget, 6) {
			t.Errorf("budget %d: kept %s, expected %s, in %d rows", budget, got, want, a.rows)
		}
		if budget == 3 && math.Abs(a.Tokens()-5.26) > 1e-12 {
			t.Errorf("%v tokens are expected", a.Tokens())
		}
	}
	// What must be is there without being worth it.
	a := new(Admission)
	a.Begin(0)
	a.Add(d, confidence, 1)
	if theta := a.Greedy(func(rows int) float64 { return 1 / float64(rows*rows) }); flags(a.Keep(0)) != "100000" || theta != 1.5/4 {
		t.Errorf("kept %s, theta %v", flags(a.Keep(0)), theta)
	}
}

// A drawn tree is admitted level by level, first children first.
func TestDrawnTreesAreAdmittedInTheOrderOfTheirNoise(t *testing.T) {
	confidence := []float64{.5, .9, .9, .8, .9, .9}
	for budget, want := range []string{"000000", "100000", "110000", "111000", "111010", "111110", "111111"} {
		a := new(Admission)
		a.Begin(0)
		a.Add(branched(), confidence, 0)
		a.Top(budget)
		if got := flags(a.Keep(0)); got != want || !a.Drawn() {
			t.Errorf("budget %d: kept %s, expected %s", budget, got, want)
		}
	}
}

func flags(keep []bool) (s string) {
	for _, k := range keep {
		s += fmt.Sprint(map[bool]int{true: 1}[k])
	}
	return s
}
