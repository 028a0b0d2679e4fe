package attention

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// An nsaExample is one sequence and what attention makes of it.
type nsaExample struct {
	NSAConfig
	heads, kvHeads, keyDim, valueDim int
	tokens                           int
	q, k, v                          []float32 // [tokens, heads or kvHeads, dim]
	gates                            []float32 // [tokens, heads, 3]
	keyMLP, valueMLP                 *mlpExample
}

// An mlpExample is a BlockMLP.
type mlpExample struct {
	inner                     int
	positions, w1, b1, w2, b2 []float32
}

// nsaResults are those of an example, with all that leads to them.
type nsaResults struct {
	keys, values                    []float32 // [blocks, kvHeads, dim], compressed
	scores                          []float32 // [kvHeads, tokens, blocks], before some are taken anyway
	selected                        []int32   // [kvHeads, tokens, Select], ascending, then -1
	compressed, chosen, window, out []float32 // [tokens, heads, valueDim]
}

// compressedBlocks is how many are complete, selectBlocks how many begin.
func (e *nsaExample) compressedBlocks() int {
	return max(0, (e.tokens-e.CompressBlock)/e.Stride+1)
}
func (e *nsaExample) selectBlocks() int { return (e.tokens + e.SelectBlock - 1) / e.SelectBlock }

func (e *nsaExample) scale() float64 { return 1 / math.Sqrt(float64(e.keyDim)) }

// newNSAExample draws one; inner is that of the MLPs, 0: blocks become means.
func newNSAExample(seed uint64, c NSAConfig, heads, kvHeads, keyDim, valueDim, tokens, inner int) *nsaExample {
	r := rand.New(rand.NewPCG(seed, 1))
	draw := func(n int, deviation float64) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(deviation * r.NormFloat64())
		}
		return v
	}
	e := &nsaExample{
		NSAConfig: c, heads: heads, kvHeads: kvHeads, keyDim: keyDim, valueDim: valueDim, tokens: tokens,
		q: draw(tokens*heads*keyDim, 2), k: draw(tokens*kvHeads*keyDim, 1), v: draw(tokens*kvHeads*valueDim, 1),
		gates: draw(tokens*heads*3, 1),
	}
	for i, g := range e.gates {
		e.gates[i] = float32(1 / (1 + math.Exp(-float64(g))))
	}
	mlp := func(dim int) *mlpExample {
		n := c.CompressBlock * dim
		return &mlpExample{
			inner: inner, positions: draw(n, 1),
			w1: draw(inner*n, 1/math.Sqrt(float64(n))), b1: draw(inner, 1), w2: draw(dim*inner, 2/math.Sqrt(float64(inner))), b2: draw(dim, 1),
		}
	}
	if inner > 0 {
		e.keyMLP, e.valueMLP = mlp(keyDim), mlp(valueDim)
	}
	return e
}

// nsaMistakes are those that implementations made or could make.
var nsaMistakes = []string{
	"sum instead of mean",
	"no position table",
	"values of a block lie channel by channel",
	"relu instead of silu",
	"compressed blocks follow each other without overlap",
	"compressed blocks are seen a position early",
	"compressed blocks are seen a position late",
	"compressed blocks are seen when they begin",
	"scores are shifted by an entry",
	"scores count entries down",
	"scores without overlap",
	"scores are logits",
	"scores are those of one head",
	"scores are the greatest of the heads",
	"blocks that are always taken are not counted",
	"the first block is not always taken",
	"only a row's own block is always taken",
	"one block less is selected",
	"the lowest scores are selected",
	"selected blocks are not cut at the row",
	"selected blocks are cut before the row",
	"selected blocks shift by one",
	"the window is one longer",
	"the window is one shorter",
	"the window leaves the row out",
	"one softmax over all branches",
	"softmax is not scaled",
	"gates of selected blocks and window are exchanged",
	"gates of compressed and selected blocks are exchanged",
	"gates of a branch lie together",
	"key-value heads are interleaved",
}

