package testmodel

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/foretoken/foretoken/internal/tensor"
)

// Compressed is what DeepSeek V4 has beside the Latent and Experts of other
// DeepSeek families: attention over a window and compressed entries, layers that
// choose experts by token, and four residual streams.
type Compressed struct {
	Ratios        []int   // positions per entry, for each layer and behind them each module of multi-token prediction
	CompressTheta float64 // rotary base where there are entries
	Groups, Rank  int     // of heads in the output projection, and values of each
	HashLayers    int
	Limit         float64 // of SwiGLU
	Native        bool    // safetensors: the names, stacks and configuration of transformers instead of DeepSeek's own
}

const (
	streams        = 4
	sinkhorn       = 20
	csaRatio       = 4 // with overlapping windows and an indexer
	sqrtSoftplus   = 4 // in expert_gating_func
	hyperEps       = 1e-6
	hyperMixes     = 2*streams + streams*streams
	hyperGateScale = 0.7
)

// Every kind of layer: window alone with experts by token, both kinds of
// entries. Gates and up projections often exceed the limit.
func init() {
	families["deepseek_v4"] = Spec{
		Heads: 4, KVHeads: 1, HeadDim: 80, Theta: 10000, Eps: 1e-6, Layers: 4, Window: 12,
		Latent:  Latent{QueryRank: 32, RopeDim: 16, IndexHeads: 4, IndexDim: 32, TopK: 5},
		Experts: Experts{Count: 6, Active: 3, Inner: 32, Shared: 1, Scoring: "sqrtsoftplus", Method: "noaux_tc", Normalize: true, Scale: 1.5},
		Compressed: Compressed{
			Ratios: []int{0, 4, 128, 4, 0}, CompressTheta: 160000, Groups: 2, Rank: 32, HashLayers: 2, Limit: 1,
		},
		Scaling: Scaling{Type: "yarn", Factor: 16, Original: 32},
	}
}

func (s Spec) compressed() bool { return s.Compressed.Groups > 0 }

// compressedConfig adds the keys of config.json.
func (s Spec) compressedConfig(c map[string]any) {
	l, e, v := s.Latent, s.Experts, s.Compressed
	delete(c, "intermediate_size")
	maps.Copy(c, map[string]any{
		"head_dim": s.HeadDim, "q_lora_rank": l.QueryRank, "o_groups": v.Groups, "o_lora_rank": v.Rank,
		"sliding_window": s.Window, "compress_rope_theta": v.CompressTheta, "swiglu_limit": v.Limit,
		"index_n_heads": l.IndexHeads, "index_head_dim": l.IndexDim, "index_topk": l.TopK,
		"n_routed_experts": e.Count, "num_experts_per_tok": e.Active, "moe_intermediate_size": e.Inner, "n_shared_experts": e.Shared,
		"scoring_func": e.Scoring, "topk_method": e.Method, "norm_topk_prob": e.Normalize, "routed_scaling_factor": e.Scale,
		"hc_mult": streams, "hc_sinkhorn_iters": sinkhorn, "hc_eps": hyperEps, "num_nextn_predict_layers": s.MTP,
	})
	if v.Native {
		s.nativeConfig(c)
		return
	}
	c["qk_rope_head_dim"], c["num_hash_layers"] = l.RopeDim, v.HashLayers
	c["compress_ratios"] = v.Ratios[:s.Layers+s.MTP]
}

// nativeConfig says in the words of transformers what compress_ratios,
// num_hash_layers, qk_rope_head_dim and rope_scaling say.
func (s Spec) nativeConfig(c map[string]any) {
	kinds := map[int]string{0: "sliding_attention", 4: "compressed_sparse_attention", 128: "heavily_compressed_attention"}
	var layers, mlps []string
	for i := range s.Layers {
		layers, mlps = append(layers, kinds[s.Compressed.Ratios[i]]), append(mlps, "moe")
		if i < s.Compressed.HashLayers {
			mlps[i] = "hash_moe"
		}
	}
	part := float64(s.Latent.RopeDim) / float64(s.HeadDim)
	compress, _ := s.Scaling.config().(map[string]any)
	if compress == nil {
		compress = map[string]any{"rope_type": "default"}
	} else {
		compress["attention_factor"] = 1.0
	}
	compress["rope_theta"], compress["partial_rotary_factor"] = s.Compressed.CompressTheta, part
	delete(c, "rope_scaling")
	c["partial_rotary_factor"] = part
	c["layer_types"], c["mlp_layer_types"] = layers, mlps
	c["compress_rates"] = map[string]int{"compressed_sparse_attention": 4, "heavily_compressed_attention": 128}
	c["rope_parameters"] = map[string]any{
		"main":     map[string]any{"rope_type": "default", "rope_theta": s.Theta, "partial_rotary_factor": part},
		"compress": compress,
	}
}

