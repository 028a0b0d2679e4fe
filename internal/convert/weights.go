package convert

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/tensor"
)

// A weight is a tensor on its way into the file: a vector, a matrix, or the
// matrices of a layer's experts.
type weight struct {
	name     string // GGUF's
	shape    []int
	matrices []*tensor.Matrix // nil: a vector
	vector   []float32
	order    func(row int) int // the source row of each row of a matrix; nil: as they are
}

// load reads a tensor by its canonical name.
func load(c *checkpoint.Checkpoint, name, stored string) (w weight, err error) {
	info, _ := c.Info(name)
	w = weight{name: stored, shape: info.Shape}
	switch len(info.Shape) {
	case 1:
		w.vector, err = c.Vector(name)
	case 3:
		w.matrices, err = c.Stack(name)
	default:
		var m *tensor.Matrix
		m, err = c.Matrix(name)
		w.matrices = []*tensor.Matrix{m}
	}
	return w, err
}

// stack is the weight of matrices of one shape.
func stack(name string, matrices []*tensor.Matrix) weight {
	return weight{name: name, shape: []int{len(matrices), matrices[0].Rows, matrices[0].Cols}, matrices: matrices}
}

func (w *weight) size() int64 {
	n := int64(1)
	for _, d := range w.shape {
		n *= int64(d)
	}
	return n
}

// storage is the type in which w is written where matrices are to be of type d.
// What chooses experts is small, and stays as exact as it is.
func (w *weight) storage(d tensor.DType) tensor.DType {
	switch {
	case w.matrices == nil, strings.Contains(w.name, "ffn_gate_inp"):
		return tensor.F32
	case w.matrices[0].Cols%d.BlockLen() != 0:
		return tensor.F16
	}
	return d
}

// write encodes w row by row.
func (w *weight) write(to io.Writer, d tensor.DType) error {
	if w.matrices == nil {
		data := make([]byte, d.RowBytes(len(w.vector)))
		if err := tensor.Encode(d, data, w.vector); err != nil {
			return err
		}
		_, err := to.Write(data)
		return err
	}
	for i, m := range w.matrices {
		err := w.writeMatrix(to, m, d)
		if err != nil && len(w.matrices) > 1 {
			err = fmt.Errorf("expert %d: %w", i, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *weight) writeMatrix(to io.Writer, m *tensor.Matrix, d tensor.DType) error {
	row := make([]float32, m.Cols)
	data := make([]byte, d.RowBytes(len(row)))
	for r := range m.Rows {
		from := r
		if w.order != nil {
			from = w.order(r)
		}
		m.Row(row, from)
		if i := slices.IndexFunc(row, tooLarge); i >= 0 && d == tensor.F16 {
			return fmt.Errorf("row %d: value %v is more than F16 holds", from, row[i])
		}
		if err := tensor.Encode(d, data, row); err != nil {
			return fmt.Errorf("row %d: %w", from, err)
		}
		if _, err := to.Write(data); err != nil {
			return err
		}
	}
	return nil
}

// tooLarge reports whether F16 would make v infinite.
func tooLarge(v float32) bool {
	return math.Abs(float64(v)) >= 65520 && !math.IsInf(float64(v), 0)
}

// interleave turns the rows of each head from half-split rotary pairs
// (i, i+width/2) to neighbours (2i, 2i+1).
func interleave(width int) func(row int) int {
	return func(row int) int {
		head, i := row/width*width, row%width
		return head + i%2*(width/2) + i/2
	}
}
