package checkpoint

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// A GGUF file is a magic, a version, the counts of tensors and of key-value
// pairs, these pairs, a description of each tensor and, aligned, their data.
const (
	ggufMagic    = "GGUF"
	ggufVersion  = 3 // 2 has the same layout
	ggufAlign    = 32
	ggufMaxAlign = 1 << 20
	ggufMaxDims  = 4
	ggufMaxName  = 1 << 12               // ggml itself stops at 63 bytes
	ggufMinInfo  = 8 + 1 + 4 + 8 + 4 + 8 // the shortest description of a tensor
	alignmentKey = "general.alignment"
)

// parseGGUF reads the metadata of a GGUF file and lists its tensors, in the
// order of their data.
func parseGGUF(path string, file []byte) (meta *Metadata, tensors []*entry, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
	}()
	c := &cursor{data: file}
	if magic := c.take(4); c.err == nil && string(magic) != ggufMagic {
		return nil, nil, fmt.Errorf("starts with %q: expected %q", magic, ggufMagic)
	}
	switch version := c.uint32(); {
	case c.err != nil:
	case version != 0 && version&0xffff == 0:
		return nil, nil, fmt.Errorf("a big-endian GGUF file: expected little-endian")
	case version != ggufVersion && version != 2:
		return nil, nil, fmt.Errorf("GGUF version %d: expected 2 or 3", version)
	}
	tensorCount, pairCount := c.uint64(), c.uint64()
	pairs := c.count(pairCount, minPair, "metadata pairs")
	if c.err != nil {
		return nil, nil, c.err
	}
	if meta, err = readMetadata(c, pairs); err != nil {
		return nil, nil, err
	}
	align, err := alignment(meta)
	if err != nil {
		return nil, nil, err
	}
	if tensors, err = readTensorInfos(c, path, tensorCount, align); err != nil {
		return nil, nil, err
	}
	if len(tensors) > 0 { // else the file may end before the data would start
		start := ceilDiv(c.pos, align) * align
		if start > len(file) {
			return nil, nil, fmt.Errorf("the file ends before its tensor data: truncated file?")
		}
		err = placeTensors(tensors, file[start:])
	}
	return meta, tensors, err
}

func alignment(meta *Metadata) (int, error) {
	value := meta.Get(alignmentKey)
	if value == nil {
		return ggufAlign, nil
	}
	n, ok := meta.Int(alignmentKey)
	if !ok || n < 8 || n > ggufMaxAlign || n&(n-1) != 0 {
		return 0, fmt.Errorf("%s %v: expected a power of two from 8 to %d", alignmentKey, value, ggufMaxAlign)
	}
	return int(n), nil
}

// readTensorInfos reads the descriptions of n tensors: all but their data,
// whose start is only known after the last of them.
func readTensorInfos(c *cursor, path string, n uint64, align int) ([]*entry, error) {
	var tensors []*entry
	seen := map[string]bool{}
	for i := range c.count(n, ggufMinInfo, "tensors") {
		name := string(c.text())
		if c.err == nil && (name == "" || len(name) > ggufMaxName) {
			c.err = fmt.Errorf("a name of %d bytes: expected 1 to %d", len(name), ggufMaxName)
		}
		if c.err != nil {
			return nil, fmt.Errorf("tensor %d: %w", i+1, c.err)
		}
		if seen[name] {
			return nil, fmt.Errorf("tensor %s: listed twice", quoted(name))
		}
		seen[name] = true
		e := &entry{TensorInfo: TensorInfo{Stored: name, File: path}}
		if err := e.readInfo(c, align); err != nil {
			return nil, fmt.Errorf("tensor %s: %w", quoted(name), err)
		}
		tensors = append(tensors, e)
	}
	return tensors, c.err
}

// readInfo reads what follows the name: dimensions, type and offset.
func (e *entry) readInfo(c *cursor, align int) error {
	dims := c.uint32()
	if c.err == nil && (dims < 1 || dims > ggufMaxDims) {
		return fmt.Errorf("%d dimensions: expected 1 to %d", dims, ggufMaxDims)
	}
	e.Shape = make([]int, dims)
	for i := range e.Shape {
		n := c.uint64()
		if c.err == nil && (n < 1 || n > math.MaxInt) {
			return fmt.Errorf("dimension %d: size %d: expected 1 to %d", i, n, math.MaxInt)
		}
		e.Shape[len(e.Shape)-1-i] = int(n) // the file has the fastest first
	}
	typ, offset := c.uint32(), c.uint64()
	if c.err != nil {
		return c.err
	}
	var err error
	if e.DType, err = dtypeOfGGML(typ); err != nil {
		return err
	}
	if offset > math.MaxInt || offset%uint64(align) != 0 {
		return fmt.Errorf("offset %d: expected a multiple of %d", offset, align)
	}
	e.offset = int(offset)
	_, err = storedBytes(e.DType, e.Shape)
	return err
}

// placeTensors sorts tensors by their data and checks that these are within
// the file's and belong to one tensor each. Padding may lie between them.
func placeTensors(tensors []*entry, data []byte) error {
	slices.SortStableFunc(tensors, func(a, b *entry) int { return cmp.Compare(a.offset, b.offset) })
	end := 0
	for i, e := range tensors {
		if e.offset < end {
			return fmt.Errorf("tensor %s starts at data byte %d, inside tensor %s that ends at %d",
				quoted(e.Stored), e.offset, quoted(tensors[i-1].Stored), end)
		}
		size, err := storedBytes(e.DType, e.Shape)
		if err != nil {
			return fmt.Errorf("tensor %s: %w", quoted(e.Stored), err)
		}
		if e.offset > len(data) || size > len(data)-e.offset {
			return fmt.Errorf("tensor %s: %d bytes at data byte %d pass the end at %d: truncated file?", quoted(e.Stored), size, e.offset, len(data))
		}
		end = e.offset + size
		e.data = data[e.offset:end:end]
	}
	return nil
}