// compressedMetadata sets the keys of a GGUF file that differ from a dense
// model's.
func (s Spec) compressedMetadata(set func(key string, value any)) {
	l, e, v := s.Latent, s.Experts, s.Compressed
	numbers := map[string]int{
		"rope.dimension_count": l.RopeDim, "attention.q_lora_rank": l.QueryRank, "attention.sliding_window": s.Window,
		"attention.output_group_count": v.Groups, "attention.output_lora_rank": v.Rank,
		"attention.indexer.head_count": l.IndexHeads, "attention.indexer.key_length": l.IndexDim, "attention.indexer.top_k": l.TopK,
		"feed_forward_length": e.Inner,
		"expert_count":        e.Count, "expert_used_count": e.Active, "expert_feed_forward_length": e.Inner, "expert_shared_count": e.Shared,
		"expert_gating_func": sqrtSoftplus, "hash_layer_count": v.HashLayers,
		"hyper_connection.count": streams, "hyper_connection.sinkhorn_iterations": sinkhorn,
	}
	for _, key := range slices.Sorted(maps.Keys(numbers)) {
		set(key, uint32(numbers[key]))
	}
	set("hyper_connection.epsilon", float32(hyperEps))
	set("expert_weights_norm", e.Normalize)
	set("expert_weights_scale", float32(e.Scale))
	set("attention.compress_rope_freq_base", float32(v.CompressTheta))
	var ratios []int32
	var limits []float32
	for i := range s.Layers {
		ratios, limits = append(ratios, int32(v.Ratios[i])), append(limits, float32(v.Limit))
	}
	set("attention.compress_ratios", ratios)
	set("swiglu_clamp_exp", limits)
	set("swiglu_clamp_shexp", limits)
}

// compressedTensors draws what stands outside of layers and the modules of
// multi-token prediction.
func (s Spec) compressedTensors(w *weights) {
	w.prefix = "model."
	s.hyper(w, "hc_head.hc_", streams, 1)
	for i := range s.MTP {
		w.prefix = fmt.Sprintf("model.mtp.%d.", i)
		s.compressedLayer(w, s.Layers+i)
		w.norm("enorm", s.Hidden, 1)
		w.norm("hnorm", s.Hidden, 1)
		w.norm("norm", s.Hidden, 1)
		w.linear("e_proj", s.Hidden, s.Hidden, 1, false)
		w.linear("h_proj", s.Hidden, s.Hidden, 1, false)
		s.hyper(w, "hc_head.hc_", streams, 1)
	}
}

