package nn

import (
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Nodes have positions by depth, slots by number, and the slots of their
// ancestors as path.
func TestDraftOfATree(t *testing.T) {
	var step Step
	table := new(kvcache.Table)
	step.Add(new(kvcache.Table), 3, []int32{1, 2})
	step.Add(table, 10, []int32{5, 6})
	//	anchor 11 ─┬─ 0 ─┬─ 1 ─── 4
	//	           │     └─ 3
	//	           └─ 2
	step.Draft([]int32{-1, 0, -1, 0, 1}, []int32{20, 21, 22, 23, 24})
	step.Add(new(kvcache.Table), 7, []int32{8})
	want := Step{
		Tokens:    []int32{1, 2, 5, 6, 20, 21, 22, 23, 24, 8},
		Positions: []int32{3, 4, 10, 11, 12, 13, 12, 13, 14, 7},
		Seqs:      []int32{0, 0, 1, 1, 1, 1, 1, 1, 1, 2},
		Slots:     []int32{3, 4, 10, 11, 12, 13, 14, 15, 16, 7},
		Paths:     [][]int32{nil, nil, nil, nil, nil, nil, {14}, {12, 15}, {12, 13, 16}, nil},
		Spans:     []Span{{0, 2, step.Spans[0].Table}, {2, 9, table}, {9, 10, step.Spans[2].Table}},
	}
	diff(t, "step", &step, &want)
}

// A tree may come in several steps: rows are those it has in one.
func TestDraftOfATreeInParts(t *testing.T) {
	parents, tokens := []int32{-1, -1, 0, 1, 1, 2, 4, 4}, []int32{20, 21, 22, 23, 24, 25, 26, 27}
	var whole, part Step
	whole.Add(nil, 40, []int32{9})
	whole.Draft(parents, tokens)
	for from := range parents {
		for to := from + 1; to <= len(parents); to++ {
			part.Reset()
			part.Add(nil, 41, nil)
			part.Draft(parents[:to], tokens[from:to])
			if rows := part.Rows(); rows != to-from || part.Spans[0].To != rows {
				t.Fatalf("nodes %d to %d are %d rows, span %v", from, to-1, rows, part.Spans[0])
			}
			for i := range part.Rows() {
				slot, path := part.Positions[i], []int32(nil)
				if part.Slots != nil {
					slot, path = part.Slots[i], part.Paths[i]
				}
				row := 1 + from + i
				if part.Tokens[i] != whole.Tokens[row] || part.Positions[i] != whole.Positions[row] || slot != whole.Slots[row] || !slices.Equal(path, whole.Paths[row]) {
					t.Errorf("node %d of nodes %d to %d is token %d at %d in slot %d with path %v, in one step %d at %d in slot %d with path %v", from+i, from, to-1,
						part.Tokens[i], part.Positions[i], slot, path, whole.Tokens[row], whole.Positions[row], whole.Slots[row], whole.Paths[row])
				}
			}
		}
	}
}

// A chain, said to be one or not, is added tokens; and a step that had a tree
// is none after Reset.
func TestDraftOfAChain(t *testing.T) {
	for name, parents := range map[string][]int32{"nil": nil, "parents": {-1, 0, 1}} {
		var added, drafted Step
		added.Add(nil, 10, []int32{5, 6, 20, 21, 22})
		drafted.Add(nil, 0, []int32{1})
		drafted.Draft([]int32{-1, -1}, []int32{1, 2})
		if drafted.Paths == nil {
			t.Error("two children of the anchor have no paths")
		}
		drafted.Reset()
		drafted.Add(nil, 10, []int32{5, 6})
		drafted.Draft(parents, []int32{20, 21, 22})
		diff(t, name, &drafted, &added)
	}
}

// diff compares what is exported of steps.
func diff(t *testing.T, name string, got, want *Step) {
	t.Helper()
	tables := cmp.Comparer(func(a, b *kvcache.Table) bool { return a == b })
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Step{}), tables); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestDraftAllocatesNothing(t *testing.T) {
	var step Step
	parents, tokens := []int32{-1, -1, 0, 1, 1, 2, 4, 4}, make([]int32, 8)
	build := func() {
		step.Reset()
		for range 3 {
			step.Add(nil, 10, tokens[:1])
			step.Draft(parents, tokens)
		}
	}
	build()
	if n := testing.AllocsPerRun(20, build); n != 0 {
		t.Errorf("a step with trees allocates %v times", n)
	}
}
