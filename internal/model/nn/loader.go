package nn

import (
	"fmt"
	"strings"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/tensor"
)

// A Loader reads a model's weights by their Hugging Face names. It remembers
// the first error, so that a family's file can name its tensors in order and
// ask once, and it remembers what was read, so that nothing in a checkpoint
// is ignored without a word.
type Loader struct {
	*loads
	prefix string
	eps    float32
}

type loads struct {
	Packing
	source *checkpoint.Checkpoint
	used   map[string]bool
	packed int64 // bytes of the file
	err    error
}

// Packing says how weights are prepared. Without a Packer they are checked and
// no more.
type Packing struct {
	Packer *kernel.Packer
	// Progress is told how many bytes of the file are prepared; what it returns
	// ends loading. It may be nil.
	Progress func(done, total int64) error
}

// NewLoader reads from c; eps is that of every norm.
func NewLoader(c *checkpoint.Checkpoint, p Packing, eps float32) *Loader {
	return &Loader{loads: &loads{Packing: p, source: c, used: map[string]bool{}}, eps: eps}
}

// Sub returns a loader for names that begin with the formatted prefix.
func (l *Loader) Sub(format string, args ...any) *Loader {
	return &Loader{loads: l.loads, prefix: l.prefix + fmt.Sprintf(format, args...), eps: l.eps}
}

// GGUF reports whether the weights come from a GGUF file, where some families
// store them differently.
func (l *Loader) GGUF() bool { return l.source.Format() == checkpoint.GGUF }

// Has reports whether the checkpoint holds a tensor.
func (l *Loader) Has(name string) bool {
	_, ok := l.source.Info(l.prefix + name)
	return ok
}

// Err returns the first error.
func (l *Loader) Err() error { return l.err }

// Fail notes an error, if it is the first; nil is none.
func (l *Loader) Fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

// errorf names the tensor as its file does.
func (l *Loader) errorf(name, format string, args ...any) error {
	info, _ := l.source.Info(name)
	return fmt.Errorf("%s: tensor %q: %w", info.File, info.Stored, fmt.Errorf(format, args...))
}

// Matrix reads a weight of the given shape.
func (l *Loader) Matrix(name string, rows, cols int) *tensor.Matrix {
	m := l.matrix(name, rows, cols)
	if m != nil {
		l.checkReal(l.prefix+name, m.DType)
	}
	return m
}

// checkReal refuses integers: without what says how a format packs weights into
// them they would pass for weights.
func (l *Loader) checkReal(name string, d tensor.DType) {
	if d.IsInteger() {
		l.Fail(l.errorf(name, "type %v, expected floats or blocks of a quantised type", d))
	}
}

// matrix is Matrix for values of any type.
func (l *Loader) matrix(name string, rows, cols int) *tensor.Matrix {
	name = l.prefix + name
	l.used[name] = true
	m, err := l.source.Matrix(name)
	if err == nil && m.Scales != nil {
		l.used[m.Scales.Name] = true
	}
	if err == nil && (m.Rows != rows || m.Cols != cols) {
		err = l.errorf(name, "shape [%d, %d], expected [%d, %d]", m.Rows, m.Cols, rows, cols)
	}
	if err != nil {
		l.Fail(err)
		return nil
	}
	return m
}

// Stack reads the weights of n experts, each of the given shape, that are
// stored as one tensor.
func (l *Loader) Stack(name string, n, rows, cols int) []*tensor.Matrix {
	name = l.prefix + name
	l.used[name] = true
	stack, err := l.source.Stack(name)
	if err == nil && (len(stack) != n || stack[0].Rows != rows || stack[0].Cols != cols) {
		err = l.errorf(name, "shape [%d, %d, %d], expected [%d, %d, %d]", len(stack), stack[0].Rows, stack[0].Cols, n, rows, cols)
	}
	if err != nil {
		l.Fail(err)
		return nil
	}
	l.checkReal(name, stack[0].DType)
	return stack
}

// Vector reads n values as float32.
func (l *Loader) Vector(name string, n int) []float32 {
	name = l.prefix + name
	l.used[name] = true
	v, err := l.source.Vector(name)
	if err == nil && len(v) != n {
		err = l.errorf(name, "%d values, expected %d", len(v), n)
	}
	if err != nil {
		l.Fail(err)
		return nil
	}
	l.checkReal(name, l.dtype(name))
	return v
}

