package convert

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// architectures maps model_type to GGUF's general.architecture.
var architectures = map[string]string{
	"llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3",
	"gemma3": "gemma3", "gemma3_text": "gemma3", "smollm3": "smollm3",
	"mixtral": "llama", "qwen3_moe": "qwen3moe",
}

// unsupported is the error for an architecture whose files are not written.
func unsupported(arch string, supported iter.Seq[string]) error {
	return fmt.Errorf("architecture %s cannot be written as GGUF yet; supported are %s", arch, strings.Join(slices.Compact(slices.Sorted(supported)), ", "))
}

// fromSafetensors gives tensors and configuration the names and forms that
// GGUF readers expect.
func fromSafetensors(src Source, c *model.Config) (*plan, error) {
	arch, ok := architectures[c.Architecture]
	if !ok {
		return nil, unsupported(c.Architecture, maps.Keys(architectures))
	}
	weights, err := filepath.Abs(src.Checkpoint.Files()[0])
	if err != nil {
		return nil, err
	}
	p := &plan{}
	if err := p.describe(arch, filepath.Base(filepath.Dir(weights)), c); err != nil {
		return nil, err
	}
	if src.Tokenizer != nil {
		if err := p.vocabulary(src); err != nil {
			return nil, err
		}
	}
	if src.Template != "" {
		p.set("tokenizer.chat_template", src.Template)
	}
	if err := p.generation(src, c); err != nil {
		return nil, err
	}
	return p, p.load(src.Checkpoint, arch, c)
}

// vocabulary writes the tokenizer under GGUF's keys or, where those cannot
// express it, as the tokenizer.json that it is, for readers that know this key.
func (p *plan) vocabulary(src Source) error {
	if keys, err := src.Tokenizer.GGUF(); err == nil {
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			p.set(key, keys[key])
		}
		return nil
	}
	text, err := src.Checkpoint.File("tokenizer.json")
	if err != nil {
		return err
	}
	p.set("tokenizer.huggingface.json", string(text))
	p.set("tokenizer.ggml.add_bos_token", src.Tokenizer.AddsBOS())
	tokens := src.Tokenizer.SpecialTokens()
	for _, r := range [...]struct{ role, key string }{{"bos_token", "bos"}, {"eos_token", "eos"}, {"unk_token", "unknown"}, {"pad_token", "padding"}} {
		if id, ok := src.Tokenizer.ID(tokens[r.role]); ok {
			p.set("tokenizer.ggml."+r.key+"_token_id", uint32(id))
		}
	}
	return nil
}

// generation writes what generation_config.json recommends. End tokens that the
// tokenizer does not know as such get the keys there are for them.
func (p *plan) generation(src Source, c *model.Config) error {
	g, err := src.Checkpoint.Generation()
	if err != nil {
		return err
	}
	pairs, err := g.Metadata()
	if err != nil {
		return err
	}
	for _, m := range pairs {
		p.set(m.Key, m.Value)
	}
	var known []int32
	if src.Tokenizer != nil {
		known = src.Tokenizer.EOG()
	}
	free := slices.DeleteFunc([]string{"eos", "eot", "eom"}, func(role string) bool { return p.has("tokenizer.ggml." + role + "_token_id") })
	for _, id := range append(g.EOS, c.EOS...) {
		switch {
		case slices.Contains(known, id):
			continue
		case len(free) == 0:
			return fmt.Errorf("GGUF files cannot express that token %d ends generation", id)
		}
		p.set("tokenizer.ggml."+free[0]+"_token_id", uint32(id))
		known, free = append(known, id), free[1:]
	}
	return nil
}

