package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// indexName is the file that says which shard holds which tensor.
const indexName = "model.safetensors.index.json"

// A weightMap is the index's map from tensor to shard file.
type weightMap map[string]string

// UnmarshalJSON refuses duplicate keys, which encoding/json would let pass.
func (m *weightMap) UnmarshalJSON(src []byte) error {
	if *m != nil {
		return errors.New("weight_map: listed twice")
	}
	*m = weightMap{}
	s := jsonScanner{src: src}
	err := s.object(func(key []byte) error {
		name := string(key)
		if _, ok := (*m)[name]; ok {
			return fmt.Errorf("tensor %s: listed twice", quoted(name))
		}
		shard, err := s.str()
		(*m)[name] = string(shard)
		return err
	})
	if err != nil {
		return fmt.Errorf("weight_map: %w", err)
	}
	return nil
}

// readIndex reads the weight map of an index and checks its shard names.
func readIndex(path string) (weightMap, error) {
	src, err := readBounded(path, maxHeader)
	if err != nil {
		return nil, err
	}
	if src = bytes.TrimSpace(src); len(src) == 0 || src[0] != '{' {
		return nil, fmt.Errorf("%s: expected a JSON object", path)
	}
	var index struct {
		WeightMap weightMap `json:"weight_map"`
	}
	if err := json.Unmarshal(src, &index); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(index.WeightMap) == 0 {
		return nil, fmt.Errorf("%s: no weight_map: expected a map from tensor to file", path)
	}
	for name, shard := range index.WeightMap {
		// A shard lies beside its index: no way up, no way back to an index.
		if !plainName(shard) || !strings.HasSuffix(shard, ".safetensors") {
			return nil, fmt.Errorf("%s: tensor %s: shard %s: expected the plain name of a .safetensors file", path, quoted(name), quoted(shard))
		}
	}
	return index.WeightMap, nil
}

// openSharded opens the shards of a safetensors index. Where the index
// lists a tensor, it decides which shard's copy counts.
func (c *Checkpoint) openSharded(path string) error {
	index, err := readIndex(path)
	if err != nil {
		return err
	}
	found := make(map[string]bool, len(index))
	for _, shard := range slices.Compact(slices.Sorted(maps.Values(index))) {
		tensors, err := c.readSafetensors(filepath.Join(filepath.Dir(path), shard))
		if err != nil {
			return err
		}
		for _, t := range tensors {
			if listed, ok := index[t.Stored]; ok && listed != shard {
				continue
			}
			if err := c.add(canonicalName(t.Stored), t); err != nil {
				return err
			}
			found[t.Stored] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(index)) {
		if !found[name] {
			return fmt.Errorf("%s: tensor %s: not in its shard %s", path, quoted(name), quoted(index[name]))
		}
	}
	return nil
}

// openSafetensors opens a single file.
func (c *Checkpoint) openSafetensors(path string) error {
	tensors, err := c.readSafetensors(path)
	if err != nil {
		return err
	}
	for _, t := range tensors {
		if err := c.add(canonicalName(t.Stored), t); err != nil {
			return err
		}
	}
	return nil
}

func (c *Checkpoint) readSafetensors(path string) (tensors []*entry, err error) {
	m, err := c.mapFile(path)
	if err != nil {
		return nil, err
	}
	err = guard(c.maps, func() error {
		tensors, err = parseSafetensors(path, m.data)
		return err
	})
	return tensors, err
}

// flaEmbedding is the embedding in the models of flash-linear-attention.
const flaEmbedding = "model.embeddings.weight"

// canonicalName strips what wrappers for several modalities put before the
// names of their language model: "language_model.model.layers…" and
// "model.language_model.layers…" are "model.layers…".
func canonicalName(stored string) string {
	name, ok := strings.CutPrefix(stored, "model.language_model.")
	if !ok {
		name, ok = strings.CutPrefix(stored, "language_model.")
	}
	switch {
	case stored == flaEmbedding:
		return "model.embed_tokens.weight"
	case !ok:
		return mixtralName(deepseek4Name(stored))
	case strings.HasPrefix(name, "model."), strings.HasPrefix(name, "lm_head."):
		return name
	}
	return "model." + name
}
