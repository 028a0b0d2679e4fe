package testmodel

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/tensor"
)

// metadata are the keys that a converter would write.
func (s Spec) metadata() []checkpoint.Pair {
	var list []checkpoint.Pair
	set := func(key string, value any) {
		list = slices.DeleteFunc(list, func(p checkpoint.Pair) bool { return p.Key == key })
		list = append(list, checkpoint.Pair{Key: key, Value: value})
	}
	a := s.arch()
	set("general.architecture", a)
	set("general.name", "tiny "+s.Family)
	for _, n := range []struct {
		key   string
		value int
	}{
		{"context_length", s.Context},
		{"embedding_length", s.Hidden},
		{"block_count", s.Layers},
		{"feed_forward_length", s.Intermediate},
		{"attention.head_count", s.Heads},
		{"attention.head_count_kv", s.KVHeads},
		{"attention.key_length", s.HeadDim},
		{"attention.value_length", s.HeadDim},
		{"rope.dimension_count", s.HeadDim},
		{"vocab_size", Vocab},
	} {
		set(a+"."+n.key, uint32(n.value))
	}
	set(a+".attention.layer_norm_rms_epsilon", float32(s.Eps))
	set(a+".rope.freq_base", float32(s.Theta))
	if s.Family == "gemma3_text" {
		set(a+".attention.sliding_window", uint32(s.Window))
		set(a+".attention.sliding_window_pattern", uint32(s.Every))
		set(a+".rope.freq_base_swa", float32(s.LocalTheta))
	}
	if r := s.Scaling; r.Type == "linear" || r.Type == "yarn" { // llama3's is a tensor
		set(a+".rope.scaling.type", r.Type)
		set(a+".rope.scaling.factor", float32(r.Factor))
		if r.Type == "yarn" {
			set(a+".rope.scaling.original_context_length", uint32(r.Original))
		}
	}
	own := func(key string, value any) { set(a+"."+key, value) }
	if s.latent() {
		s.deepseekMetadata(own)
	}
	if s.mixed() {
		s.mixtureMetadata(own)
	}
	if s.compressed() {
		s.compressedMetadata(own)
	}
	texts, types := ggufTokens()
	set("tokenizer.ggml.model", "gpt2")
	set("tokenizer.ggml.pre", "gpt-2")
	set("tokenizer.ggml.tokens", texts)
	set("tokenizer.ggml.token_type", types)
	set("tokenizer.ggml.merges", merges[:])
	set("tokenizer.ggml.bos_token_id", uint32(BOS))
	set("tokenizer.ggml.eos_token_id", uint32(EOS))
	set("tokenizer.ggml.eot_token_id", uint32(End))
	set("tokenizer.ggml.add_bos_token", s.prependBOS())
	set("tokenizer.chat_template", ChatTemplate)
	return list
}

// WriteGGUF writes the model to path, or to NAME-00001-of-0000N.gguf beside
// it if it has several parts.
func (m *Model) WriteGGUF(path string) error {
	switch {
	case (m.Family == "mistral" || m.Family == "mixtral") && m.Window > 0:
		return fmt.Errorf("%s: a GGUF file cannot give %s a sliding window", path, m.Family)
	case m.Family == "qwen3_moe" && m.Experts.Every > 1:
		return fmt.Errorf("%s: a GGUF file of %s has experts in every layer", path, m.Family)
	case m.Family == "nsa":
		return fmt.Errorf("%s: there is no GGUF form of nsa", path)
	case m.compressed() && m.MTP > 0:
		return fmt.Errorf("%s: a GGUF file of %s has no modules of multi-token prediction", path, m.Family)
	case m.Family == "smollm3" && m.Every != 4:
		return fmt.Errorf("%s: a GGUF file of smollm3 rotates all but every fourth layer", path)
	}
	whole := *m
	whole.Tensors = stackExperts(hashed(m.Tensors, tensor.I32))
	if m.Scaling.Type == "llama3" {
		whole.Tensors = append(whole.Tensors, m.ropeDivisors())
	}
	if m.latent() && !m.Latent.Joint {
		whole.Tensors = m.splitKVB(whole.Tensors)
	}
	m = &whole
	for i, part := range m.parts() {
		var metadata []checkpoint.Pair
		if i == 0 {
			metadata = slices.Clone(m.Metadata)
		}
		if m.Parts > 1 {
			metadata = append(metadata,
				checkpoint.Pair{Key: "split.no", Value: uint16(i)},
				checkpoint.Pair{Key: "split.count", Value: uint16(m.Parts)},
				checkpoint.Pair{Key: "split.tensors.count", Value: int32(len(m.Tensors))})
		}
		if err := m.writePart(partName(path, i, m.Parts), metadata, part); err != nil {
			return err
		}
	}
	return nil
}

func (m *Model) writePart(path string, metadata []checkpoint.Pair, part []Tensor) error {
	var writers []checkpoint.TensorWriter
	for _, t := range part {
		t = m.convert(t)
		d := tensor.F32
		if n := len(t.Shape); n >= 2 && t.Shape[n-1]%m.DType.BlockLen() == 0 {
			d = m.DType
		}
		d, data, err := t.encode(d)
		if err != nil {
			return err
		}
		writers = append(writers, checkpoint.TensorWriter{
			Name: t.Name, DType: d, Shape: t.Shape,
			Write: func(w io.Writer) error { _, err := w.Write(data); return err },
		})
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := checkpoint.WriteGGUF(f, metadata, writers); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// convert gives a tensor the name and the layout that GGUF has for it.
func (m *Model) convert(t Tensor) Tensor {
	arch := m.arch()
	if arch == "gemma3" && isNorm(t.Name) {
		t.Values = slices.Clone(t.Values)
		for i := range t.Values {
			t.Values[i]++
		}
	}
	if arch == "llama" || arch == "smollm3" {
		switch {
		case strings.Contains(t.Name, ".q_proj."):
			t.Values = interleave(t.Values, m.Heads, m.HeadDim)
		case strings.Contains(t.Name, ".k_proj."):
			t.Values = interleave(t.Values, m.KVHeads, m.HeadDim)
		}
	}
	if name, ok := checkpoint.GGUFName(arch, t.Name); ok {
		t.Name = name
	}
	return t
}

// interleave permutes the rows of a projection (or the values of its bias),
// so that the rotary pair (i, i+width/2) of a head becomes (2i, 2i+1).
func interleave(values []float32, heads, width int) []float32 {
	size := len(values) / (heads * width) // of a row
	out := make([]float32, 0, len(values))
	for h := range heads {
		for i := range width / 2 {
			for half := range 2 {
				row := h*width + half*width/2 + i
				out = append(out, values[row*size:(row+1)*size]...)
			}
		}
	}
	return out
}

// ropeDivisors is llama3 scaling as GGUF carries it: what each frequency is
// divided by.
func (s Spec) ropeDivisors() Tensor {
	t := Tensor{Name: "rope_freqs.weight", Shape: []int{s.HeadDim / 2}}
	for i := range s.HeadDim / 2 {
		turns := s.Scaling.Original * math.Pow(s.Theta, -2*float64(i)/float64(s.HeadDim)) / (2 * math.Pi)
		// From 1 where a frequency turns often to 1/factor where it turns rarely.
		blend := min(max((turns-llama3Low)/(llama3High-llama3Low), 0), 1)
		t.Values = append(t.Values, float32(1/((1-blend)/s.Scaling.Factor+blend)))
	}
	return t
}
