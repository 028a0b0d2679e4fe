package model

import (
	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// MTP is a module of multi-token prediction (DeepSeek-V3, section 2.2): a model
// of one layer that makes, of the model's state at a position i and the token
// that follows, the state from which the token after that is predicted.
// Embedding and head are those of the model.
//
// What it keeps of a sequence has a place in the model's own cache, behind that
// of the model's layers: Model.Cache counts it, and a position is in the table
// of both or of neither.
type MTP struct {
	*decoder
	// join makes the layer's input of st.X, the embeddings of the tokens, and of
	// the states at the positions before them.
	join func(st *nn.State, states []float32)
}

// Forward computes a step whose tokens each follow the row's position: row i of
// states [rows, StateWidth] is what Model.States gives at Positions[i], and
// Tokens[i] the token at Positions[i]+1. states must not be workspace of st.
// The results are asked for with Hidden and Logits; several modules are chained
// by giving States of one to the next.
func (m *MTP) Forward(step *nn.Step, st *nn.State, states []float32) error {
	if err := m.Embed(step, st); err != nil {
		return err
	}
	mark := st.Mark()
	m.join(st, states)
	st.Release(mark)
	for _, l := range m.layers {
		l.Attention(step, st)
		l.FFN(step, st)
	}
	return st.Err()
}

// deepseekMTP loads the modules of DeepSeek-V3, which stand behind the layers
// under names of layers, or notes that they are not wanted.
func deepseekMTP(b *builder, d *decoder) {
	for i := b.Layers; i < b.Layers+b.MTPLayers; i++ {
		w := b.weights.Sub("model.layers.%d.", i)
		if !b.MTP {
			w.Ignore("")
			continue
		}
		w.Ignore("embed_tokens.")     // copies of the model's
		w.Ignore("shared_head.head.") //
		next, state := w.Norm("enorm", b.Hidden), w.Norm("hnorm", b.Hidden)
		project := w.Linear("eh_proj", b.Hidden, 2*b.Hidden)
		layer := deepseekLayer(b, i)
		d.mtp = append(d.mtp, &MTP{
			decoder: &decoder{
				config: b.Config, embed: d.embed, embedScale: d.embedScale, ropes: d.ropes, streams: 1,
				layers: []Layer{layer}, norm: w.Norm("shared_head.norm", b.Hidden), head: d.head,
			},
			// x = W·[RMSNorm(embed(t)); RMSNorm(h)]
			join: func(st *nn.State, states []float32) {
				h := b.Hidden
				both := st.Take(2 * len(st.X))
				for i, part := range [][]float32{next.Forward(st, st.X), state.Forward(st, states)} {
					st.Pool.Move(kernel.Vectors{X: both[i*h:], Row: 2 * h}, kernel.Vectors{X: part, Row: h}, len(part)/h, 1, h)
				}
				copy(st.X, project.Forward(st, both))
			},
		})
	}
}
