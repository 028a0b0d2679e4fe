package exec

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/testmodel"
)

// reference is a dense decoder in float64, written from the published
// formulas: no cache, no batches, no chunks, nothing shared with the engine.
// It reads config.json and the tensors under their Hugging Face names.
type reference struct {
	Family     string  `json:"model_type"`
	Hidden     int     `json:"hidden_size"`
	Layers     int     `json:"num_hidden_layers"`
	Heads      int     `json:"num_attention_heads"`
	KVHeads    int     `json:"num_key_value_heads"`
	HeadDim    int     `json:"head_dim"`
	RMSNormEps float64 `json:"rms_norm_eps"`
	Tied       bool    `json:"tie_word_embeddings"`
	Theta      float64 `json:"rope_theta"`
	LocalTheta float64 `json:"rope_local_base_freq"`
	Scaling    struct {
		Type      string  `json:"rope_type"`
		Factor    float64 `json:"factor"`
		Original  float64 `json:"original_max_position_embeddings"`
		Low       float64 `json:"low_freq_factor"`
		High      float64 `json:"high_freq_factor"`
		Attention float64 `json:"attention_factor"`
		MScale    float64 `json:"mscale_all_dim"`
	} `json:"rope_scaling"`
	NoRopeLayers []int    `json:"no_rope_layers"`
	Window       int      `json:"sliding_window"`
	UseWindow    bool     `json:"use_sliding_window"`
	WindowFrom   int      `json:"max_window_layers"`
	Pattern      int      `json:"sliding_window_pattern"`
	LayerTypes   []string `json:"layer_types"`
	QueryScalar  float64  `json:"query_pre_attn_scalar"`

	latentFields
	expertFields
	compressedFields
	mixtureFields

	wrong      string // the one thing that is computed as it should not be
	nsa        *nsaReference
	embedScale float64
	tensors    map[string]testmodel.Tensor
	rows       map[string][][]float64 // of tensors, as they are first needed
}

func newReference(t *testing.T, m *testmodel.Model) *reference {
	t.Helper()
	data, err := json.Marshal(m.Config)
	if err != nil {
		t.Fatal(err)
	}
	r := &reference{embedScale: 1, tensors: map[string]testmodel.Tensor{}, rows: map[string][][]float64{}}
	if err := json.Unmarshal(data, r); err != nil {
		t.Fatal(err)
	}
	if r.HeadDim == 0 {
		r.HeadDim = r.Hidden / r.Heads
	}
	if r.gemma() {
		r.embedScale = math.Sqrt(float64(r.Hidden))
	}
	for _, tensor := range m.Tensors {
		r.tensors[tensor.Name] = tensor
		if len(tensor.Shape) == 3 {
			r.unfuse(tensor)
		}
	}
	if r.Family == "nsa" {
		r.readNSA(t, data)
	}
	return r
}

func (r *reference) gemma() bool { return strings.HasPrefix(r.Family, "gemma3") }

// logProbs returns ln softmax of the logits after each token.
func (r *reference) logProbs(tokens []int32) [][]float64 {
	head := "lm_head"
	if r.Tied {
		head = "model.embed_tokens"
	}
	x := r.states(tokens)
	for t := range x {
		x[t] = logSoftmax64(r.linear(head, x[t]))
	}
	return x
}

// states returns the final normalised states of tokens.
func (r *reference) states(tokens []int32) [][]float64 {
	if r.compressedFields.OutGroups > 0 {
		return r.compressedStates(tokens)
	}
	var x [][]float64
	for _, token := range tokens {
		x = append(x, scaled(r.row("model.embed_tokens.weight", int(token)), r.embedScale))
	}
	for i := range r.Layers {
		x = r.layer(i, x)
	}
	return r.norms("model.norm", x)
}

// layer returns the residual stream after layer i.
func (r *reference) layer(i int, x [][]float64) [][]float64 {
	layer := fmt.Sprintf("model.layers.%d.", i)
	attended := r.attention(i, layer+"self_attn.", r.norms(layer+"input_layernorm", x))
	beforeMLP := "post_attention_layernorm"
	if r.gemma() {
		attended = r.norms(layer+"post_attention_layernorm", attended)
		beforeMLP = "pre_feedforward_layernorm"
	}
	x = sum(x, attended)
	y := r.norms(layer+beforeMLP, x)
	for t := range y {
		y[t] = r.ffn(layer, y[t])
	}
	if r.gemma() {
		y = r.norms(layer+"post_feedforward_layernorm", y)
	}
	return sum(x, y)
}

func (r *reference) attention(layer int, prefix string, x [][]float64) [][]float64 {
	if r.KVRank > 0 {
		return r.latentAttention(prefix, x)
	}
	if r.nsa != nil {
		return r.nativeSparse(prefix, x)
	}
	d := r.HeadDim
	scale := 1 / math.Sqrt(float64(d))
	if r.gemma() {
		scale = 1 / math.Sqrt(r.QueryScalar)
	}
	var q, k, v [][]float64
	for pos := range x {
		q = append(q, r.linear(prefix+"q_proj", x[pos]))
		k = append(k, r.linear(prefix+"k_proj", x[pos]))
		v = append(v, r.linear(prefix+"v_proj", x[pos]))
		for _, heads := range []struct {
			norm string
			x    []float64
		}{{prefix + "q_norm", q[pos]}, {prefix + "k_norm", k[pos]}} {
			for h := range slices.Chunk(heads.x, d) {
				if _, ok := r.tensors[heads.norm+".weight"]; ok {
					copy(h, r.norm(heads.norm, h))
				}
				r.rotate(layer, h, pos)
			}
		}
	}
	out := make([][]float64, len(x))
	for pos := range x {
		joined := make([]float64, r.Heads*d)
		for h := range r.Heads {
			g := h / (r.Heads / r.KVHeads) // the key-value head
			var scores []float64
			first := 0
			for from := range pos + 1 {
				if !r.visible(layer, pos, from) {
					first = from + 1
					continue
				}
				scores = append(scores, scale*dot64(q[pos][h*d:(h+1)*d], k[from][g*d:(g+1)*d]))
			}
			for i, p := range logSoftmax64(scores) {
				for j := range d {
					joined[h*d+j] += math.Exp(p) * v[first+i][g*d+j]
				}
			}
		}
		out[pos] = r.linear(prefix+"o_proj", joined)
	}
	return out
}

