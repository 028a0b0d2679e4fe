package convert

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/tensor"
)

// A weight is a tensor on its way into the file: a vector or a matrix.
type weight struct {
	name   string // GGUF's
	shape  []int
	matrix *tensor.Matrix // nil: a vector
	vector []float32
	order  func(row int) int // the source row of each row; nil: as they are
}

// load reads a tensor by its canonical name.
func load(c *checkpoint.Checkpoint, name, stored string) (w weight, err error) {
	info, _ := c.Info(name)
	w = weight{name: stored, shape: info.Shape}
	if len(info.Shape) == 1 {
		w.vector, err = c.Vector(name)
	} else {
		w.matrix, err = c.Matrix(name)
	}
	return w, err
}

func (w *weight) size() int64 {
	if w.matrix == nil {
		return int64(len(w.vector))
	}
	return int64(w.matrix.Rows) * int64(w.matrix.Cols)
}

// storage is the type in which w is written where matrices are to be of type d.
func (w *weight) storage(d tensor.DType) tensor.DType {
	switch {
	case w.matrix == nil:
		return tensor.F32
	case w.matrix.Cols%d.BlockLen() != 0:
		return tensor.F16
	}
	return d
}

// write encodes w row by row.
func (w *weight) write(to io.Writer, d tensor.DType) error {
	if w.matrix == nil {
		data := make([]byte, d.RowBytes(len(w.vector)))
		if err := tensor.Encode(d, data, w.vector); err != nil {
			return err
		}
		_, err := to.Write(data)
		return err
	}
	row := make([]float32, w.matrix.Cols)
	data := make([]byte, d.RowBytes(len(row)))
	for r := range w.matrix.Rows {
		from := r
		if w.order != nil {
			from = w.order(r)
		}
		w.matrix.Row(row, from)
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
