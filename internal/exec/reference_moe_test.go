package exec

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// mixtureFields are those of config.json that say how many experts there are.
type mixtureFields struct {
	LocalExperts int `json:"num_local_experts"` // Mixtral
	NumExperts   int `json:"num_experts"`       // Qwen3-MoE
}

// ffn is the feed-forward part of a layer, for one row.
func (r *reference) ffn(layer string, x []float64) []float64 {
	_, sparse := r.tensors[layer+"mlp.gate.weight"]
	switch {
	case r.LocalExperts > 0:
		return r.mostProbable(layer+"block_sparse_moe.", [3]string{"w1", "w3", "w2"}, r.LocalExperts, true, x)
	case sparse && r.NumExperts > 0:
		return r.mostProbable(layer+"mlp.", [3]string{"gate_proj", "up_proj", "down_proj"}, r.NumExperts, r.Normalize, x)
	case sparse:
		return r.mixture(layer+"mlp.", x)
	}
	return r.mlp(layer+"mlp.", x)
}

// mostProbable is Σ p_e · expert_e(x) over the experts e that are most probable,
// whose probabilities may be made to sum to one.
func (r *reference) mostProbable(prefix string, names [3]string, experts int, normalized bool, x []float64) []float64 {
	logits := r.linear(prefix+"gate", x)
	p := logSoftmax64(logits)
	order := make([]int, experts)
	for e := range order {
		p[e] = math.Exp(p[e])
		order[e] = e
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[b], p[a]) })
	chosen := order[:r.Active]
	switch r.wrong {
	case "second best":
		chosen = order[1 : r.Active+1]
	case "one expert too few":
		chosen = order[:r.Active-1]
	case "not normalised":
		normalized = false
	case "softmax of the chosen":
		normalized = true // which is the same
	case "gate for up":
		names[0], names[1] = names[1], names[0]
	case "sigmoid":
		for e, v := range logits {
			p[e] = 1 / (1 + math.Exp(-v))
		}
	}
	total := 0.0
	for _, e := range chosen {
		total += p[e]
	}
	y := make([]float64, r.Hidden)
	for _, e := range chosen {
		expert := fmt.Sprintf("%sexperts.%d.", prefix, e)
		gate, up := r.linear(expert+names[0], x), r.linear(expert+names[1], x)
		weight := p[e]
		if normalized {
			weight /= total
		}
		for i, g := range gate {
			if r.wrong == "weights before the activation" {
				g *= weight
			}
			gate[i] = g / (1 + math.Exp(-g)) * up[i]
		}
		if r.wrong == "weights before the activation" || r.wrong == "no weights" {
			weight = 1
		}
		for i, v := range r.linear(expert+names[2], gate) {
			y[i] += weight * v
		}
	}
	return y
}

// fuse writes the experts of a layer as newer versions of transformers do: gates
// and up projections in one tensor, [experts, 2·inner, hidden].
func fuse(m *testmodel.Model) {
	var others []testmodel.Tensor
	stacks := map[string]*testmodel.Tensor{}
	var order []string
	for _, t := range m.Tensors {
		before, after, ok := strings.Cut(t.Name, ".experts.")
		if !ok {
			others = append(others, t)
			continue
		}
		_, part, _ := strings.Cut(after, ".")
		name := before + ".experts." + map[string]string{"gate_proj.weight": "gate_up_proj", "up_proj.weight": "gate_up_proj", "down_proj.weight": "down_proj"}[part]
		if stacks[name] == nil {
			stacks[name] = &testmodel.Tensor{Name: name, Shape: []int{m.Experts.Count, 0, t.Shape[1]}}
			order = append(order, name)
		}
		stacks[name].Values = append(stacks[name].Values, t.Values...)
	}
	for _, name := range order {
		t := stacks[name]
		t.Shape[1] = len(t.Values) / t.Shape[0] / t.Shape[2]
		others = append(others, *t)
	}
	m.Tensors = others
}

// unfuse gives the reference the experts of fused tensors one by one.
func (r *reference) unfuse(t testmodel.Tensor) {
	names := []string{"down_proj"}
	if strings.HasSuffix(t.Name, ".gate_up_proj") {
		names = []string{"gate_proj", "up_proj"}
	}
	prefix := t.Name[:strings.LastIndex(t.Name, ".")]
	rows, cols := t.Shape[1]/len(names), t.Shape[2]
	parts := slices.Collect(slices.Chunk(t.Values, rows*cols))
	for i, values := range parts {
		name := fmt.Sprintf("%s.%d.%s.weight", prefix, i/len(names), names[i%len(names)])
		r.tensors[name] = testmodel.Tensor{Name: name, Shape: []int{rows, cols}, Values: values}
	}
}

// Each mistake that implementations make costs more than the tolerance of what
// is right.
func TestMistakesWithExperts(t *testing.T) {
	mistakes := []string{"second best", "one expert too few", "sigmoid", "gate for up", "weights before the activation", "no weights"}
	for _, tc := range []struct {
		family   string
		config   map[string]any
		mistakes []string
	}{
		{"mixtral", nil, append(mistakes, "not normalised")},
		{"qwen3_moe", nil, append(mistakes, "not normalised")},
		{"qwen3_moe", map[string]any{"norm_topk_prob": false}, append(mistakes, "softmax of the chosen")},
	} {
		m := variant{family: tc.family, config: tc.config}.model()
		s, tokens := open(t, safetensors.write(t, m), 2), randomTokens(12)[0]
		var table kvcache.Table
		logits := s.logits(t, &table, 0, tokens, len(tokens))
		for _, mistake := range append(tc.mistakes, "") {
			r := expected(t, m, safetensors)
			r.wrong = mistake
			worst := 0.0
			for pos, want := range r.logProbs(tokens) {
				got := logSoftmax(logits[pos*s.vocab : (pos+1)*s.vocab])
				for i := range want {
					worst = max(worst, math.Abs(got[i]-want[i]))
				}
			}
			if missed := worst > 100*logProbTolerance; missed != (mistake != "") {
				t.Errorf("%s, mistake %q: the largest difference is %.2g", tc.family, mistake, worst)
			}
		}
	}
}
