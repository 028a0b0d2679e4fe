package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// The limits of metadata: keys have at most 2¹⁶-1 bytes by the format; the
// total is ours (a vocabulary of 2.6·10⁵ tokens with merges takes some
// 16 MB), since metadata are copied.
const (
	maxKey      = 1<<16 - 1
	maxMetadata = 256 << 20
)

// minPair is the size of the smallest key and value: a key of one byte, a
// type and a byte.
const minPair = 8 + 1 + 4 + 1

// metaSize is the size of a number of each type, 0 for others.
var metaSize = [...]int{
	metaUint8: 1, metaInt8: 1, metaUint16: 2, metaInt16: 2,
	metaUint32: 4, metaInt32: 4, metaFloat32: 4, metaBool: 1,
	metaString: 0, metaArray: 0, metaUint64: 8, metaInt64: 8, metaFloat64: 8,
}

// A cursor reads little-endian fields. After the first error it stays where
// it is and reads zeros, so that callers check err once per item.
type cursor struct {
	data []byte
	pos  int
	err  error
}

func (c *cursor) left() int { return len(c.data) - c.pos }

func (c *cursor) take(n uint64) []byte {
	if c.err == nil && n > uint64(c.left()) {
		c.err = fmt.Errorf("%d bytes at byte %d, but only %d are left: truncated file?", n, c.pos, c.left())
	}
	if c.err != nil {
		return nil
	}
	b := c.data[c.pos : c.pos+int(n)]
	c.pos += int(n)
	return b
}

func (c *cursor) uint32() uint32 {
	if b := c.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) uint64() uint64 {
	if b := c.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// text reads a string: its length and its bytes.
func (c *cursor) text() []byte { return c.take(c.uint64()) }

// count checks that n items of at least size bytes can follow.
func (c *cursor) count(n uint64, size int, of string) int {
	if c.err == nil && n > uint64(c.left()/size) {
		c.err = fmt.Errorf("%d %s cannot fit in the %d bytes that follow: truncated file?", n, of, c.left())
	}
	if c.err != nil {
		return 0
	}
	return int(n)
}

// readMetadata reads n key-value pairs and copies them.
func readMetadata(c *cursor, n int) (*Metadata, error) {
	m := &Metadata{values: map[string]metaValue{}}
	start := c.pos
	for i := range n {
		key := string(c.text())
		if c.err == nil && (key == "" || len(key) > maxKey) {
			c.err = fmt.Errorf("%d bytes long: expected 1 to %d", len(key), maxKey)
		}
		if c.err != nil {
			return nil, fmt.Errorf("metadata key %d: %w", i+1, c.err)
		}
		if _, ok := m.values[key]; ok {
			return nil, fmt.Errorf("metadata key %s: listed twice", quoted(key))
		}
		v := readValue(c)
		if c.err == nil && c.pos-start > maxMetadata {
			c.err = fmt.Errorf("metadata of more than %d bytes", maxMetadata)
		}
		if c.err != nil {
			return nil, fmt.Errorf("metadata key %s: %w", quoted(key), c.err)
		}
		v.start, v.end = v.start-start, v.end-start
		m.keys = append(m.keys, key)
		m.values[key] = v
	}
	m.raw = bytes.Clone(c.data[start:c.pos])
	return m, nil
}

// readValue checks a value and records where it is in the file.
func readValue(c *cursor) metaValue {
	v := metaValue{typ: metaType(c.uint32()), count: 1}
	if v.typ == metaArray {
		v.typ, v.array = metaType(c.uint32()), true
		n := c.uint64()
		switch {
		case c.err != nil || v.typ >= metaTypes:
		case v.typ == metaArray:
			c.err = fmt.Errorf("an array of arrays: not supported")
		case v.typ == metaString:
			v.count = c.count(n, 8, "strings")
		default:
			v.count = c.count(n, metaSize[v.typ], "array elements")
		}
	}
	if c.err == nil && v.typ >= metaTypes {
		c.err = fmt.Errorf("unknown value type %d", v.typ)
	}
	v.start = c.pos
	switch {
	case c.err != nil:
	case v.typ == metaString && v.array:
		for range v.count {
			if c.text(); c.err != nil {
				break
			}
		}
	case v.typ == metaString:
		v.start += 8 // the payload is the text alone
		c.text()
	default:
		payload := c.take(uint64(v.count * metaSize[v.typ]))
		if v.typ == metaBool {
			for _, b := range payload {
				if b > 1 {
					c.err = fmt.Errorf("boolean %d: expected 0 or 1", b)
					break
				}
			}
		}
	}
	v.end = c.pos
	return v
}
