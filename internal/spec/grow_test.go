package spec

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The tree of EAGLE-1, in the notation of its figure: ranks along the path.
func TestEagle1Template(t *testing.T) {
	var paths []string
	if Eagle1.Len() != 25 || Eagle1.Depth() != 5 {
		t.Fatalf("%d nodes, depth %d, expected 25, 5", Eagle1.Len(), Eagle1.Depth())
	}
	children := make([]int, Eagle1.Len()+1) // of each row
	for i := range Eagle1.Len() {
		parent, rank := Eagle1.Node(i)
		path := string(rune('0' + rank))
		if parent >= 0 {
			path = paths[parent] + path
		}
		paths = append(paths, path)
		children[parent+1]++
		if first, end := Eagle1.Level(len(path)); i < first || i >= end {
			t.Errorf("node %d of depth %d is not in its level, %d to %d", i, len(path), first, end)
		}
	}
	for row, n := range children {
		if got := Eagle1.Children(row); got != n {
			t.Errorf("row %d has %d children, expected %d", row, got, n)
		}
	}
	want := "0 1 2 3 00 01 02 10 11 20 21 30 000 001 002 010 011 020 021 100 0000 0001 0002 00000 00001"
	if got := strings.Join(paths, " "); got != want {
		t.Errorf("paths are\n%s, expected\n%s", got, want)
	}
}

// candidates are log-probabilities of a random row, best first, often tied.
func candidates(t *rapid.T, n int) (top []Candidate) {
	for i := range n {
		lp := rapid.SampledFrom([]float32{0, 0, -0.25, -1, -1.5, -3, -20, float32(math.Inf(-1))}).Draw(t, "log-probability")
		top = append(top, Candidate{int32(10*n + i), lp})
	}
	slices.SortStableFunc(top, func(a, b Candidate) int { return cmp.Compare(b.LogProb, a.LogProb) })
	return top
}

// EAGLE-2: against an algorithm that notes all, sorts all and keeps the best.
func TestDynamicTree(t *testing.T) {
	var g Dynamic
	d := new(Draft)
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(1, 4).Draw(t, "k")
		type noted struct {
			token  int32
			parent int
			score  float64
		}
		var all []noted
		note := func(parent int, score float64, top []Candidate) {
			for _, c := range top {
				if c.LogProb > float32(math.Inf(-1)) {
					all = append(all, noted{c.Token, parent, score + float64(c.LogProb)})
				}
			}
		}
		first := func(from, n int) (best []int) {
			for i := from; i < len(all); i++ {
				best = append(best, i)
			}
			slices.SortStableFunc(best, func(a, b int) int { return cmp.Compare(all[b].score, all[a].score) })
			return best[:min(n, len(best))]
		}
		top := candidates(t, k)
		g.Start(top)
		note(-1, 0, top)
		frontier := first(0, k)
		for range rapid.IntRange(0, 4).Draw(t, "expansions") {
			var tops [][]Candidate
			from := len(all)
			for i, node := range g.Frontier() {
				if int(node) != frontier[i] {
					t.Fatalf("frontier is %v, expected %v", g.Frontier(), frontier)
				}
				if token, parent := g.Node(node); token != all[node].token || int(parent) != all[node].parent {
					t.Fatalf("node %d is token %d after %d, expected %v", node, token, parent, all[node])
				}
				tops = append(tops, candidates(t, k))
				note(int(node), all[node].score, tops[i])
			}
			frontier = first(from, k)
			g.Extend(tops, k)
		}

		n := rapid.IntRange(0, len(all)+1).Draw(t, "nodes")
		g.Draft(d, n)
		if err := d.Check(1000); err != nil {
			t.Fatal(err)
		}
		want := first(0, n)
		slices.Sort(want)
		if d.Len() != len(want) {
			t.Fatalf("%d nodes, expected %d", d.Len(), len(want))
		}
		for i, j := range want {
			if d.Tokens[i] != all[j].token {
				t.Fatalf("node %d is token %d, expected %d", i, d.Tokens[i], all[j].token)
			}
			parent, above := -1, 0.0
			if all[j].parent >= 0 {
				parent, above = slices.Index(want, all[j].parent), all[all[j].parent].score
			}
			if d.Parent(i) != parent || parent < 0 && all[j].parent >= 0 {
				t.Fatalf("node %d has parent %d, expected %d", i, d.Parent(i), parent)
			}
			if c := math.Exp(all[j].score - above); d.Confidence[i] != c {
				t.Fatalf("node %d has confidence %v, expected %v", i, d.Confidence[i], c)
			}
		}
	})
}