// compressedLayer draws layer i, whose prefix w has.
func (s Spec) compressedLayer(w *weights, i int) {
	l, v := s.Latent, s.Compressed
	w.norm("input_layernorm", s.Hidden, 1)
	w.norm("post_attention_layernorm", s.Hidden, 1)
	s.hyper(w, "attn_hc.", hyperMixes, 3)
	s.hyper(w, "ffn_hc.", hyperMixes, 3)

	w.linear("self_attn.q_a_proj", l.QueryRank, s.Hidden, 1, false)
	w.norm("self_attn.q_a_norm", l.QueryRank, 1)
	w.linear("self_attn.q_b_proj", s.Heads*s.HeadDim, l.QueryRank, 1, false)
	w.linear("self_attn.kv_proj", s.HeadDim, s.Hidden, 1, false)
	// Heads' queries have no weights of their own: keys have to be large.
	w.norm("self_attn.kv_norm", s.HeadDim, 2)
	w.float32s("self_attn.sinks", 0.5, 1, s.Heads)
	w.linear("self_attn.o_a_proj", v.Groups*v.Rank, s.Heads*s.HeadDim/v.Groups, 1, false)
	w.linear("self_attn.o_b_proj", s.Hidden, v.Groups*v.Rank, 2, false)
	if ratio := v.Ratios[i]; ratio > 0 {
		s.compressor(w, "self_attn.compressor.", ratio, s.HeadDim, 2)
		if ratio == csaRatio {
			s.compressor(w, "self_attn.compressor.indexer.", ratio, l.IndexDim, 1)
			w.linear("self_attn.compressor.indexer.q_b_proj", l.IndexHeads*l.IndexDim, l.QueryRank, 1, false)
			w.linear("self_attn.compressor.indexer.weights_proj", l.IndexHeads, s.Hidden, 1, false)
		}
	}

	w.linear("mlp.gate", s.Experts.Count, s.Hidden, 1, false)
	if i < v.HashLayers {
		s.hashTable(w)
	} else {
		w.float32s("mlp.gate.e_score_correction_bias", 0, 0.2, s.Experts.Count)
	}
	for e := range s.Experts.Count {
		w.gated(fmt.Sprintf("mlp.experts.%d.", e), s.Hidden, s.Experts.Inner)
	}
	w.gated("mlp.shared_experts.", s.Hidden, s.Experts.Shared*s.Experts.Inner)
}

func (s Spec) compressor(w *weights, prefix string, ratio, dim int, norm float64) {
	width := dim
	if ratio == csaRatio {
		width = 2 * dim
	}
	w.linear(prefix+"kv_proj", width, s.Hidden, 1, false)
	w.linear(prefix+"gate_proj", width, s.Hidden, 1, false)
	w.float32s(prefix+"position_bias", 0, 1, ratio, width)
	w.norm(prefix+"kv_norm", dim, norm)
}

// hyper draws the parameters of a hyper-connection or of the head's.
func (s Spec) hyper(w *weights, prefix string, mixes, scales int) {
	w.float32s(prefix+"fn", 0, 1/float64(2*s.Hidden), mixes, streams*s.Hidden)
	w.float32s(prefix+"base", 0, 0.5, mixes)
	w.float32s(prefix+"scale", hyperGateScale, 0.1, scales)
}

// hashTable draws which experts each token has: any that differ.
func (s Spec) hashTable(w *weights) {
	e := s.Experts
	w.float32s("mlp.gate.tid2eid", 0, 0, Vocab, e.Active)
	table := w.tensors[len(w.tensors)-1].Values
	random := rand.New(rand.NewPCG(s.Seed, uint64(len(w.tensors))))
	for token := range Vocab {
		for i, expert := range random.Perm(e.Count)[:e.Active] {
			table[token*e.Active+i] = float32(expert)
		}
	}
}

// float32s draws a tensor that is F32 in all files.
func (w *weights) float32s(name string, mean, deviation float64, shape ...int) {
	w.draw(name, mean, deviation, shape...)
	w.tensors[len(w.tensors)-1].DType = tensor.F32
}

// hashed stores tables of experts as files have them, d: I64 in safetensors,
// I32 in GGUF. Damaged ones, which hold no integers, stay as they are.
func hashed(tensors []Tensor, d tensor.DType) []Tensor {
	tensors = slices.Clone(tensors)
	for i, t := range tensors {
		if !strings.HasSuffix(t.Name, ".tid2eid") || t.Data != nil {
			continue
		}
		var data []byte
		for _, v := range t.Values {
			if v != float32(int32(v)) {
				data = nil
				break
			}
			if d == tensor.I64 {
				data = binary.LittleEndian.AppendUint64(data, uint64(int32(v)))
			} else {
				data = binary.LittleEndian.AppendUint32(data, uint32(int32(v)))
			}
		}
		if data != nil {
			tensors[i].DType, tensors[i].Data = d, data
		}
	}
	return tensors
}

