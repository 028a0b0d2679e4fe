package exec

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// latentFields are those of config.json that the reference reads for latent
// attention and its indexer.
type latentFields struct {
	QRank      int `json:"q_lora_rank"`
	KVRank     int `json:"kv_lora_rank"`
	NopeDim    int `json:"qk_nope_head_dim"`
	RopeDim    int `json:"qk_rope_head_dim"`
	ValueDim   int `json:"v_head_dim"`
	IndexHeads int `json:"index_n_heads"`
	IndexDim   int `json:"index_head_dim"`
	IndexTopK  int `json:"index_topk"`
}

// latentAttention is attention over keys and values that are expanded for every
// position, as DeepSeek-V2's paper introduces it.
func (r *reference) latentAttention(prefix string, x [][]float64) [][]float64 {
	d, w := r.NopeDim+r.RopeDim, r.NopeDim+r.ValueDim
	var q, rotated, expanded, low [][]float64
	for pos := range x {
		if r.QRank > 0 {
			low = append(low, r.norm(prefix+"q_a_layernorm", r.linear(prefix+"q_a_proj", x[pos])))
			q = append(q, r.linear(prefix+"q_b_proj", low[pos]))
		} else {
			q = append(q, r.linear(prefix+"q_proj", x[pos]))
		}
		for head := range slices.Chunk(q[pos], d) {
			if r.wrong == "rope first" {
				slices.Reverse(head[:r.RopeDim])
				slices.Reverse(head[r.RopeDim:])
				slices.Reverse(head)
			}
			r.turn(head[r.NopeDim:], pos, r.wrong != "halves")
		}
		kept := r.linear(prefix+"kv_a_proj_with_mqa", x[pos])
		c, k := kept[:r.KVRank], kept[r.KVRank:]
		if r.wrong != "no latent norm" {
			c = r.norm(prefix+"kv_a_layernorm", c)
		}
		r.turn(k, pos, r.wrong != "halves")
		rotated, expanded = append(rotated, k), append(expanded, r.expand(prefix+"kv_b_proj", c, k))
	}
	scale := r.magnitude() * r.magnitude() / math.Sqrt(float64(d))
	if r.wrong == "no mscale" {
		scale = 1 / math.Sqrt(float64(d))
	}
	out := make([][]float64, len(x))
	for pos := range x {
		positions := r.selected(prefix+"indexer.", x, low, pos)
		joined := make([]float64, 0, r.Heads*r.ValueDim)
		for h := range r.Heads {
			query, scores := q[pos][h*d:(h+1)*d], []float64(nil)
			for _, s := range positions {
				scores = append(scores, scale*(dot64(query[:r.NopeDim], expanded[s][h*w:])+dot64(query[r.NopeDim:], rotated[s])))
			}
			value := make([]float64, r.ValueDim)
			for i, p := range logSoftmax64(scores) {
				for j := range value {
					value[j] += math.Exp(p) * expanded[positions[i]][h*w+r.NopeDim+j]
				}
			}
			joined = append(joined, value...)
		}
		out[pos] = r.linear(prefix+"o_proj", joined)
	}
	return out
}

// expand returns the keys and values of all heads, [heads, nope+value].
func (r *reference) expand(name string, c, rotated []float64) []float64 {
	out := r.linear(name, c)
	w := r.NopeDim + r.ValueDim
	for h := range r.Heads {
		head := out[h*w : (h+1)*w]
		switch r.wrong {
		case "keys not transposed":
			flat := r.tensors[name+".weight"].Values[h*w*r.KVRank:]
			for n := range r.NopeDim {
				head[n] = 0
				for i := range c {
					head[n] += float64(flat[i*r.NopeDim+n]) * c[i]
				}
			}
		case "values of the rotated part":
			shifted := append(slices.Clone(c[r.RopeDim:]), rotated...)
			for v := range r.ValueDim {
				head[r.NopeDim+v] = dot64(r.row(name+".weight", h*w+r.NopeDim+v), shifted)
			}
		case "values before keys":
			copy(head, append(slices.Clone(head[r.ValueDim:]), head[:r.ValueDim]...))
		}
	}
	return out
}

// magnitude is what yarn multiplies queries and keys by in DeepSeek's models.
func (r *reference) magnitude() float64 {
	return 0.1*r.Scaling.MScale*math.Log(max(r.Scaling.Factor, 1)) + 1
}

// turn rotates neighbours or halves of h, without any factor.
func (r *reference) turn(h []float64, pos int, neighbours bool) {
	d := float64(len(h))
	corrected := func(rotations float64) float64 {
		return d * math.Log(r.Scaling.Original/(rotations*2*math.Pi)) / (2 * math.Log(r.Theta))
	}
	factor := 1.0
	if r.wrong == "factor on cosines" {
		factor = r.magnitude()
	}
	for i := range len(h) / 2 {
		f := math.Pow(r.Theta, -2*float64(i)/d)
		if r.Scaling.Factor > 1 {
			low, high := math.Max(math.Floor(corrected(32)), 0), math.Min(math.Ceil(corrected(1)), d-1)
			if low == high {
				high += 0.001
			}
			ramp := math.Min(math.Max((float64(i)-low)/(high-low), 0), 1)
			f = f/r.Scaling.Factor*ramp + f*(1-ramp)
		}
		a, b := 2*i, 2*i+1
		if !neighbours {
			a, b = i, i+len(h)/2
		}
		sin, cos := math.Sincos(float64(pos) * f)
		h[a], h[b] = factor*(h[a]*cos-h[b]*sin), factor*(h[b]*cos+h[a]*sin)
	}
}

