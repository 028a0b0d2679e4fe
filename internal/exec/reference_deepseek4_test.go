package exec

import (
	"math"
	"slices"
	"strconv"
)

// compressedFields are those of config.json that the reference reads for
// DeepSeek V4, beside those of latent attention and experts.
type compressedFields struct {
	OutGroups     int     `json:"o_groups"`
	Ratios        []int   `json:"compress_ratios"`
	CompressTheta float64 `json:"compress_rope_theta"`
	HashLayers    int     `json:"num_hash_layers"`
	HyperEps      float64 `json:"hc_eps"`
	Iterations    int     `json:"hc_sinkhorn_iters"`
	Limit         float64 `json:"swiglu_limit"`

	rounded bool // caches are, as in training
}

// hyperStreams is how many residual streams there are.
const hyperStreams = 4

// A streamed sequence has hyperStreams residual streams at each position.
type streamed [][hyperStreams][]float64

// compressedStates returns the final normalised states of tokens.
func (r *reference) compressedStates(tokens []int32) [][]float64 {
	return r.norms("model.norm", r.collapse("model.", r.allStreams(tokens)))
}

// allStreams returns the streams after the last layer.
func (r *reference) allStreams(tokens []int32) streamed {
	x := make(streamed, len(tokens))
	for t, token := range tokens {
		for s := range x[t] {
			x[t][s] = slices.Clone(r.row("model.embed_tokens.weight", int(token)))
		}
	}
	for i := range r.Layers {
		r.hyperLayer("model.layers."+strconv.Itoa(i)+".", r.Ratios[i], i < r.HashLayers, tokens, x)
	}
	return x
}

// hyperMTP returns the log-probabilities of the first module of multi-token
// prediction for the tokens two positions after each but the last.
func (r *reference) hyperMTP(tokens []int32) [][]float64 {
	const prefix = "model.mtp.0."
	main := r.allStreams(tokens)
	if r.wrong == "one stream" {
		for t, y := range r.compressedStates(tokens) {
			main[t] = [hyperStreams][]float64{y, y, y, y}
		}
	}
	x := make(streamed, len(tokens)-1)
	for t := range x {
		token := tokens[t+1]
		if r.wrong == "token of the same position" {
			token = tokens[t]
		}
		next := r.linear(prefix+"e_proj", r.norm(prefix+"enorm", r.row("model.embed_tokens.weight", int(token))))
		for s := range x[t] {
			h := r.linear(prefix+"h_proj", r.norm(prefix+"hnorm", main[t][s]))
			if r.wrong != "embedding in one stream" || s == 0 {
				h = sum([][]float64{h}, [][]float64{next})[0]
			}
			x[t][s] = h
		}
	}
	r.hyperLayer(prefix, 0, false, tokens[1:], x)
	head, norm := prefix, prefix+"norm"
	switch r.wrong {
	case "the model's collapse":
		head = "model."
	case "the model's norm":
		norm = "model.norm"
	}
	y := r.norms(norm, r.collapse(head, x))
	for t := range y {
		y[t] = logSoftmax64(r.linear("lm_head", y[t]))
	}
	return y
}

func (r *reference) hyperLayer(prefix string, ratio int, hash bool, tokens []int32, x streamed) {
	r.connect(prefix+"attn_hc.", x, func(y [][]float64) [][]float64 {
		return r.compressedAttention(prefix+"self_attn.", ratio, r.norms(prefix+"input_layernorm", y))
	})
	r.connect(prefix+"ffn_hc.", x, func(y [][]float64) [][]float64 {
		y = r.norms(prefix+"post_attention_layernorm", y)
		for t := range y {
			y[t] = r.clampedMixture(prefix+"mlp.", hash && r.wrong != "hash ignored", tokens[t], y[t])
		}
		return y
	})
}

// projected is m of hc_pre before scales and bases.
func (r *reference) projected(fn string, x [hyperStreams][]float64) []float64 {
	f := slices.Concat(x[:]...)
	inverse := 1 / math.Sqrt(dot64(f, f)/float64(len(f))+r.RMSNormEps)
	if r.wrong == "hyper-connections not normalised" {
		inverse = 1
	}
	m := make([]float64, r.tensors[fn].Shape[0])
	for i := range m {
		m[i] = dot64(r.row(fn, i), f) * inverse
	}
	return m
}

