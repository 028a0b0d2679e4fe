package spec

// A Template is a static tree of ranks: node i is its parent's ranks[i]-th
// likeliest child, counted from 0, or the ranks[i]-th drawn. Nodes are in order of depth, so
// that a drafter computes a level in one pass.
type Template struct {
	parents []int32
	ranks   []int32
	levels  []int32 // the first node of each level, and the number of nodes
}

// Eagle1 is the tree of EAGLE-1 (2401.15077, figure 7 and its code): 25 nodes
// of five levels.
var Eagle1 = newTemplate(
	"0", "1", "2", "3",
	"00", "01", "02", "10", "11", "20", "21", "30",
	"000", "001", "002", "010", "011", "020", "021", "100",
	"0000", "0001", "0002",
	"00000", "00001",
)

// newTemplate makes a template of paths of ranks, by depth and then in order,
// parents included.
func newTemplate(paths ...string) *Template {
	t := new(Template)
	index := map[string]int32{"": -1}
	for i, path := range paths {
		if len(path) > len(t.levels) {
			t.levels = append(t.levels, int32(i))
		}
		last := len(path) - 1
		index[path] = int32(i)
		t.parents = append(t.parents, index[path[:last]])
		t.ranks = append(t.ranks, int32(path[last]-'0'))
	}
	t.levels = append(t.levels, int32(len(paths)))
	return t
}

// Len returns the number of nodes.
func (t *Template) Len() int { return len(t.parents) }

// Depth returns the number of levels.
func (t *Template) Depth() int { return len(t.levels) - 1 }

// Node returns the parent of a node, -1 for the anchor, and its rank among the
// parent's children.
func (t *Template) Node(i int) (parent, rank int) { return int(t.parents[i]), int(t.ranks[i]) }

// Level returns the range of nodes of a depth, from 1: first to end-1.
func (t *Template) Level(depth int) (first, end int) {
	return int(t.levels[depth-1]), int(t.levels[depth])
}

// Children returns how many children a row has.
func (t *Template) Children(row int) (n int) {
	for _, p := range t.parents {
		if int(p) == row-1 {
			n++
		}
	}
	return n
}
