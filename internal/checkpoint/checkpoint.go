// Package checkpoint reads published model weights: safetensors (one file
// or sharded) and GGUF (one file or split). Both formats give the same view:
// tensors under their Hugging Face names, mapped from the file.
//
// Files are hostile until checked: every size and offset is compared with
// the file before anything is allocated or read, and every error names the
// file, the tensor or key, and what was expected.
package checkpoint

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/foretoken/foretoken/internal/tensor"
)

// A Format is a file format of weights.
type Format uint8

// The formats that Open reads.
const (
	Safetensors Format = iota + 1
	GGUF
)

func (f Format) String() string {
	switch f {
	case Safetensors:
		return "safetensors"
	case GGUF:
		return "GGUF"
	}
	return fmt.Sprintf("format(%d)", uint8(f))
}

// TensorInfo describes a tensor as it is stored.
type TensorInfo struct {
	Name   string // canonical: the Hugging Face name
	Stored string // the name in the file
	DType  tensor.DType
	Shape  []int // row-major, the fastest dimension last; must not be written
	File   string
}

// An entry is a tensor and its bytes within a mapping.
type entry struct {
	TensorInfo
	data   []byte
	offset int // of data, from the start of the file's tensor data
}

// A Checkpoint is an open set of weight files. It may be used by several
// goroutines. Matrices point into the mapped files and are invalid after
// Close; everything else that its methods return is a copy.
type Checkpoint struct {
	path   string // as opened, for messages
	dir    string // where config.json and the tokenizer's files are
	format Format
	maps   []*mapping
	meta   *Metadata
	config []byte
	block  [2]int // rows and columns that share an fp8 scale
	byName map[string]*entry
	names  []string
	size   int64
}

// Format says which format the weights are in.
func (c *Checkpoint) Format() Format { return c.format }

// Files lists the paths of the weight files.
func (c *Checkpoint) Files() []string {
	files := make([]string, len(c.maps))
	for i, m := range c.maps {
		files[i] = m.path
	}
	return files
}

// Size is the number of bytes of all tensors as stored.
func (c *Checkpoint) Size() int64 { return c.size }

// Metadata returns the metadata of a GGUF file, nil for safetensors.
func (c *Checkpoint) Metadata() *Metadata { return c.meta }

// ConfigJSON returns the content of the config.json beside safetensors
// files, nil if there is none, and nil for GGUF.
func (c *Checkpoint) ConfigJSON() []byte { return slices.Clone(c.config) }

// Names lists the canonical names of all tensors, sorted.
func (c *Checkpoint) Names() []string { return slices.Clone(c.names) }

// Info describes the tensor with the given canonical name.
func (c *Checkpoint) Info(name string) (TensorInfo, bool) {
	e, ok := c.byName[name]
	if !ok {
		return TensorInfo{}, false
	}
	return e.TensorInfo, true
}

// maxSideFile bounds the files that File reads. Published tokenizer.json
// files have up to 35 MB.
const maxSideFile = 256 << 20

// File reads a file beside the weights, such as tokenizer.json or
// generation_config.json, additional_chat_templates/NAME.jinja or
// 1_Pooling/config.json. The error is fs.ErrNotExist when there is none.
func (c *Checkpoint) File(name string) ([]byte, error) {
	dir, base := path.Split(name)
	template := dir == "additional_chat_templates/" && strings.HasSuffix(base, ".jinja")
	pooling := name == "1_Pooling/config.json" // of sentence-transformers
	if dir != "" && !template && !pooling || !plainName(base) {
		return nil, fmt.Errorf("file %s: expected a plain file name", quoted(name))
	}
	return readBounded(filepath.Join(c.dir, filepath.FromSlash(name)), maxSideFile)
}

// plainName reports whether name is that of a file in the directory where
// it is looked up, on every platform, and can be part of a message as it is.
func plainName(name string) bool {
	const longest = 255 // bytes; what file systems hold
	return name != "" && name != "." && name != ".." && len(name) <= longest &&
		!strings.ContainsAny(name, `/\:`) && !strings.ContainsFunc(name, unicode.IsControl)
}

// Close unmaps the files. Matrices must not be used after it.
func (c *Checkpoint) Close() error { return closeAll(c.maps) }

// mapFile opens a weight file that Close will close.
func (c *Checkpoint) mapFile(path string) (*mapping, error) {
	m, err := openMapping(path)
	if err == nil {
		c.maps = append(c.maps, m)
	}
	return m, err
}

// add registers a tensor under its canonical name.
func (c *Checkpoint) add(canonical string, e *entry) error {
	if other, ok := c.byName[canonical]; ok {
		return fmt.Errorf("%s: tensor %s: already in %s as %s", e.File, quoted(e.Stored), other.File, quoted(other.Stored))
	}
	e.Name = canonical
	c.byName[canonical] = e
	c.size += int64(len(e.data))
	return nil
}

