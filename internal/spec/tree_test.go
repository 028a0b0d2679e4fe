package spec

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// -1 ─┬─ 0: 5 ─┬─ 2: 7
//
//	│        └─ 3: 8 ── 5: 9
//	├─ 1: 6
//	└─ 4: 5 ── 6: 4         a token again
var example = Tree{Tokens: []int32{5, 6, 7, 8, 5, 9, 4}, Parents: []int32{-1, -1, 0, 0, -1, 3, 4}}

func TestTree(t *testing.T) {
	chain := Tree{Tokens: []int32{3, 1, 2}}
	if diff := cmp.Diff([]int32{9, 1, 1, 2, 2, 1, 3, 2}, example.Depths([]int32{9})); diff != "" {
		t.Errorf("depths (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int32{1, 2, 3}, chain.Depths(nil)); diff != "" {
		t.Errorf("depths of a chain (-want +got):\n%s", diff)
	}
	for _, c := range []struct {
		tree  Tree
		row   int
		token int32
		want  int
	}{
		{example, 0, 5, 0},
		{example, 0, 6, 1},
		{example, 0, 7, -1},
		{example, 1, 8, 3},
		{example, 1, 5, -1},
		{example, 2, 8, -1},
		{example, 4, 9, 5},
		{example, 5, 4, 6},
		{example, 7, 4, -1},
		{chain, 0, 3, 0},
		{chain, 1, 1, 1},
		{chain, 0, 1, -1},
		{chain, 3, 2, -1},
		{Tree{}, 0, 0, -1},
	} {
		if got := c.tree.Child(c.row, c.token); got != c.want {
			t.Errorf("child %d of row %d of %v is node %d, expected %d", c.token, c.row, c.tree, got, c.want)
		}
	}
}

func TestMatch(t *testing.T) {
	chain := Tree{Tokens: []int32{3, 1, 2}}
	for _, c := range []struct {
		name string
		tree Tree
		own  []int32 // the target's tokens along the path
		path []int32
		next int32
	}{
		{"nothing drafted", Tree{}, []int32{4}, nil, 4},
		{"none accepted", chain, []int32{1}, nil, 1},
		{"some accepted", chain, []int32{3, 1, 0}, []int32{0, 1}, 0},
		{"all accepted, and a bonus", chain, []int32{3, 1, 2, 9}, []int32{0, 1, 2}, 9},
		{"a branch", example, []int32{5, 8, 9, 0}, []int32{0, 3, 5}, 0},
		{"a leaf", example, []int32{6, 5}, []int32{1}, 5},
		{"equal siblings: the first", example, []int32{5, 4}, []int32{0}, 4},
	} {
		at := 0
		v, err := new(Verifier).Match(&c.tree, func(int) (int32, error) { at++; return c.own[at-1], nil })
		if err != nil || v.Next != c.next || len(v.Path) != len(c.path) || len(v.Path) > 0 && !cmp.Equal(v.Path, c.path) {
			t.Errorf("%s: path %v, next %d, error %v, expected %v, %d", c.name, v.Path, v.Next, err, c.path, c.next)
		}
		if at != len(c.own) {
			t.Errorf("%s: %d tokens of the target asked for, expected %d", c.name, at, len(c.own))
		}
	}
}

func TestErrorsOfTheTargetEndARule(t *testing.T) {
	broken := errors.New("logit of token 3 is NaN")
	d := &Draft{Tree: Tree{Tokens: []int32{0, 0}}, Q: []Row{weights(1), weights(1)}}
	p := func(row int) (Row, error) {
		if row == 1 {
			return Row{}, broken
		}
		return weights(1), nil
	}
	draws := NewCoins(sampleKey)
	v := new(Verifier)
	_, match := v.Match(&d.Tree, func(row int) (int32, error) { _, err := p(row); return 0, err })
	_, rejection := v.Rejection(d, p, draws)
	_, block := v.Block(d, p, draws)
	for rule, err := range map[string]error{"match": match, "rejection": rejection, "block": block} {
		if err != broken {
			t.Errorf("%s: error %v, expected %v", rule, err, broken)
		}
	}
	d.Tree = example
	if _, err := v.Block(d, p, draws); err == nil || err.Error() != "block verification got a tree, expected a chain" {
		t.Errorf("block of a tree: error %v", err)
	}
}

func TestCheckAndTruncate(t *testing.T) {
	for _, c := range []struct {
		draft Draft
		want  string
	}{
		{Draft{}, ""},
		{Draft{Tree: example}, ""},
		{Draft{Tree: Tree{Tokens: []int32{1, 10}}}, "draft token 1 is 10, expected 0 to 9"},
		{Draft{Tree: Tree{Tokens: []int32{-1}}}, "draft token 0 is -1, expected 0 to 9"},
		{Draft{Tree: Tree{Tokens: []int32{1, 2}, Parents: []int32{-1}}}, "draft has 1 parents, expected one for each of 2 tokens"},
		{Draft{Tree: Tree{Tokens: []int32{1, 2}, Parents: []int32{-1, 1}}}, "draft token 1 has parent 1, expected an earlier one, or -1"},
		{Draft{Tree: Tree{Tokens: []int32{1}, Parents: []int32{-2}}}, "draft token 0 has parent -2, expected an earlier one, or -1"},
		{Draft{Tree: Tree{Tokens: []int32{1}}, Q: make([]Row, 3)}, "draft has 3 distributions, expected one for each of 2 rows at most"},
		{Draft{Tree: Tree{Tokens: []int32{1}}, Confidence: []float64{}}, "draft has 0 confidences, expected one for each of 1 tokens"},
		{Draft{Tree: Tree{Tokens: []int32{1}}, Confidence: []float64{math.NaN()}}, "confidence of draft token 0 is NaN, expected 0 to 1"},
		{Draft{Tree: Tree{Tokens: []int32{1, 2}}, Peak: []float64{1, 1.01}}, "peak of draft token 1 is 1.01, expected 0 to 1"},
	} {
		got := ""
		if err := c.draft.Check(10); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("check of %v is %q, expected %q", c.draft, got, c.want)
		}
	}

	d := Draft{Tree: example, Q: make([]Row, 6), Confidence: make([]float64, 7)}
	for _, n := range []int{8, 3, 0} {
		d.Truncate(n)
		want := min(n, 7)
		if err := d.Check(10); err != nil || d.Len() != want || len(d.Parents) != want || len(d.Confidence) != want || len(d.Q) != min(6, n+1) {
			t.Errorf("truncated to %d: %+v, error %v", n, d, err)
		}
	}
}
