package checkpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/foretoken/foretoken/internal/tensor"
)

// The blocks of values that share a scale, [rows, columns].
var (
	fp8Block = [2]int{128, 128} // DeepSeek; config.json may say otherwise
	fp4Block = [2]int{1, 32}    // OCP MX, section 5.3.1
)

// scalesOf finds the scales stored beside the weight e: W = stored × scale.
// whole reports that they belong to the tensor or its rows, not to blocks.
//
//	NAME.weight_scale_inv   DeepSeek V3: the factor of a block, despite its name
//	NAME.scale              DeepSeek V4
//	NAME.weight_scale       compressed-tensors: per tensor or per row
func (c *Checkpoint) scalesOf(e *entry) (scales *entry, whole bool) {
	if c.format != Safetensors {
		return nil, false // GGUF keeps scales within its blocks
	}
	if s, ok := c.byName[e.Name+"_scale_inv"]; ok {
		return s, false
	}
	if base, ok := strings.CutSuffix(e.Name, ".weight"); ok {
		if s, ok := c.byName[base+".scale"]; ok {
			return s, false
		}
	}
	s, ok := c.byName[e.Name+"_scale"]
	return s, ok
}

// blockScales attaches to m, the weight stored as e, the scales beside it.
// A weight stored as I8 [rows, columns/2] with a scale per 32 values is
// packed fp4: m becomes F4E2M1 [rows, columns].
func (c *Checkpoint) blockScales(m *tensor.Matrix, e *entry) error {
	s, whole := c.scalesOf(e)
	if s == nil {
		return nil
	}
	if whole {
		return e.errorf("scales in %s are per tensor or row: expected block scales", quoted(s.Stored))
	}
	block := c.block
	switch m.DType {
	case tensor.F8E4M3, tensor.F8E5M2:
	case tensor.F4E2M1:
		block = fp4Block
	case tensor.I8:
		block = fp4Block
		m.DType, m.Cols = tensor.F4E2M1, 2*m.Cols // no overflow: the rows have Cols bytes
	default:
		return e.errorf("scales in %s beside %v: expected an fp8 or packed fp4 weight", quoted(s.Stored), m.DType)
	}
	switch s.DType {
	case tensor.F32, tensor.BF16, tensor.F8E8M0:
	default:
		return s.errorf("scales of type %v: expected F32, BF16 or F8_E8M0", s.DType)
	}
	want := []int{ceilDiv(m.Rows, block[0]), ceilDiv(m.Cols, block[1])}
	if !slices.Equal(s.Shape, want) {
		return s.errorf("shape %v: expected %v, a scale per %v values of %v [%d %d]", s.Shape, want, block, m.DType, m.Rows, m.Cols)
	}
	m.Scales = &tensor.Scales{Name: s.Name, DType: s.DType, BlockRows: block[0], BlockCols: block[1], Data: s.data}
	return nil
}

func ceilDiv(a, b int) int { return a/b + min(a%b, 1) }

// maxConfig bounds config.json; published ones have a few kilobytes.
const maxConfig = 16 << 20

// readConfig reads the config.json beside safetensors files, if there is
// one, and from it the block of fp8 scales.
func (c *Checkpoint) readConfig() error {
	path := filepath.Join(c.dir, "config.json")
	src, err := readBounded(path, maxConfig)
	switch {
	case isNotExist(err):
		return nil
	case err != nil:
		return err
	case !json.Valid(src) || !bytes.HasPrefix(bytes.TrimSpace(src), []byte("{")):
		return fmt.Errorf("%s: expected a JSON object", path)
	}
	c.config = src
	var config struct {
		Quantization *struct {
			Block []int `json:"weight_block_size"`
		} `json:"quantization_config"`
	}
	err = json.Unmarshal(src, &config)
	if err == nil && (config.Quantization == nil || config.Quantization.Block == nil) {
		return nil
	}
	if err != nil || len(config.Quantization.Block) != 2 || slices.Min(config.Quantization.Block) < 1 {
		return fmt.Errorf("%s: quantization_config.weight_block_size: expected two positive integers", path)
	}
	c.block = [2]int(config.Quantization.Block)
	return nil
}