// Linear reads name.weight and, where the checkpoint has it, name.bias.
func (l *Loader) Linear(name string, out, in int) *Linear {
	return &Linear{l.Pack(l.Matrix(name+".weight", out, in), 0), l.bias(name, out)}
}

// SplitLinear is Linear for a product whose inner dimension tensor
// parallelism may split, in units of unit values.
func (l *Loader) SplitLinear(name string, out, in, unit int) *Linear {
	return &Linear{l.Pack(l.Matrix(name+".weight", out, in), unit), l.bias(name, out)}
}

// ExactLinear is Linear, without bias, whose products round neither weights nor
// activations: for what decides between one thing and another.
func (l *Loader) ExactLinear(name string, out, in int) *Linear {
	return &Linear{Weight: l.PackExact(l.Matrix(name+".weight", out, in), 0)}
}

// Pack prepares a matrix for products that are split in units of unit values,
// or not at all if unit is 0.
func (l *Loader) Pack(m *tensor.Matrix, unit int) *kernel.Weight { return l.pack(l.Packer, m, unit) }

// PackExact is Pack for a matrix that no option rounds and whose products have
// float32 activations: a small one on which much depends.
func (l *Loader) PackExact(m *tensor.Matrix, unit int) *kernel.Weight {
	if l.Packer == nil {
		return nil
	}
	exact := *l.Packer
	exact.Exact, exact.Quantize = true, tensor.Invalid
	return l.pack(&exact, m, unit)
}

func (l *Loader) pack(k *kernel.Packer, m *tensor.Matrix, unit int) *kernel.Weight {
	if l.err != nil || k == nil {
		return nil
	}
	w, err := k.Pack(m, unit)
	l.Fail(err)
	l.Leave(m)
	return w
}

// Leave counts a matrix as prepared that stays in the file until it is needed.
func (l *Loader) Leave(m *tensor.Matrix) {
	if l.err != nil {
		return
	}
	l.packed += int64(len(m.Data))
	if l.Progress != nil {
		l.Fail(l.Progress(l.packed, l.source.Size()))
	}
}

func (l *Loader) bias(name string, out int) []float32 {
	if !l.Has(name + ".bias") {
		return nil
	}
	return l.Vector(name+".bias", out)
}

// Norm reads name.weight.
func (l *Loader) Norm(name string, n int) *Norm {
	return &Norm{l.Vector(name+".weight", n), l.eps}
}

// GatedMLP reads gate_proj, up_proj and down_proj.
func (l *Loader) GatedMLP(hidden, inner int, activation Activation) *GatedMLP {
	return &GatedMLP{
		Gate:       l.Linear("gate_proj", inner, hidden),
		Up:         l.Linear("up_proj", inner, hidden),
		Down:       l.SplitLinear("down_proj", hidden, inner, 1),
		Activation: activation,
	}
}

// CheckUnused reports a tensor of the layers that was not read. Towers of
// other modalities and stored rotary tables are not counted.
func (l *Loader) CheckUnused(architecture string) error {
	for _, name := range l.source.Names() {
		// Names that a GGUF file does not share with its family stay as they are.
		ofLayer := strings.HasPrefix(name, "model.layers.") || strings.HasPrefix(name, "blk.")
		if ofLayer && !l.used[name] && !strings.HasSuffix(name, "rotary_emb.inv_freq") {
			return l.errorf(name, "not part of a %s model as its configuration describes it", architecture)
		}
	}
	return nil
}

// Ignore counts all tensors whose names begin so as read.
func (l *Loader) Ignore(prefix string) {
	for _, name := range l.source.Names() {
		if strings.HasPrefix(name, l.prefix+prefix) {
			l.used[name] = true
		}
	}
}

// Require fails if the checkpoint lacks one of the vectors.
func (l *Loader) Require(names ...string) {
	for _, name := range names {
		if !l.Has(name) {
			_, err := l.source.Vector(l.prefix + name)
			l.Fail(err)
		}
	}
}

// DType is the storage type of a tensor that the checkpoint has.
func (l *Loader) DType(name string) tensor.DType { return l.dtype(l.prefix + name) }

func (l *Loader) dtype(name string) tensor.DType {
	info, _ := l.source.Info(name)
	return info.DType
}
