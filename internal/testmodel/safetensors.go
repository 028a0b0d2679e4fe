package testmodel

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/foretoken/foretoken/internal/tensor"
)

// WriteSafetensors writes the files of a Hugging Face repository into dir.
func (m *Model) WriteSafetensors(dir string) error {
	for name, content := range map[string]any{
		"config.json":            m.Config,
		"generation_config.json": generationConfig(),
		"tokenizer_config.json":  m.tokenizerConfig(),
	} {
		if err := writeJSON(filepath.Join(dir, name), content); err != nil {
			return err
		}
	}
	tokenizer, err := m.tokenizerJSON()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), tokenizer, 0o644); err != nil {
		return err
	}
	m = m.published()
	path := filepath.Join(dir, "model.safetensors")
	index := map[string]string{}
	for i, part := range m.parts() {
		file := partName(path, i, m.Parts)
		data, err := safetensors(m.DType, part)
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return err
		}
		for _, t := range part {
			index[t.Name] = filepath.Base(file)
		}
	}
	if m.Parts <= 1 {
		return nil
	}
	return writeJSON(path+".index.json", object{"metadata": object{}, "weight_map": index})
}

// safetensors encodes one file.
func safetensors(d tensor.DType, tensors []Tensor) ([]byte, error) {
	if d != tensor.F32 && d != tensor.BF16 && d != tensor.F16 {
		return nil, fmt.Errorf("safetensors of %v: expected F32, F16 or BF16", d)
	}
	header := object{"__metadata__": object{"format": "pt"}}
	var data []byte
	for _, t := range tensors {
		stored, bytes, err := t.encode(d)
		if err != nil {
			return nil, err
		}
		header[t.Name] = object{"dtype": stored.String(), "shape": t.Shape, "data_offsets": []int{len(data), len(data) + len(bytes)}}
		data = append(data, bytes...)
	}
	text, err := json.Marshal(header)
	if err != nil {
		return nil, err
	}
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	return append(append(file, text...), data...), nil
}

// parts cuts the tensors for the files that hold them.
func (m *Model) parts() [][]Tensor {
	parts := make([][]Tensor, max(m.Parts, 1))
	for i := range parts {
		parts[i] = m.Tensors[i*len(m.Tensors)/len(parts) : (i+1)*len(m.Tensors)/len(parts)]
	}
	return parts
}

// partName is NAME-00001-of-00003.EXT for the first of three parts of
// NAME.EXT, and NAME.EXT where there is only one.
func partName(path string, part, parts int) string {
	if parts <= 1 {
		return path
	}
	ext := filepath.Ext(path)
	return fmt.Sprintf("%s-%05d-of-%05d%s", strings.TrimSuffix(path, ext), part+1, parts, ext)
}

func writeJSON(path string, content any) error {
	data, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}