// visible reports whether a query at pos attends to a key at from ≤ pos.
func (r *reference) visible(layer, pos, from int) bool {
	return !r.slides(layer) || pos-from < r.Window
}

func (r *reference) slides(layer int) bool {
	switch {
	case r.Window == 0:
		return false
	case len(r.LayerTypes) > 0:
		return r.LayerTypes[layer] == "sliding_attention"
	case r.gemma():
		return (layer+1)%r.Pattern != 0
	case r.Family == "mistral" || r.Family == "mixtral":
		return true
	case r.Family == "smollm3":
		return r.UseWindow && r.NoRopeLayers[layer] == 0
	}
	return r.UseWindow && layer >= r.WindowFrom
}

// rotate turns the pairs (i, i+d/2) of a head.
func (r *reference) rotate(layer int, h []float64, pos int) {
	if r.NoRopeLayers != nil && r.NoRopeLayers[layer] == 0 {
		return
	}
	s, theta := r.Scaling, r.Theta
	if r.gemma() && r.slides(layer) {
		s.Type, theta = "", r.LocalTheta
	}
	d := float64(len(h))
	for i := range len(h) / 2 {
		f := math.Pow(theta, -2*float64(i)/d)
		magnitude := 1.0
		switch s.Type {
		case "linear":
			f /= s.Factor
		case "llama3":
			wavelength := 2 * math.Pi / f
			if wavelength > s.Original/s.Low {
				f /= s.Factor
			} else if wavelength >= s.Original/s.High {
				smooth := (s.Original/wavelength - s.Low) / (s.High - s.Low)
				f = (1-smooth)*f/s.Factor + smooth*f
			}
		case "yarn":
			corrected := func(rotations float64) float64 {
				return d * math.Log(s.Original/(rotations*2*math.Pi)) / (2 * math.Log(theta))
			}
			low, high := math.Max(math.Floor(corrected(32)), 0), math.Min(math.Ceil(corrected(1)), d-1)
			if low == high {
				high += 0.001
			}
			ramp := math.Min(math.Max((float64(i)-low)/(high-low), 0), 1)
			f = f/s.Factor*ramp + f*(1-ramp)
			magnitude = 0.1*math.Log(s.Factor) + 1
			if s.Attention != 0 {
				magnitude = s.Attention
			}
		}
		sin, cos := math.Sincos(float64(pos) * f)
		a, b := h[i], h[i+len(h)/2]
		h[i], h[i+len(h)/2] = magnitude*(a*cos-b*sin), magnitude*(b*cos+a*sin)
	}
}

func (r *reference) mlp(prefix string, x []float64) []float64 {
	gate, up := r.linear(prefix+"gate_proj", x), r.linear(prefix+"up_proj", x)
	for i, g := range gate {
		if r.gemma() {
			gate[i] = 0.5 * g * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(g+0.044715*g*g*g))) * up[i]
		} else {
			gate[i] = g / (1 + math.Exp(-g)) * up[i]
		}
	}
	return r.linear(prefix+"down_proj", gate)
}

func (r *reference) norms(name string, x [][]float64) [][]float64 {
	out := make([][]float64, len(x))
	for t := range x {
		out[t] = r.norm(name, x[t])
	}
	return out
}

func (r *reference) norm(name string, x []float64) []float64 {
	inverse := 1 / math.Sqrt(dot64(x, x)/float64(len(x))+r.RMSNormEps)
	out := scaled(x, inverse)
	for i, w := range r.tensors[name+".weight"].Values {
		if r.gemma() {
			out[i] *= 1 + float64(w)
		} else {
			out[i] *= float64(w)
		}
	}
	return out
}

func (r *reference) linear(name string, x []float64) []float64 {
	out := make([]float64, r.tensors[name+".weight"].Shape[0])
	for i := range out {
		out[i] = dot64(r.row(name+".weight", i), x)
		if bias, ok := r.tensors[name+".bias"]; ok {
			out[i] += float64(bias.Values[i])
		}
	}
	return out
}

func (r *reference) row(name string, i int) []float64 {
	rows, ok := r.rows[name]
	if !ok {
		t := r.tensors[name]
		for row := range slices.Chunk(t.Values, t.Shape[1]) {
			wide := make([]float64, len(row))
			for j, v := range row {
				wide[j] = float64(v)
			}
			rows = append(rows, wide)
		}
		r.rows[name] = rows
	}
	return rows[i]
}

func dot64(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func scaled(x []float64, a float64) []float64 {
	out := slices.Clone(x)
	for i := range out {
		out[i] *= a
	}
	return out
}

func sum(a, b [][]float64) [][]float64 {
	out := make([][]float64, len(a))
	for t := range a {
		out[t] = slices.Clone(a[t])
		for i := range b[t] {
			out[t][i] += b[t][i]
		}
	}
	return out
}

func logSoftmax64(x []float64) []float64 {
	high, total := slices.Max(x), 0.0
	for _, v := range x {
		total += math.Exp(v - high)
	}
	out := slices.Clone(x)
	for i := range out {
		out[i] -= high + math.Log(total)
	}
	return out
}
