package main

import (
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/tensor"
)

// writeRandom writes a BF16 model of a shape. The same shape gives the same
// bytes on every machine.
func writeRandom(path, name string, s shape) error {
	metadata := append(s.metadata(name), checkpoint.Pair{Key: "general.file_type", Value: uint32(32)}) // mostly BF16
	return writeFile(path, func(w io.Writer) error {
		return checkpoint.WriteGGUF(w, metadata, s.tensors())
	})
}

// writeFile makes a file complete or not at all.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// tensors are drawn so that activations stay near 1 however many layers there
// are: projections keep the size of what goes in, and the final norm gives
// logits that spread by 2.4, as those of trained models do. A router's spread
// by 1, so that all experts have their turn.
func (s shape) tensors() []checkpoint.TensorWriter {
	head := 2.4 / math.Sqrt(float64(s.hidden))
	tensors := []checkpoint.TensorWriter{
		matrix("token_embd", head, s.vocab, s.hidden),
		norm("output_norm", s.hidden),
	}
	if s.untied {
		tensors = append(tensors, matrix("output", head, s.vocab, s.hidden))
	}
	for i := range s.layers {
		l := layer(fmt.Sprintf("blk.%d.", i))
		tensors = append(tensors, l.norm("attn_norm", s.hidden))
		if s.mla != nil {
			tensors = append(tensors, s.latentAttention(l)...)
		} else {
			tensors = append(tensors, s.attention(l)...)
		}
		tensors = append(tensors, l.norm("ffn_norm", s.hidden))
		if s.moe != nil && i >= s.moe.dense {
			tensors = append(tensors, s.experts(l)...)
		} else {
			tensors = append(tensors, l.mlp("", s.ffn, s.hidden)...)
		}
	}
	return tensors
}

func (s shape) attention(l layer) []checkpoint.TensorWriter {
	q, kv := s.heads*s.width, s.kvHeads*s.width
	tensors := []checkpoint.TensorWriter{
		l.linear("attn_q", q, s.hidden), l.linear("attn_k", kv, s.hidden), l.linear("attn_v", kv, s.hidden),
		l.linear("attn_output", s.hidden, q),
	}
	if s.qkNorm {
		tensors = append(tensors, l.norm("attn_q_norm", s.width), l.norm("attn_k_norm", s.width))
	}
	return tensors
}

func (s shape) latentAttention(l layer) []checkpoint.TensorWriter {
	a := s.mla
	q := s.heads * (a.nope + a.rope)
	tensors := []checkpoint.TensorWriter{
		l.linear("attn_kv_a_mqa", a.latent+a.rope, s.hidden), l.norm("attn_kv_a_norm", a.latent),
		// Transposed, for queries to be taken to the latent.
		matrix(string(l)+"attn_k_b", 1/math.Sqrt(float64(a.latent)), s.heads, a.latent, a.nope),
		l.linear("attn_v_b", s.heads, a.value, a.latent),
		l.linear("attn_output", s.hidden, s.heads*a.value),
	}
	rank := s.queryRank()
	if rank == 0 {
		return append(tensors, l.linear("attn_q", q, s.hidden))
	}
	return append(tensors, l.linear("attn_q_a", rank, s.hidden), l.norm("attn_q_a_norm", rank), l.linear("attn_q_b", q, rank))
}

func (s shape) experts(l layer) []checkpoint.TensorWriter {
	m := s.moe
	tensors := []checkpoint.TensorWriter{
		// No file has a router of less than F32.
		random(string(l)+"ffn_gate_inp", tensor.F32, 0, 1/math.Sqrt(float64(s.hidden)), m.experts, s.hidden),
		l.linear("ffn_gate_exps", m.experts, m.ffn, s.hidden), l.linear("ffn_up_exps", m.experts, m.ffn, s.hidden),
		l.linear("ffn_down_exps", m.experts, s.hidden, m.ffn),
	}
	if m.shared > 0 {
		tensors = append(tensors, l.mlp("_shexp", m.shared*m.ffn, s.hidden)...)
	}
	return tensors
}

// A layer is what the names of its tensors begin with.
type layer string

func (l layer) norm(name string, n int) checkpoint.TensorWriter { return norm(string(l)+name, n) }

// linear is a projection, or several, [.., out, in].
func (l layer) linear(name string, shape ...int) checkpoint.TensorWriter {
	return matrix(string(l)+name, 1/math.Sqrt(float64(shape[len(shape)-1])), shape...)
}

func (l layer) mlp(suffix string, inner, hidden int) []checkpoint.TensorWriter {
	return []checkpoint.TensorWriter{
		l.linear("ffn_gate"+suffix, inner, hidden), l.linear("ffn_up"+suffix, inner, hidden), l.linear("ffn_down"+suffix, hidden, inner),
	}
}

// matrix has values about 0, in BF16.
func matrix(name string, deviation float64, shape ...int) checkpoint.TensorWriter {
	return random(name, tensor.BF16, 0, deviation, shape...)
}

// norm is [n] factors about 1, in F32.
func norm(name string, n int) checkpoint.TensorWriter { return random(name, tensor.F32, 1, 0.2, n) }

// random has normally distributed values.
func random(name string, d tensor.DType, mean, deviation float64, shape ...int) checkpoint.TensorWriter {
	return checkpoint.TensorWriter{
		Name: name + ".weight", DType: d, Shape: shape,
		Write: func(w io.Writer) error {
			numbers, last := source(name), len(shape)-1
			values, row := make([]float32, shape[last]), make([]byte, d.RowBytes(shape[last]))
			rows := 1
			for _, n := range shape[:last] {
				rows *= n
			}
			for range rows {
				for i := range values {
					values[i] = float32(mean + float64(deviation*numbers.NormFloat64())) // not fused on any machine
				}
				if err := tensor.Encode(d, row, values); err != nil {
					return err
				}
				if _, err := w.Write(row); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// source draws the numbers of one tensor.
func source(name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(1, h.Sum64()))
}