// seal makes the list of names once all tensors are registered.
func (c *Checkpoint) seal() { c.names = slices.Sorted(maps.Keys(c.byName)) }

// A MissingTensorError reports a tensor that the model needs and the
// checkpoint lacks.
type MissingTensorError struct {
	Path   string // the checkpoint as opened
	Name   string // canonical
	Stored string // the name it would have in the file, if that differs
}

func (e *MissingTensorError) Error() string {
	if e.Stored != "" {
		return fmt.Sprintf("%s: no tensor %s (%s)", e.Path, quoted(e.Stored), quoted(e.Name))
	}
	return fmt.Sprintf("%s: no tensor %s", e.Path, quoted(e.Name))
}

// find returns a tensor of the given rank.
func (c *Checkpoint) find(name string, rank int) (*entry, error) {
	e, ok := c.byName[name]
	if !ok {
		return nil, &MissingTensorError{Path: c.path, Name: name, Stored: c.storedName(name)}
	}
	if len(e.Shape) != rank {
		return nil, e.errorf("shape %v: expected %d dimensions", e.Shape, rank)
	}
	return e, nil
}

// storedName is the name that a tensor with the given canonical name would have
// in c, "" if it is the same.
func (c *Checkpoint) storedName(canonical string) string {
	if c.format == GGUF {
		name, _ := GGUFName(c.meta.Arch(), canonical)
		return name
	}
	for _, name := range c.names {
		switch stored := c.byName[name].Stored; {
		case strings.HasPrefix(stored, "layers."): // DeepSeek V4's own files
			return deepseek4Stored(canonical)
		case strings.Contains(stored, mixtralPart):
			return mixtralStored(canonical)
		}
	}
	return ""
}

// where names a tensor for messages: its file, and its name there.
func (e *entry) where() string { return fmt.Sprintf("%s: tensor %s", e.File, quoted(e.Stored)) }

func (e *entry) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %w", e.where(), fmt.Errorf(format, args...))
}

// Matrix returns the two-dimensional tensor name, [rows, columns], mapped
// from the file, with the block scales stored beside it (see blockScales).
// The error is a *MissingTensorError if there is no such tensor.
func (c *Checkpoint) Matrix(name string) (*tensor.Matrix, error) {
	e, err := c.find(name, 2)
	if err != nil {
		return nil, err
	}
	m := &tensor.Matrix{Name: e.where(), DType: e.DType, Rows: e.Shape[0], Cols: e.Shape[1], Data: e.data}
	if err := c.blockScales(m, e); err != nil {
		return nil, err
	}
	scales := m.Scales
	if m, err = tensor.NewMatrix(m.Name, m.DType, m.Rows, m.Cols, m.Data); err != nil {
		return nil, err
	}
	m.Scales = scales
	return m, nil
}

// maxExperts bounds the matrices that Stack makes of one tensor.
const maxExperts = 1 << 16

// Stack returns the three-dimensional tensor name, [experts, rows, columns],
// as one matrix per expert. Block scales beside it are refused: the formats
// that keep them store experts one by one.
func (c *Checkpoint) Stack(name string) ([]*tensor.Matrix, error) {
	e, err := c.find(name, 3)
	if err != nil {
		return nil, err
	}
	if s, _ := c.scalesOf(e); s != nil {
		return nil, e.errorf("scales in %s: expected none beside a stack", quoted(s.Stored))
	}
	rows, cols := e.Shape[1], e.Shape[2]
	if len(e.data) == 0 || e.Shape[0] > maxExperts {
		return nil, e.errorf("shape %v: expected positive sizes, at most %d experts", e.Shape, maxExperts)
	}
	stack := make([]*tensor.Matrix, e.Shape[0])
	size := rows * e.DType.RowBytes(cols)
	for i := range stack {
		part := fmt.Sprintf("%s[%d]", e.where(), i)
		if stack[i], err = tensor.NewMatrix(part, e.DType, rows, cols, e.data[i*size:(i+1)*size]); err != nil {
			return nil, err
		}
	}
	return stack, nil
}

// Vector returns the one-dimensional tensor name, decoded.
// The error is a *MissingTensorError if there is no such tensor.
func (c *Checkpoint) Vector(name string) (values []float32, err error) {
	e, err := c.find(name, 1)
	if err != nil {
		return nil, err
	}
	values = make([]float32, e.Shape[0])
	err = c.Guard(func() error {
		tensor.Decode(e.DType, values, e.data)
		return nil
	})
	return values, err
}
