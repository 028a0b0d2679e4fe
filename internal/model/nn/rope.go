package nn

import (
	"fmt"
	"math"

	"github.com/foretoken/foretoken/internal/kernel"
)

// RopeConfig is rotary position embedding (Su et al. 2021) with the scalings
// that published checkpoints use.
type RopeConfig struct {
	Theta       float64
	Dim         int  // values of a head that are rotated
	Interleaved bool // pairs (2i, 2i+1) rather than (i, i+Dim/2)
	Scaling     RopeScaling
}

// RopeScaling stretches the frequencies beyond the trained context.
type RopeScaling struct {
	Type     string // "", "linear", "llama3" or "yarn"
	Factor   float64
	Original float64 // trained context length

	LowFreq, HighFreq  float64 // llama3: wavelengths per trained context
	BetaFast, BetaSlow float64 // yarn: rotations per trained context
	Attention          float64 // yarn: factor on cosines and sines; 0: 0.1·ln(Factor)+1
}

// Rope rotates queries and keys. Prepare computes the angles of a step's
// rows, which all layers share.
type Rope struct {
	RopeConfig
	frequencies []float64 // [Dim/2], radians per position
	scale       float64   // multiplies cosines and sines
}

// angles are those of one Rope for the rows of a step.
type angles struct {
	rope     *Rope
	cos, sin []float32 // [rows, Dim/2]
}

// Validate reports what keeps c from giving finite frequencies.
func (c RopeConfig) Validate() error {
	if c.Dim <= 0 || c.Dim%2 != 0 {
		return fmt.Errorf("rotary dimension is %d, expected a positive even number", c.Dim)
	}
	if !(c.Theta > 1) || math.IsInf(c.Theta, 0) {
		return fmt.Errorf("rope_theta is %v, expected a number above 1", c.Theta)
	}
	s := c.Scaling
	switch s.Type {
	case "":
		return nil
	case "linear", "llama3", "yarn":
	default:
		return fmt.Errorf("rope scaling %.40q is not supported: expected linear, llama3 or yarn", s.Type)
	}
	for _, f := range []struct {
		name  string
		value float64
		ok    bool
	}{
		{"factor", s.Factor, s.Factor >= 1},
		{"original_max_position_embeddings", s.Original, s.Original > 0 || s.Type == "linear"},
		{"low_freq_factor", s.LowFreq, s.LowFreq > 0 || s.Type != "llama3"},
		{"high_freq_factor", s.HighFreq, s.HighFreq > s.LowFreq || s.Type != "llama3"},
		{"beta_fast", s.BetaFast, s.BetaFast > 0 || s.Type != "yarn"},
		{"beta_slow", s.BetaSlow, s.BetaSlow > 0 || s.Type != "yarn"},
		{"attention_factor", s.Attention, s.Attention >= 0 || s.Type != "yarn"},
	} {
		if !f.ok || math.IsInf(f.value, 0) {
			return fmt.Errorf("rope scaling %s: %s is %v, which is out of range", s.Type, f.name, f.value)
		}
	}
	return nil
}

// NewRope computes frequencies. divisors, if not nil, divide them further:
// GGUF files carry Llama 3's scaling as such a tensor.
func NewRope(c RopeConfig, divisors []float32) (*Rope, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	half := c.Dim / 2
	r := &Rope{RopeConfig: c, frequencies: make([]float64, half), scale: 1}
	for i := range r.frequencies {
		r.frequencies[i] = c.plain(i)
	}
	switch s := c.Scaling; s.Type {
	case "linear":
		for i := range r.frequencies {
			r.frequencies[i] /= s.Factor
		}
	case "llama3":
		for i, f := range r.frequencies {
			r.frequencies[i] = s.llama3(f)
		}
	case "yarn":
		s.yarn(r.frequencies, c)
		r.scale = s.Attention
		if r.scale == 0 {
			r.scale = 0.1*math.Log(s.Factor) + 1
		}
	}
	if divisors != nil {
		if len(divisors) != half {
			return nil, fmt.Errorf("rope_freqs: %d values, expected %d", len(divisors), half)
		}
		for i, d := range divisors {
			if !(d > 0) {
				return nil, fmt.Errorf("rope_freqs: value %d is %v, expected a positive number", i, d)
			}
			r.frequencies[i] /= float64(d)
		}
	}
	return r, nil
}

