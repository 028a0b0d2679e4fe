package moe

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// kinds are the gates of published models, smaller, and the mistakes that each
// has to tell apart.
var kinds = []struct {
	name     string
	config   Config
	mistakes []string                 // of the reference
	changes  map[string]func(*Config) // of its configuration
}{
	{
		name:    "Mixtral",
		config:  Config{Experts: 8, Active: 2, Scoring: Softmax, Normalize: true, Scale: 1},
		changes: map[string]func(*Config){"not normalised": notNormalized, "sigmoid": sigmoid},
	},
	{
		name:    "Qwen3-MoE, not normalised",
		config:  Config{Experts: 16, Active: 5, Scoring: Softmax, Scale: 1},
		changes: map[string]func(*Config){"softmax of the chosen": normalized, "sigmoid": sigmoid},
	},
	{
		name:     "DeepSeek V2",
		config:   Config{Experts: 20, Active: 4, Scoring: Softmax, Groups: 5, ActiveGroups: 2, GroupTop: 1, Scale: 16},
		mistakes: []string{"mean of groups"},
		changes: map[string]func(*Config){
			"normalised": normalized, "no groups": noGroups, "not scaled": notScaled, "sum of the best two": func(c *Config) { c.GroupTop = 2 },
			"one group more": func(c *Config) { c.ActiveGroups++ },
		},
	},
	{
		name:     "DeepSeek V3",
		config:   Config{Experts: 24, Active: 6, Scoring: Sigmoid, Bias: true, Groups: 6, ActiveGroups: 3, GroupTop: 2, Normalize: true, Scale: 2.5},
		mistakes: []string{"bias in weights", "mean of groups"},
		changes: map[string]func(*Config){
			"not normalised": notNormalized, "softmax": func(c *Config) { c.Scoring = Softmax }, "no groups": noGroups, "not scaled": notScaled,
			"no bias": func(c *Config) { c.Bias = false }, "largest of a group": func(c *Config) { c.GroupTop = 1 },
		},
	},
	{
		name:     "DeepSeek V4",
		config:   Config{Experts: 12, Active: 3, Scoring: SqrtSoftplus, Bias: true, Normalize: true, Scale: 1.5},
		mistakes: []string{"bias in weights"},
		changes:  map[string]func(*Config){"sigmoid": sigmoid, "not normalised": notNormalized, "not scaled": notScaled},
	},
	{
		name:    "DeepSeek V4, experts by token",
		config:  Config{Experts: 12, Active: 3, Scoring: SqrtSoftplus, Normalize: true, Scale: 1.5, Hash: true, Vocab: 7},
		changes: map[string]func(*Config){"experts by score": func(c *Config) { c.Hash = false }, "not normalised": notNormalized},
	},
}

func notNormalized(c *Config) { c.Normalize = false }
func normalized(c *Config)    { c.Normalize = true }
func sigmoid(c *Config)       { c.Scoring = Sigmoid }
func noGroups(c *Config)      { c.Groups = 0 }
func notScaled(c *Config)     { c.Scale = 1 }

// routed is a router with a random bias and table.
func routed(c *Config, random *rand.Rand) *router {
	r := &router{Config: c}
	if c.Bias {
		for range c.Experts {
			r.bias = append(r.bias, 0.3*float32(random.NormFloat64()))
		}
	}
	if c.Hash {
		for range c.Vocab {
			for _, e := range random.Perm(c.Experts)[:c.Active] {
				r.table = append(r.table, int32(e))
			}
		}
	}
	return r
}

// choose routes one token.
func (r *router) choose(logits []float32, token int32) ([]int32, []float32) {
	experts, weights := make([]int32, r.Active), make([]float32, r.Active)
	r.route(slices.Clone(logits), make([]float32, r.Experts+r.Groups), token, experts, weights)
	return experts, weights
}

