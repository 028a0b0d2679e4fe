package main

import (
	"encoding/binary"
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
// logits that spread by 2.4, as those of trained models do.
func (s shape) tensors() []checkpoint.TensorWriter {
	q, kv := s.heads*s.width, s.kvHeads*s.width
	tensors := []checkpoint.TensorWriter{
		matrix("token_embd", s.vocab, s.hidden, 2.4/math.Sqrt(float64(s.hidden))),
		norm("output_norm", s.hidden),
	}
	for i := range s.layers {
		linear := func(name string, out, in int) checkpoint.TensorWriter {
			return matrix(fmt.Sprintf("blk.%d.%s", i, name), out, in, 1/math.Sqrt(float64(in)))
		}
		layer := func(name string, n int) checkpoint.TensorWriter {
			return norm(fmt.Sprintf("blk.%d.%s", i, name), n)
		}
		tensors = append(tensors,
			layer("attn_norm", s.hidden),
			linear("attn_q", q, s.hidden), linear("attn_k", kv, s.hidden), linear("attn_v", kv, s.hidden),
			linear("attn_output", s.hidden, q),
			layer("ffn_norm", s.hidden),
			linear("ffn_gate", s.ffn, s.hidden), linear("ffn_up", s.ffn, s.hidden), linear("ffn_down", s.hidden, s.ffn))
		if s.qkNorm {
			tensors = append(tensors, layer("attn_q_norm", s.width), layer("attn_k_norm", s.width))
		}
	}
	return tensors
}

// matrix is [rows, cols] of normally distributed values, in BF16.
func matrix(name string, rows, cols int, deviation float64) checkpoint.TensorWriter {
	return checkpoint.TensorWriter{
		Name: name + ".weight", DType: tensor.BF16, Shape: []int{rows, cols},
		Write: func(w io.Writer) error {
			random := source(name)
			row := make([]byte, 2*cols)
			for range rows {
				for i := range cols {
					v := tensor.F32ToBF16(float32(deviation * random.NormFloat64()))
					binary.LittleEndian.PutUint16(row[2*i:], v)
				}
				if _, err := w.Write(row); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// norm is [n] factors about 1, in F32.
func norm(name string, n int) checkpoint.TensorWriter {
	return checkpoint.TensorWriter{
		Name: name + ".weight", DType: tensor.F32, Shape: []int{n},
		Write: func(w io.Writer) error {
			random := source(name)
			values := make([]float32, n)
			for i := range values {
				values[i] = float32(1 + 0.2*random.NormFloat64())
			}
			return binary.Write(w, binary.LittleEndian, values)
		},
	}
}

// source draws the numbers of one tensor.
func source(name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(1, h.Sum64()))
}
