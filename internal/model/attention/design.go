// Package attention has one file per attention design.
package attention

import (
	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// A Design is the attention of one layer.
type Design interface {
	// Forward maps x [rows, hidden] to [rows, hidden], reading the cached
	// positions of each row's sequence and adding the row's own.
	Forward(step *nn.Step, st *nn.State, x []float32) []float32
	// Cache says what the layer keeps.
	Cache() kvcache.LayerSpec
	// Trees reports whether rows may be of trees of drafts (nn.Step.Draft): they
	// are stored in slots of their own, what is kept of them can be moved, and
	// nothing is kept that several positions have a part in. A design that cannot
	// takes drafts as chains.
	Trees() bool
}

// vectors places those of an array [rows, columns] or, if rows are closer to
// each other than columns, [columns, rows].
func vectors(x []float32, row, column int) kernel.Vectors {
	return kernel.Vectors{X: x, Row: row, Column: column}
}