// When the draft is sure, log-probabilities round to 0 and a child ties with
// its parent: the parent is kept.
func TestDynamicTreeKeepsParentsOfTies(t *testing.T) {
	var g Dynamic
	d := new(Draft)
	g.Start([]Candidate{{1, 0}, {2, -9}})
	for range 3 {
		g.Extend([][]Candidate{{{3, 0}, {4, -9}}, {{5, 0}, {6, -9}}}, 2)
	}
	g.Draft(d, 4)
	if diff := gocmp.Diff(Tree{[]int32{1, 3, 3, 3}, []int32{-1, 0, 1, 2}}, d.Tree); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

// DDTree: the nodes are the likeliest of all paths, likeliest first.
func TestBestFirstTree(t *testing.T) {
	var g BestFirst
	d := new(Draft)
	rapid.Check(t, func(t *rapid.T) {
		var positions [][]Candidate
		for range rapid.IntRange(0, 3).Draw(t, "positions") {
			positions = append(positions, candidates(t, rapid.IntRange(0, 4).Draw(t, "candidates")))
		}
		all := []float64{}
		level := []float64{0}
		for _, top := range positions {
			var below []float64
			for _, above := range level {
				for _, c := range top {
					if score := above + float64(c.LogProb); score > math.Inf(-1) {
						below = append(below, score)
					}
				}
			}
			all = append(all, below...)
			level = below
		}
		slices.SortFunc(all, func(a, b float64) int { return cmp.Compare(b, a) })

		n := rapid.IntRange(0, len(all)+1).Draw(t, "nodes")
		g.Draft(d, positions, n)
		if err := d.Check(1000); err != nil {
			t.Fatal(err)
		}
		got := make([]float64, d.Len())
		depths := d.Depths(nil)
		distinct := map[[2]int32]bool{}
		for i, token := range d.Tokens {
			top := positions[depths[i]-1]
			c := top[slices.IndexFunc(top, func(c Candidate) bool { return c.Token == token })]
			got[i] = float64(c.LogProb)
			if p := d.Parent(i); p >= 0 {
				got[i] += got[p]
			}
			if d.Confidence[i] != math.Exp(float64(c.LogProb)) {
				t.Fatalf("node %d has confidence %v, expected e^%v", i, d.Confidence[i], c.LogProb)
			}
			distinct[[2]int32{int32(d.Parent(i)), token}] = true
		}
		if diff := gocmp.Diff(all[:min(n, len(all))], got); diff != "" {
			t.Fatalf("scores of the nodes (-best +got):\n%s", diff)
		}
		if len(distinct) != d.Len() {
			t.Fatalf("%d nodes, %d of them distinct", d.Len(), len(distinct))
		}
	})
}

// The order in one picture: two positions, four nodes.
func TestBestFirstOrder(t *testing.T) {
	lp := func(p float64) float32 { return float32(math.Log(p)) }
	d := new(Draft)
	new(BestFirst).Draft(d, [][]Candidate{
		{{1, lp(0.5)}, {2, lp(0.4)}},
		{{3, lp(0.6)}, {4, lp(0.4)}},
	}, 4)
	// 1: .5, 2: .4, 1·3: .3, 2·3: .24, 1·4: .2
	if diff := gocmp.Diff(Tree{[]int32{1, 2, 3, 3}, []int32{-1, -1, 0, 1}}, d.Tree); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}