// published gives the tensors of a safetensors file the names that its model is
// published under.
func (m *Model) published() *Model {
	if !m.compressed() {
		return m
	}
	out := *m
	out.Tensors = hashed(m.Tensors, tensor.I64)
	if m.Compressed.Native {
		out.Tensors = fuseExperts(out.Tensors)
		return &out
	}
	for i := range out.Tensors {
		out.Tensors[i].Name = m.PublishedName(out.Tensors[i].Name)
	}
	return &out
}

// PublishedName is what safetensors files call the tensor with a Hugging Face
// name, unless it is part of a stack.
func (s Spec) PublishedName(name string) string {
	if !s.compressed() || s.Compressed.Native {
		return name
	}
	return officialNames.Replace(name)
}

// officialNames turns Hugging Face's names into DeepSeek's own. A name is read
// from its start, and of several entries that fit the first is taken.
var officialNames = strings.NewReplacer(
	"model.embed_tokens.", "embed.", "model.norm.", "norm.", "lm_head.", "head.",
	"model.layers.", "layers.", "model.mtp.", "mtp.", "model.hc_head.hc_", "hc_head_", "hc_head.hc_", "hc_head_",
	"input_layernorm.", "attn_norm.", "post_attention_layernorm.", "ffn_norm.",
	"attn_hc.", "hc_attn_", "ffn_hc.", "hc_ffn_",
	"self_attn.q_a_proj.", "attn.wq_a.", "self_attn.q_a_norm.", "attn.q_norm.", "self_attn.q_b_proj.", "attn.wq_b.",
	"self_attn.kv_proj.", "attn.wkv.", "self_attn.kv_norm.", "attn.kv_norm.", "self_attn.sinks", "attn.attn_sink",
	"self_attn.o_a_proj.", "attn.wo_a.", "self_attn.o_b_proj.", "attn.wo_b.",
	"self_attn.compressor.indexer.q_b_proj.", "attn.indexer.wq_b.",
	"self_attn.compressor.indexer.weights_proj.", "attn.indexer.weights_proj.",
	"self_attn.compressor.indexer.kv_proj.", "attn.indexer.compressor.wkv.",
	"self_attn.compressor.indexer.gate_proj.", "attn.indexer.compressor.wgate.",
	"self_attn.compressor.indexer.position_bias", "attn.indexer.compressor.ape",
	"self_attn.compressor.indexer.kv_norm.", "attn.indexer.compressor.norm.",
	"self_attn.compressor.kv_proj.", "attn.compressor.wkv.", "self_attn.compressor.gate_proj.", "attn.compressor.wgate.",
	"self_attn.compressor.position_bias", "attn.compressor.ape", "self_attn.compressor.kv_norm.", "attn.compressor.norm.",
	"mlp.gate.e_score_correction_bias", "ffn.gate.bias", "mlp.", "ffn.",
	".gate_proj.", ".w1.", ".down_proj.", ".w2.", ".up_proj.", ".w3.",
)

// fuseExperts joins the experts of a layer as transformers saves them: gates and
// up projections in one tensor, the former first. Others get the names that some
// of its versions have.
func fuseExperts(tensors []Tensor) []Tensor {
	var out []Tensor
	at := map[string]int{}
	join := func(name string, t Tensor) {
		i, ok := at[name]
		if !ok {
			i = len(out)
			at[name] = i
			out = append(out, Tensor{Name: name, Shape: append([]int{0}, t.Shape...)})
		}
		out[i].Shape[0]++
		out[i].Values = append(out[i].Values, t.Values...)
	}
	for i, t := range tensors {
		layer, rest, ok := strings.Cut(t.Name, ".mlp.experts.")
		switch {
		case !ok:
			t.Name = strings.Replace(t.Name, ".indexer.weights_proj.", ".indexer.scorer.weights_proj.", 1)
			out = append(out, t)
		case strings.HasSuffix(rest, ".gate_proj.weight"):
			up := tensors[i+1]
			t.Shape = []int{t.Shape[0] + up.Shape[0], t.Shape[1]}
			t.Values = slices.Concat(t.Values, up.Values)
			join(layer+".mlp.experts.gate_up_proj", t)
		case strings.HasSuffix(rest, ".down_proj.weight"):
			join(layer+".mlp.experts.down_proj", t)
		}
	}
	return out
}