// llama3 keeps high frequencies, divides low ones and blends those between.
func (s RopeScaling) llama3(f float64) float64 {
	wavelength := 2 * math.Pi / f
	switch {
	case wavelength > s.Original/s.LowFreq:
		return f / s.Factor
	case wavelength < s.Original/s.HighFreq:
		return f
	}
	smooth := (s.Original/wavelength - s.LowFreq) / (s.HighFreq - s.LowFreq)
	return (1-smooth)*f/s.Factor + smooth*f
}

// yarn blends interpolated and plain frequencies between the dimensions that
// turn BetaSlow and BetaFast times in the trained context (Peng et al. 2023,
// section 3.2).
func (s RopeScaling) yarn(frequencies []float64, c RopeConfig) {
	dim := func(rotations float64) float64 {
		return float64(c.Dim) * math.Log(s.Original/(rotations*2*math.Pi)) / (2 * math.Log(c.Theta))
	}
	low := max(math.Floor(dim(s.BetaFast)), 0)
	high := min(math.Ceil(dim(s.BetaSlow)), float64(c.Dim-1))
	if low == high {
		high += 0.001
	}
	for i, f := range frequencies {
		ramp := min(max((float64(i)-low)/(high-low), 0), 1)
		frequencies[i] = f/s.Factor*ramp + f*(1-ramp)
	}
}

// Divisors are the factors by which scaling divides the plain frequencies,
// [Dim/2]: the form in which GGUF files carry Llama 3's.
func (r *Rope) Divisors() []float32 {
	d := make([]float32, len(r.frequencies))
	for i, f := range r.frequencies {
		d[i] = float32(r.plain(i) / f)
	}
	return d
}

// plain is frequency i without scaling.
func (c RopeConfig) plain(i int) float64 {
	return math.Pow(c.Theta, -2*float64(i)/float64(c.Dim))
}

// Prepare computes the cosines and sines of the rows of a step.
func (r *Rope) Prepare(st *State, positions []int32) {
	a := st.angles(r)
	a.cos, a.sin = a.cos[:0], a.sin[:0]
	for _, p := range positions {
		a.cos, a.sin = r.append(a.cos, a.sin, p)
	}
}

// append adds the cosines and sines of a position.
func (r *Rope) append(cosines, sines []float32, position int32) (_, _ []float32) {
	for _, f := range r.frequencies {
		sin, cos := math.Sincos(float64(position) * f)
		cosines, sines = append(cosines, float32(cos*r.scale)), append(sines, float32(sin*r.scale))
	}
	return cosines, sines
}

// Rotate turns the first Dim values of every head of x [rows, heads, width],
// the rows of the step, by their angles. A nil Rope leaves x as it is.
func (r *Rope) Rotate(st *State, x []float32, heads, width int) {
	if r != nil {
		a := st.angles(r)
		r.rotate(st, x, heads, width, 0, a.cos, a.sin)
	}
}

// RotateLast turns the last Dim values of every head.
func (r *Rope) RotateLast(st *State, x []float32, heads, width int) {
	a := st.angles(r)
	r.rotate(st, x, heads, width, width-r.Dim, a.cos, a.sin)
}

// UnrotateLast turns the last Dim values of every head back.
func (r *Rope) UnrotateLast(st *State, x []float32, heads, width int) {
	mark, a := st.Mark(), st.angles(r)
	back := st.Take(len(a.sin))
	for i, s := range a.sin {
		back[i] = -s
	}
	r.rotate(st, x, heads, width, width-r.Dim, a.cos, back)
	st.Release(mark)
}

// RotateLastAt is RotateLast for rows at other positions than the step's.
func (r *Rope) RotateLastAt(st *State, x []float32, heads, width int, positions []int32) {
	mark, n := st.Mark(), len(positions)*r.Dim/2
	cos, sin := st.Take(n)[:0], st.Take(n)[:0]
	for _, p := range positions {
		cos, sin = r.append(cos, sin, p)
	}
	r.rotate(st, x, heads, width, width-r.Dim, cos, sin)
	st.Release(mark)
}

func (r *Rope) rotate(st *State, x []float32, heads, width, first int, cos, sin []float32) {
	st.Pool.Rotate(x, heads, width, kernel.Rotation{Cos: cos, Sin: sin, First: first, Half: r.Dim / 2, Interleaved: r.Interleaved})
}