// The router chooses and weighs as the reference does, and no reference with a
// mistake agrees with it.
func TestRoute(t *testing.T) {
	for _, kind := range kinds {
		if err := (&Config{Experts: kind.config.Experts}).Validate(); err == nil {
			t.Fatal("an incomplete configuration is valid")
		}
		c := kind.config
		c.Inner = 1
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", kind.name, err)
		}
		right := reference{Config: c}
		wrong := map[string]reference{}
		for _, mistake := range kind.mistakes {
			wrong[mistake] = reference{Config: c, mistake: mistake}
		}
		for mistake, change := range kind.changes {
			changed := c
			change(&changed)
			wrong[mistake] = reference{Config: changed}
		}
		random := rand.New(rand.NewPCG(1, 2))
		r := routed(&c, random)
		logits := make([]float32, c.Experts)
		for range 50 {
			for e := range logits {
				logits[e] = 2 * float32(random.NormFloat64())
			}
			var token int32
			var row []int32
			if c.Hash {
				token = random.Int32N(int32(c.Vocab))
				row = r.table[int(token)*c.Active:][:c.Active]
			}
			experts, weights := r.choose(logits, token)
			agrees := func(ref reference) bool {
				bias := r.bias
				if !ref.Bias {
					bias = nil
				}
				want := ref.route(logits, bias, row)
				for i, e := range experts {
					if math.Abs(want[int(e)]-float64(weights[i])) > 1e-6*c.Scale {
						return false
					}
				}
				return slices.IsSorted(experts) && len(want) == len(experts)
			}
			if !agrees(right) {
				t.Fatalf("%s: experts %v, weights %v; want %v", kind.name, experts, weights, right.route(logits, r.bias, row))
			}
			for mistake, ref := range wrong {
				if !agrees(ref) {
					delete(wrong, mistake)
				}
			}
		}
		for mistake := range wrong {
			t.Errorf("%s: no token tells %q apart", kind.name, mistake)
		}
	}
}

func TestRouteTies(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	groups := Config{Experts: 6, Active: 2, Scoring: Sigmoid, Groups: 3, ActiveGroups: 1, GroupTop: 2, Normalize: true, Scale: 1}
	top2 := Config{Experts: 6, Active: 2, Scoring: Softmax, Normalize: true, Scale: 1}
	for _, tc := range []struct {
		name   string
		config Config
		bias   []float32
		logits []float32
		want   []int32
		lost   bool // weights are NaN
	}{
		{"all alike", top2, nil, []float32{1, 1, 1, 1, 1, 1}, []int32{0, 1}, false},
		{"two of three that are alike", top2, nil, []float32{0, 3, 0, 3, 3, 0}, []int32{1, 3}, false},
		{"one of two that are alike", top2, nil, []float32{0, 3, 0, 4, 3, 0}, []int32{1, 3}, false},
		{"one of two that are alike, the better one last", top2, nil, []float32{0, 3, 3, 4, 0, 0}, []int32{1, 3}, false},
		{"zeros of both signs", top2, nil, []float32{float32(math.Copysign(0, -1)), 0, 0, -1, 0, -1}, []int32{0, 1}, false},
		{"scores that round to the same", top2, nil, []float32{-200, -200, -300, 9, 9, -100}, []int32{3, 4}, false},
		{"scores that are all 0", top2, nil, []float32{0, -1e9, -1e9, -1e9, -1e9, -1e9}, []int32{0, 1}, false},
		{"groups alike", groups, nil, []float32{0, 1, 1, 0, 1, 0}, []int32{0, 1}, false},
		{"the last two groups alike", groups, nil, []float32{0, 0, 1, 0, 1, 0}, []int32{2, 3}, false},
		{"a bias of -∞", groups, []float32{float32(math.Inf(-1)), 0, 0, 0, 0, 0}, []float32{9, 9, 1, 0, 0, 0}, []int32{2, 3}, false},
		{"a logit that is not a number", top2, nil, []float32{0, nan, 0, 5, 5, 0}, []int32{0, 1}, true},
		{"all not numbers", top2, nil, []float32{nan, nan, nan, nan, nan, nan}, []int32{0, 1}, true},
		{"an infinite logit", top2, nil, []float32{0, inf, 0, 5, 5, 0}, []int32{0, 1}, true},
		{"a group with NaN", groups, nil, []float32{9, 9, 1, nan, 0, 0}, []int32{0, 1}, true},
		{"a bias that is not a number", groups, []float32{0, 0, 0, 0, 0, nan}, []float32{9, 9, 1, 0, 0, 0}, []int32{0, 1}, true},
		{"an infinite bias", groups, []float32{0, 0, 0, 0, 0, inf}, []float32{9, 9, 1, 0, 0, 0}, []int32{0, 1}, true},
	} {
		r := &router{Config: &tc.config, bias: tc.bias}
		experts, weights := r.choose(tc.logits, 0)
		if !slices.Equal(experts, tc.want) {
			t.Errorf("%s: experts %v, want %v", tc.name, experts, tc.want)
		}
		for _, w := range weights {
			if lost := w != w; lost != tc.lost || !lost && !(w >= 0 && w <= 1) {
				t.Errorf("%s: weights %v", tc.name, weights)
			}
		}
	}
}

// Sigmoids that are all 0 do not make weights NaN.
func TestRouteZeroScores(t *testing.T) {
	r := &router{Config: &Config{Experts: 4, Active: 2, Scoring: Sigmoid, Normalize: true, Scale: 1}}
	if _, weights := r.choose([]float32{-900, -900, -900, -900}, 0); !slices.Equal(weights, []float32{0, 0}) {
		t.Errorf("weights %v, want zeros", weights)
	}
}