// selected lists the positions that a row attends to.
func (r *reference) selected(prefix string, x, low [][]float64, pos int) []int {
	all, top := make([]int, pos+1), r.IndexTopK
	for i := range all {
		all[i] = i
	}
	switch r.wrong {
	case "one position less":
		top--
	case "one position more":
		top++
	}
	if r.IndexHeads == 0 || len(all) <= top {
		return all
	}
	turn := func(v []float64, pos int) {
		rotated := v[:r.RopeDim]
		if r.wrong == "indexer rope last" {
			rotated = v[r.IndexDim-r.RopeDim:]
		}
		r.turn(rotated, pos, r.wrong == "indexer interleaved")
		r.roundIndex(v)
	}
	q, w := r.linear(prefix+"wq_b", low[pos]), r.linear(prefix+"weights_proj", x[pos])
	for head := range slices.Chunk(q, r.IndexDim) {
		turn(head, pos)
	}
	scores := make([]float64, len(all))
	for s := range all {
		k := r.layerNorm(prefix+"k_norm", r.linear(prefix+"wk", x[s]))
		turn(k, s)
		for h := range r.IndexHeads {
			score := dot64(q[h*r.IndexDim:(h+1)*r.IndexDim], k)
			if r.wrong != "no relu" {
				score = math.Max(score, 0)
			}
			scores[s] += score * w[h]
		}
	}
	return best(scores, top)
}

func (r *reference) layerNorm(name string, x []float64) []float64 {
	mean := 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	if r.wrong == "no mean of index keys" {
		mean = 0
	}
	variance := 0.0
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = (v - mean) / math.Sqrt(variance+1e-6) * float64(r.tensors[name+".weight"].Values[i])
		if r.wrong != "no bias of index keys" {
			out[i] += float64(r.tensors[name+".bias"].Values[i])
		}
	}
	return out
}

// expertFields are those of config.json that the reference reads for mixtures
// of experts.
type expertFields struct {
	Experts      int     `json:"n_routed_experts"`
	Active       int     `json:"num_experts_per_tok"`
	Groups       int     `json:"n_group"`
	ActiveGroups int     `json:"topk_group"`
	Scoring      string  `json:"scoring_func"`
	Method       string  `json:"topk_method"`
	Normalize    bool    `json:"norm_topk_prob"`
	RoutedScale  float64 `json:"routed_scaling_factor"`
}

// mixture is a mixture of experts of one row.
func (r *reference) mixture(prefix string, x []float64) []float64 {
	scores := r.linear(prefix+"gate", x)
	if sigmoid := r.Scoring == "sigmoid"; sigmoid != (r.wrong == "other scoring") {
		for i, v := range scores {
			scores[i] = 1 / (1 + math.Exp(-v))
		}
	} else {
		for i, v := range logSoftmax64(scores) {
			scores[i] = math.Exp(v)
		}
	}
	choice := slices.Clone(scores)
	if bias, ok := r.tensors[prefix+"gate.e_score_correction_bias"]; ok && r.wrong != "no choice bias" {
		for i, b := range bias.Values {
			choice[i] += float64(b)
		}
	}
	if r.Method != "greedy" && r.wrong != "no groups" {
		r.maskGroups(choice)
	}
	chosen := best(choice, r.Active)
	if r.wrong == "biased weights" {
		scores = choice
	}
	total := 0.0
	for _, e := range chosen {
		total += scores[e]
	}
	out := make([]float64, len(x))
	for _, e := range chosen {
		weight := scores[e]
		if r.Normalize != (r.wrong == "other normalisation") {
			weight /= total
		}
		if r.wrong != "no routed scale" && (r.Family != "deepseek_v2" || !r.Normalize) {
			weight *= r.RoutedScale
		}
		out = sum([][]float64{out}, [][]float64{scaled(r.mlp(prefix+"experts."+strconv.Itoa(e)+".", x), weight)})[0]
	}
	if _, ok := r.tensors[prefix+"shared_experts.gate_proj.weight"]; ok && r.wrong != "no shared expert" {
		out = sum([][]float64{out}, [][]float64{r.mlp(prefix+"shared_experts.", x)})[0]
	}
	return out
}

// maskGroups leaves only the best groups of experts to choose from.
func (r *reference) maskGroups(choice []float64) {
	size, top := r.Experts/r.Groups, 2
	if (r.Method == "group_limited_greedy") != (r.wrong == "other group score") {
		top = 1
	}
	var groups []float64
	for g := range slices.Chunk(choice, size) {
		score := 0.0
		for _, e := range best(g, top) {
			score += g[e]
		}
		groups = append(groups, score)
	}
	kept := best(groups, r.ActiveGroups)
	for i := range choice {
		if !slices.Contains(kept, i/size) {
			choice[i] = math.Inf(-1)
		}
	}
}

// best lists the n greatest values of x, the first of equal ones first.
func best(x []float64, n int) []int {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case x[a] > x[b]:
			return -1
		case x[a] < x[b]:
			return 1
		}
		return 0
	})
	return order[:n]
}

// mtp returns the log-probabilities of a module of multi-token prediction for
// the tokens two positions after each but the last.
func (r *reference) mtp(layer int, tokens []int32) [][]float64 {
	states := r.states(tokens)
	prefix := fmt.Sprintf("model.layers.%d.", layer)
	var x [][]float64
	for i, next := range tokens[1:] {
		e := r.norm(prefix+"enorm", r.row("model.embed_tokens.weight", int(next)))
		h := r.norm(prefix+"hnorm", states[i])
		if r.wrong == "state before embedding" {
			e, h = h, e
		}
		x = append(x, r.linear(prefix+"eh_proj", append(e, h...)))
	}
	x = r.layer(layer, x)
	for t := range x {
		x[t] = logSoftmax64(r.linear("lm_head", r.norm(prefix+"shared_head.norm", x[t])))
	}
	return x
}