// reference computes the results in float64 as the paper defines them, with a
// mistake or none ("").
func (e *nsaExample) reference(mistake string) *nsaResults {
	w := &nsaResults{selected: make([]int32, e.kvHeads*e.tokens*e.Select), scores: make([]float32, e.kvHeads*e.tokens*e.selectBlocks())}
	w.keys = e.compress(e.k, e.keyDim, e.keyMLP, mistake)
	w.values = e.compress(e.v, e.valueDim, e.valueMLP, mistake)
	for t := range e.tokens {
		seen := e.seen(t, mistake)
		chosen := make([][]int, e.kvHeads)
		for g := range e.kvHeads {
			scores := e.scores(w, t, g, seen, mistake)
			blocks := e.choose(scores, t, mistake)
			for j, s := range scores {
				w.scores[(g*e.tokens+t)*e.selectBlocks()+j] = float32(s)
			}
			to := w.selected[(g*e.tokens+t)*e.Select:][:e.Select]
			for i := range to {
				to[i] = -1
				if i < len(blocks) {
					to[i] = int32(blocks[i])
				}
			}
			chosen[g] = e.positions(blocks, t, mistake)
		}
		window := e.windowOf(t, mistake)
		for h := range e.heads {
			e.branches(w, t, h, upTo(seen), chosen[e.group(h, mistake)], window, mistake)
		}
	}
	return w
}