// describe writes the configuration under GGUF's keys. What has no key is an
// error: a reader would compute something else.
func (p *plan) describe(arch, name string, c *model.Config) error {
	p.set("general.architecture", arch)
	p.set("general.name", name)
	for key, value := range map[string]int{
		"context_length":          c.Context,
		"embedding_length":        c.Hidden,
		"block_count":             c.Layers,
		"feed_forward_length":     c.Intermediate,
		"attention.head_count":    c.Heads,
		"attention.head_count_kv": c.KVHeads,
		"attention.key_length":    c.HeadDim,
		"attention.value_length":  c.HeadDim,
		"rope.dimension_count":    c.HeadDim,
		"vocab_size":              c.Vocab,
	} {
		p.set(arch+"."+key, uint32(value))
	}
	p.set(arch+".attention.layer_norm_rms_epsilon", float32(c.NormEps))
	p.set(arch+".rope.freq_base", float32(c.Rope.Theta))
	slices.SortFunc(p.metadata, func(a, b checkpoint.Pair) int { return strings.Compare(a.Key, b.Key) })

	switch {
	case arch == "gemma3":
		if err := p.gemma3(c); err != nil {
			return err
		}
	case slices.Contains(c.Sliding, true) && c.Window < c.Context:
		return fmt.Errorf("GGUF files of architecture %s cannot express the sliding window of %d", arch, c.Window)
	case c.LocalRope != nil:
		return fmt.Errorf("GGUF files of architecture %s cannot express rotary embeddings of sliding layers", arch)
	}
	for i, skips := range c.NoRope {
		if skips != ((i+1)%4 == 0) {
			return fmt.Errorf("GGUF files of architecture %s cannot express that layer %d differs in its use of rotary embeddings", arch, i)
		}
	}
	if err := p.describeExperts(arch, c); err != nil {
		return err
	}
	s := c.Rope.Scaling
	switch s.Type {
	case "linear", "yarn":
		p.set(arch+".rope.scaling.type", s.Type)
		p.set(arch+".rope.scaling.factor", float32(s.Factor))
	}
	if s.Type == "yarn" {
		p.set(arch+".rope.scaling.original_context_length", uint32(s.Original))
		p.set(arch+".rope.scaling.yarn_beta_fast", float32(s.BetaFast))
		p.set(arch+".rope.scaling.yarn_beta_slow", float32(s.BetaSlow))
		if s.Attention != 0 { // readers multiply it by yarn's own factor
			p.set(arch+".rope.scaling.attn_factor", float32(s.Attention/(0.1*math.Log(s.Factor)+1)))
		}
	}
	return nil
}

func (p *plan) gemma3(c *model.Config) error {
	scale := 1 / math.Sqrt(float64(c.HeadDim))
	if c.Layers == 62 { // 27B; the reader knows it by its depth
		scale = 1 / math.Sqrt(float64(c.Hidden)/float64(c.Heads))
	}
	if math.Abs(c.QueryScale-scale) > 1e-9 {
		return fmt.Errorf("GGUF files of architecture gemma3 cannot express query_pre_attn_scalar %v", 1/(c.QueryScale*c.QueryScale))
	}
	pattern := 1 + slices.Index(c.Sliding, false)
	if pattern == 0 {
		pattern = c.Layers + 1
	}
	for i, slides := range c.Sliding {
		if slides != ((i+1)%pattern != 0) {
			return fmt.Errorf("GGUF files of architecture gemma3 cannot express the order of sliding layers: layer %d", i)
		}
	}
	if c.LocalRope.Scaling != (nn.RopeScaling{}) {
		return fmt.Errorf("GGUF files of architecture gemma3 cannot express rope scaling of sliding layers")
	}
	p.set("gemma3.attention.sliding_window", uint32(c.Window))
	p.set("gemma3.attention.sliding_window_pattern", uint32(pattern))
	p.set("gemma3.rope.freq_base_swa", float32(c.LocalRope.Theta))
	return nil
}

// load lists the tensors that have a GGUF name, in the form GGUF gives them:
// query and key rows as neighbouring rotary pairs where readers expect them so,
// Gemma's norms as 1 + w, Llama 3's scaling as a tensor.
func (p *plan) load(source *checkpoint.Checkpoint, arch string, c *model.Config) error {
	for _, name := range source.Names() {
		if ok, err := p.loadExperts(source, arch, name, c); ok {
			if err != nil {
				return err
			}
			continue
		}
		stored, ok := checkpoint.GGUFName(arch, name)
		if !ok || name == "lm_head.weight" && c.TieEmbeddings {
			continue
		}
		w, err := load(source, name, stored)
		if err != nil {
			return err
		}
		if model.Interleaved(arch) && (strings.Contains(name, "q_proj.") || strings.Contains(name, "k_proj.")) {
			w.reorder(interleave(c.HeadDim))
		}
		if arch == "gemma3" && strings.HasSuffix(name, "norm.weight") {
			for i := range w.vector {
				w.vector[i]++
			}
		}
		p.weights = append(p.weights, w)
	}
	if c.Rope.Scaling.Type == "llama3" {
		rope, err := nn.NewRope(c.Rope, nil)
		if err != nil {
			return err
		}
		p.weights = append(p.weights, weight{name: "rope_freqs.weight", shape: []int{c.HeadDim / 2}, vector: rope.Divisors()})
	}
	return nil
}

// reorder changes the order of rows, or of the values of a bias.
func (w *weight) reorder(order func(row int) int) {
	if w.matrices != nil {
		w.order = order
		return
	}
	old := slices.Clone(w.vector)
	for i := range w.vector {
		w.vector[i] = old[order(i)]
	}
}
