package kvcache

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// A saved tree is a file of
//
//	fileHead, digest, sum
//	for each node, most recently used first, so that parents come before children:
//	    nodeHead, namespace if there is no parent, tokens, pages, snapshot if there is one, sum
//
// Numbers are little-endian. A sum is the CRC-32C of what follows the one before.
type fileHead struct {
	Magic  [8]byte
	Layout [sha256.Size]byte // of pages and snapshots
	Clock  uint64
	Nodes  uint32
	Digest uint32 // bytes
}

type nodeHead struct {
	Parent           uint32 // number of a node before, counted from 1; 0: none
	Namespace        uint32 // bytes
	Pages            uint32
	Snapshot         uint32 // 1: there is one
	Hits, Used, Born uint64
}

// fileMagic ends in the format's version.
var fileMagic = [8]byte{'f', 't', 'p', 'r', 'e', 'f', 'i', 1}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// layout is a hash of all that the meaning of a page's bytes depends on, as
// far as the pool knows it.
func (p *Pool) layout() [sha256.Size]byte {
	h := sha256.New()
	littleEndian := binary.NativeEndian.Uint16([]byte{1, 0}) == 1
	fmt.Fprintln(h, littleEndian, p.dtype, p.pagePositions, BlockSize, lineBytes, p.pages.bytes, p.snapshotBytes())
	for i, l := range p.layers {
		for _, s := range l {
			fmt.Fprintln(h, i, s.Layout, s.Heads, s.KeyDim, s.ValueDim, s.DType, s.every(), s.Ring)
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// file is where a tree is saved: each model has its own in dir.
func file(dir, digest string) string {
	name := sha256.Sum256([]byte(digest))
	return filepath.Join(dir, hex.EncodeToString(name[:12])+".prefixes")
}

// Save writes the tree to a file in dir, which is made if need be, in place of
// what was saved for digest before. digest stands for all that cached bits
// depend on and the pool does not know: weights, options, the kernels' tier. The
// file has users' prompts; none but the owner may read it.
func (t *Tree) Save(dir, digest string) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	path := file(dir, digest)
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*") // renamed when whole
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if err := t.write(f, digest); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func (t *Tree) write(to io.Writer, digest string) error {
	nodes := slices.Collect(t.all())
	slices.SortStableFunc(nodes, func(a, b *node) int { return cmp.Compare(b.used, a.used) })

	w := &summed{w: bufio.NewWriterSize(to, 1<<20)}
	w.value(fileHead{fileMagic, t.pool.layout(), t.clock, uint32(len(nodes)), uint32(len(digest))})
	w.bytes([]byte(digest))
	w.close()
	numbers := map[*node]uint32{}
	for i, n := range nodes {
		numbers[n] = uint32(i + 1)
		head := nodeHead{
			Parent: numbers[n.parent], Namespace: uint32(len(n.parent.namespace)), Pages: uint32(len(n.pages)),
			Hits: n.hits, Used: n.used, Born: n.born,
		}
		if n.snapshot != none {
			head.Snapshot = 1
		}
		w.value(head)
		w.bytes([]byte(n.parent.namespace))
		w.value(n.tokens)
		for _, page := range n.pages {
			w.bytes(t.pool.pages.at(page))
		}
		if n.snapshot != none {
			w.bytes(t.snapshots.at(n.snapshot))
		}
		w.close()
	}
	if w.err != nil {
		return w.err
	}
	return w.w.Flush()
}

// summed writes and sums up until the first error.
type summed struct {
	w   *bufio.Writer
	sum uint32
	err error
}

func (w *summed) bytes(b []byte) {
	if w.err == nil {
		w.sum = crc32.Update(w.sum, castagnoli, b)
		_, w.err = w.w.Write(b)
	}
}

func (w *summed) value(v any) {
	b, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		panic(err) // of a type without a size
	}
	w.bytes(b)
}

// close writes the sum and begins another.
func (w *summed) close() {
	w.value(w.sum)
	w.sum = 0
}