func sigmoid64(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// connect is x = hc_post(f(hc_pre(x))).
func (r *reference) connect(prefix string, x streamed, f func([][]float64) [][]float64) {
	base, scale := r.tensors[prefix+"base"].Values, r.tensors[prefix+"scale"].Values
	var post [][hyperStreams]float64
	var comb [][hyperStreams][hyperStreams]float64
	var in [][]float64
	for t := range x {
		m := r.projected(prefix+"fn", x[t])
		for i := range m {
			s := scale[min(i/hyperStreams, 2)]
			if r.wrong == "one scale" {
				s = scale[0]
			}
			m[i] = m[i]*float64(s) + float64(base[i])
		}
		if r.wrong == "pre and post swapped" {
			m = slices.Concat(m[4:8], m[:4], m[8:])
		}
		y := make([]float64, r.Hidden)
		var write [hyperStreams]float64
		var mix [hyperStreams][hyperStreams]float64
		for j := range hyperStreams {
			pre := sigmoid64(m[j]) + r.HyperEps
			for i, v := range x[t][j] {
				y[i] += pre * v
			}
			write[j] = 2 * sigmoid64(m[hyperStreams+j])
			if r.wrong == "post without 2" {
				write[j] /= 2
			}
			copy(mix[j][:], m[2*hyperStreams+hyperStreams*j:])
		}
		in, post, comb = append(in, y), append(post, write), append(comb, r.sinkhorn(mix))
	}
	out := f(in)
	for t := range x {
		var next [hyperStreams][]float64
		for k := range next {
			next[k] = scaled(out[t], post[t][k])
			for j := range hyperStreams {
				c := comb[t][j][k]
				if r.wrong == "comb transposed" {
					c = comb[t][k][j]
				}
				for i, v := range x[t][j] {
					next[k][i] += c * v
				}
			}
		}
		x[t] = next
	}
}

// sinkhorn makes c nearly doubly stochastic.
func (r *reference) sinkhorn(c [hyperStreams][hyperStreams]float64) [hyperStreams][hyperStreams]float64 {
	transpose := func() {
		for j := range c {
			for k := range j {
				c[j][k], c[k][j] = c[k][j], c[j][k]
			}
		}
	}
	rows := func() {
		for j := range c {
			total := r.HyperEps
			for _, v := range c[j] {
				total += v
			}
			for k := range c[j] {
				c[j][k] /= total
			}
		}
	}
	columns := func() { transpose(); rows(); transpose() }
	if r.wrong == "softmax over columns" {
		transpose()
	}
	for j := range c {
		for k, v := range logSoftmax64(c[j][:]) {
			c[j][k] = math.Exp(v) + r.HyperEps
		}
	}
	if r.wrong == "softmax over columns" {
		transpose()
	}
	if r.wrong == "no sinkhorn" {
		return c
	}
	columns()
	if r.wrong == "one iteration" {
		return c
	}
	for range r.Iterations - 1 {
		rows()
		columns()
	}
	if r.wrong == "rows last" {
		rows()
	}
	return c
}

// collapse is hc_head.
func (r *reference) collapse(prefix string, x streamed) [][]float64 {
	base, scale := r.tensors[prefix+"hc_head.hc_base"].Values, r.tensors[prefix+"hc_head.hc_scale"].Values
	out := make([][]float64, len(x))
	for t := range x {
		m := r.projected(prefix+"hc_head.hc_fn", x[t])
		out[t] = make([]float64, r.Hidden)
		for j, v := range m {
			pre := sigmoid64(v*float64(scale[0])+float64(base[j])) + r.HyperEps
			if r.wrong == "mean of streams" {
				pre = 0.25
			}
			for i, v := range x[t][j] {
				out[t][i] += pre * v
			}
		}
	}
	return out
}

// clampedMixture is a mixture of experts of one row.
func (r *reference) clampedMixture(prefix string, hash bool, token int32, x []float64) []float64 {
	scores := r.linear(prefix+"gate", x)
	switch r.wrong {
	case "softmax":
		for i, v := range logSoftmax64(scores) {
			scores[i] = math.Exp(v)
		}
	case "sigmoid":
		for i, v := range scores {
			scores[i] = sigmoid64(v)
		}
	case "softplus":
		for i, v := range scores {
			scores[i] = math.Log1p(math.Exp(v))
		}
	default:
		for i, v := range scores {
			scores[i] = math.Sqrt(math.Log1p(math.Exp(v)))
		}
	}
	choice := slices.Clone(scores)
	if bias, ok := r.tensors[prefix+"gate.e_score_correction_bias"]; ok && r.wrong != "no choice bias" {
		for i, b := range bias.Values {
			choice[i] += float64(b)
		}
	}
	chosen := best(choice, r.Active)
	if hash {
		for i, e := range r.row(prefix+"gate.tid2eid", int(token)) {
			chosen[i] = int(e)
		}
	}
	if r.wrong == "biased weights" {
		scores = choice
	}
	total := 0.0
	for _, e := range chosen {
		total += scores[e]
	}
	out := make([]float64, len(x))
	add := func(name string, weight, limit float64) {
		for i, v := range r.clampedMLP(name, x, weight, limit) {
			out[i] += v
		}
	}
	for _, e := range chosen {
		weight := scores[e]
		if r.wrong != "weights not normalised" {
			weight /= total
		}
		if r.wrong != "no routed scale" {
			weight *= r.RoutedScale
		}
		add(prefix+"experts."+strconv.Itoa(e)+".", weight, r.Limit)
	}
	switch r.wrong {
	case "no shared expert":
	case "shared expert not clamped":
		add(prefix+"shared_experts.", 1, math.Inf(1))
	case "shared expert scaled":
		add(prefix+"shared_experts.", r.RoutedScale, r.Limit)
	default:
		add(prefix+"shared_experts.", 1, r.Limit)
	}
	return out
}

// clampedMLP is W_down·(weight·silu(min(W_gate·x, limit))·clamp(W_up·x, ±limit)).
func (r *reference) clampedMLP(prefix string, x []float64, weight, limit float64) []float64 {
	gate, up := r.linear(prefix+"gate_proj", x), r.linear(prefix+"up_proj", x)
	if r.wrong == "no clamp" || limit == 0 {
		limit = math.Inf(1)
	}
	for i, g := range gate {
		u := up[i]
		switch r.wrong {
		case "gate clamped from below":
			g = math.Max(g, -limit)
		case "weighted before the clamp":
			u *= weight
		case "silu clamped":
			g = math.Min(g/(1+math.Exp(-g)), limit)
			gate[i] = weight * g * min(max(u, -limit), limit)
			continue
		}
		g = math.Min(g, limit)
		if r.wrong == "up clamped from above only" {
			u = math.Min(u, limit)
		} else {
			u = math.Min(math.Max(u, -limit), limit)
		}
		gate[i] = g / (1 + math.Exp(-g)) * u
		if r.wrong != "weighted before the clamp" {
			gate[i] *= weight
		}
	}
	return r.linear(prefix+"down_proj", gate)
}