func upTo(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// group is the key-value head of a query head.
func (e *nsaExample) group(h int, mistake string) int {
	if mistake == "key-value heads are interleaved" {
		return h % e.kvHeads
	}
	return h / (e.heads / e.kvHeads)
}

// compress is [blocks, kvHeads, dim] of x [tokens, kvHeads, dim].
func (e *nsaExample) compress(x []float32, dim int, mlp *mlpExample, mistake string) (out []float32) {
	stride := e.Stride
	if mistake == "compressed blocks follow each other without overlap" {
		stride = e.CompressBlock
	}
	for i := range e.compressedBlocks() {
		for g := range e.kvHeads {
			block := make([]float64, e.CompressBlock*dim)
			for t := range e.CompressBlock {
				for d := range dim {
					if from := i*stride + t; from < e.tokens {
						block[t*dim+d] = float64(x[(from*e.kvHeads+g)*dim+d])
					}
				}
			}
			var y []float64
			if mlp != nil {
				y = mlp.forward(block, dim, mistake)
			} else {
				y = make([]float64, dim)
				for j, v := range block {
					if mistake != "sum instead of mean" {
						v /= float64(e.CompressBlock)
					}
					y[j%dim] += v
				}
			}
			for _, v := range y {
				out = append(out, float32(v))
			}
		}
	}
	return out
}

func (m *mlpExample) forward(x []float64, dim int, mistake string) []float64 {
	x = slices.Clone(x)
	for i, p := range m.positions {
		if mistake != "no position table" {
			x[i] += float64(p)
		}
	}
	if mistake == "values of a block lie channel by channel" {
		turned := make([]float64, 0, len(x))
		for d := range dim {
			for at := d; at < len(x); at += dim {
				turned = append(turned, x[at])
			}
		}
		x = turned
	}
	h := affine(m.w1, m.b1, x)
	for i, v := range h {
		if mistake == "relu instead of silu" {
			h[i] = max(v, 0)
		} else {
			h[i] = v / (1 + math.Exp(-v))
		}
	}
	return affine(m.w2, m.b2, h)
}

func affine(w, b []float32, x []float64) []float64 {
	y := make([]float64, len(b))
	for o := range y {
		y[o] = float64(b[o])
		for i, v := range x {
			y[o] += float64(w[o*len(x)+i]) * v
		}
	}
	return y
}

// seen is how many compressed blocks the row at t sees.
func (e *nsaExample) seen(t int, mistake string) int {
	at := t + 1 - e.CompressBlock
	switch mistake {
	case "compressed blocks are seen a position early":
		at++
	case "compressed blocks are seen a position late":
		at--
	case "compressed blocks are seen when they begin":
		at = t
	}
	if at < 0 {
		return 0
	}
	return min(at/e.Stride+1, e.compressedBlocks())
}

// logits are scale·q·k of head h of row t over keys of a key-value head.
func (e *nsaExample) logits(t, h int, keys []float32, g int, list []int, mistake string) (x []float64) {
	scale := e.scale()
	if mistake == "softmax is not scaled" {
		scale = 1
	}
	for _, i := range list {
		var dot float64
		for d, q := range e.q[(t*e.heads+h)*e.keyDim:][:e.keyDim] {
			dot += float64(q) * float64(keys[(i*e.kvHeads+g)*e.keyDim+d])
		}
		x = append(x, dot*scale)
	}
	return x
}

func softmax(x []float64) []float64 {
	if len(x) == 0 {
		return nil
	}
	high, total := slices.Max(x), 0.0
	p := make([]float64, len(x))
	for i, v := range x {
		p[i] = math.Exp(v - high)
		total += p[i]
	}
	for i := range p {
		p[i] /= total
	}
	return p
}

// scores are those of all blocks for row t and a key-value head.
func (e *nsaExample) scores(w *nsaResults, t, g, seen int, mistake string) []float64 {
	sum := make([]float64, seen)
	for h := range e.heads {
		if e.group(h, mistake) != g || mistake == "scores are those of one head" && h%(e.heads/e.kvHeads) != 0 {
			continue
		}
		p := e.logits(t, h, w.keys, g, upTo(seen), mistake)
		if mistake != "scores are logits" {
			p = softmax(p)
		}
		for i, v := range p {
			if mistake == "scores are the greatest of the heads" {
				sum[i] = max(sum[i], v)
			} else {
				sum[i] += v
			}
		}
	}
	block, width := e.SelectBlock/e.Stride, e.CompressBlock/e.Stride
	if mistake == "scores without overlap" {
		width = 1
	}
	scores := make([]float64, e.selectBlocks())
	for j := range scores {
		for m := range block {
			for n := range width {
				i := block*j + m - n
				switch mistake {
				case "scores are shifted by an entry":
					i++
				case "scores count entries down": // the paper's formula, whose indices begin at 1, taken as it stands
					i = block*j - m - n
				}
				if i >= 0 && i < seen {
					scores[j] += sum[i]
				}
			}
		}
	}
	return scores
}

// choose returns the blocks of row t, ascending.
func (e *nsaExample) choose(scores []float64, t int, mistake string) []int {
	own, count, initial, local := t/e.SelectBlock, e.Select, e.Initial, e.Local
	switch mistake {
	case "the first block is not always taken":
		initial = 0
	case "only a row's own block is always taken":
		local = 1
	case "one block less is selected":
		count--
	}
	var taken, others []int
	for j := range own + 1 {
		if j < initial || j > own-local {
			taken = append(taken, j)
		} else {
			others = append(others, j)
		}
	}
	slices.SortStableFunc(others, func(a, b int) int {
		if mistake == "the lowest scores are selected" {
			return cmp.Compare(scores[a], scores[b])
		}
		return cmp.Compare(scores[b], scores[a])
	})
	more := max(0, count-len(taken))
	if mistake == "blocks that are always taken are not counted" {
		more = count
	}
	taken = append(taken, others[:min(more, len(others))]...)
	slices.Sort(taken)
	return taken
}

// margin is how far the last selected and the first rejected score of any row
// are apart.
func (e *nsaExample) margin(w *nsaResults) float64 {
	least := math.Inf(1)
	for g := range e.kvHeads {
		for t := range e.tokens {
			scores := w.scores[(g*e.tokens+t)*e.selectBlocks():]
			blocks := w.selected[(g*e.tokens+t)*e.Select:][:e.Select]
			low, high, own := math.Inf(1), math.Inf(-1), t/e.SelectBlock
			for j := e.Initial; j <= own-e.Local; j++ {
				if slices.Contains(blocks, int32(j)) {
					low = min(low, float64(scores[j]))
				} else {
					high = max(high, float64(scores[j]))
				}
			}
			least = min(least, low-high)
		}
	}
	return least
}

// positions are those of blocks that row t reads.
func (e *nsaExample) positions(blocks []int, t int, mistake string) (list []int) {
	end := t + 1
	switch mistake {
	case "selected blocks are not cut at the row":
		end = e.tokens
	case "selected blocks are cut before the row":
		end = max(1, t)
	}
	for _, j := range blocks {
		if mistake == "selected blocks shift by one" {
			j = max(0, j-1)
		}
		for pos := j * e.SelectBlock; pos < min((j+1)*e.SelectBlock, end); pos++ {
			list = append(list, pos)
		}
	}
	return list
}

func (e *nsaExample) windowOf(t int, mistake string) (list []int) {
	from, to := t-e.Window+1, t+1
	switch mistake {
	case "the window is one longer":
		from--
	case "the window is one shorter":
		from++
	case "the window leaves the row out":
		to--
	}
	for pos := max(0, from); pos < to && e.Window > 0; pos++ {
		list = append(list, pos)
	}
	return list
}

// branches appends what head h of row t gets.
func (e *nsaExample) branches(w *nsaResults, t, h int, compressed, chosen, window []int, mistake string) {
	g := e.group(h, mistake)
	branches := []struct {
		keys, values []float32
		list         []int
		out          *[]float32
	}{{w.keys, w.values, compressed, &w.compressed}, {e.k, e.v, chosen, &w.chosen}, {e.k, e.v, window, &w.window}}
	gates := make([]float64, len(branches))
	for c := range gates {
		at := (t*e.heads+h)*3 + c
		if mistake == "gates of a branch lie together" {
			at = t*e.heads*3 + c*e.heads + h
		}
		gates[c] = float64(e.gates[at])
	}
	switch mistake {
	case "gates of selected blocks and window are exchanged":
		gates[1], gates[2] = gates[2], gates[1]
	case "gates of compressed and selected blocks are exchanged":
		gates[0], gates[1] = gates[1], gates[0]
	}
	var all []float64
	for _, b := range branches {
		all = append(all, e.logits(t, h, b.keys, g, b.list, mistake)...)
	}
	joint := softmax(all)
	sum := make([]float64, e.valueDim)
	for c, b := range branches {
		p := softmax(e.logits(t, h, b.keys, g, b.list, mistake))
		if mistake == "one softmax over all branches" {
			p, joint = joint[:len(b.list)], joint[len(b.list):]
		}
		for d := range e.valueDim {
			var v float64
			for i, at := range b.list {
				v += p[i] * float64(b.values[(at*e.kvHeads+g)*e.valueDim+d])
			}
			*b.out = append(*b.out, float32(v))
			sum[d] += gates[c] * v
		}
	}
	for _, v := range sum {
		w.out = append(w.out, float32(v))
	}
}

// differs compares all results within a tolerance; selected blocks are equal.
func (w *nsaResults) differs(want *nsaResults, tolerance float64) error {
	for _, v := range []struct {
		name      string
		got, want []float32
	}{
		{"compressed keys", w.keys, want.keys},
		{"compressed values", w.values, want.values},
		{"scores", w.scores, want.scores},
		{"compressed blocks", w.compressed, want.compressed},
		{"selected blocks", w.chosen, want.chosen},
		{"window", w.window, want.window},
		{"sum", w.out, want.out},
	} {
		if len(v.got) != len(v.want) {
			return fmt.Errorf("%s: %d values, want %d", v.name, len(v.got), len(v.want))
		}
		for i, x := range v.want {
			if d := math.Abs(float64(v.got[i]) - float64(x)); !(d <= tolerance) {
				return fmt.Errorf("%s: value %d is %v, want %v", v.name, i, v.got[i], x)
			}
		}
	}
	if !slices.Equal(w.selected, want.selected) {
		return fmt.Errorf("other blocks are selected")
	}
	return nil
}

// unnoticed lists the mistakes that leave the results of all examples within
// the tolerance of want.
func unnoticed(examples []*nsaExample, want []*nsaResults, tolerance float64) []string {
	return slices.DeleteFunc(slices.Clone(nsaMistakes), func(mistake string) bool {
		for i, e := range examples {
			if e.reference(mistake).differs(want[i], tolerance) != nil {
				return true
			}
		}
		return false
	})
}
