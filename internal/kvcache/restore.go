package kvcache

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// Restore fills t, which is empty, with what Save wrote to dir for digest, and
// returns the number of positions. Of more than there is memory for it takes
// what was used last. The error is fs.ErrNotExist if nothing was saved. A file
// that is damaged, or of another layout of pages, is refused, and t stays empty.
func (t *Tree) Restore(dir, digest string) (tokens int, err error) {
	f, err := os.Open(file(dir, digest))
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if err := t.read(f, info.Size(), digest); err != nil {
		return 0, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return t.pages * t.pool.pagePositions, nil
}

// read is Restore of a file of size bytes.
func (t *Tree) read(from io.Reader, size int64, digest string) error {
	if t.pages > 0 {
		return errors.New("prefix cache: restored over one that is not empty")
	}
	r := &source{r: bufio.NewReaderSize(from, 1<<16), left: size}
	head, err := r.head(t.pool, digest)
	if err != nil {
		return err
	}
	nodes, err := t.readNodes(r, head)
	var ends []*node
	for _, n := range nodes {
		if len(n.children) == 0 {
			ends = append(ends, n)
		}
	}
	for _, n := range ends { // when all are there: what is above may go with them
		t.settle(n)
	}
	t.clock = head.Clock
	if err != nil {
		t.Evict(t.pages)
		t.clock, t.evicted = 0, 0
	}
	return err
}

// head reads and checks what the file begins with.
func (r *source) head(p *Pool, digest string) (*fileHead, error) {
	h := new(fileHead)
	if err := r.value(h); err != nil {
		return nil, err
	}
	switch {
	case h.Magic != fileMagic:
		return nil, fmt.Errorf("not a prefix cache of version %d", fileMagic[len(fileMagic)-1])
	case h.Layout != p.layout():
		return nil, errors.New("a prefix cache of other layers, dtype or page size")
	case h.Clock > 1<<62:
		return nil, fmt.Errorf("a clock of %d, expected at most %d", h.Clock, uint64(1)<<62)
	}
	name := make([]byte, min(int64(h.Digest), int64(len(digest))))
	if err := r.bytes(name); err != nil {
		return nil, err
	}
	if int64(h.Digest) != int64(len(digest)) || string(name) != digest {
		return nil, errors.New("a prefix cache of another model")
	}
	return h, r.close()
}

// readNodes reads nodes until memory or the file ends. Those it returns are in
// the tree, but not yet among its leaves.
func (t *Tree) readNodes(r *source, head *fileHead) (nodes []*node, err error) {
	for i := range head.Nodes {
		n, whole, err := t.readNode(r, head, nodes)
		if err != nil {
			return nodes, fmt.Errorf("node %d: %w", i+1, err)
		}
		if n != nil {
			nodes = append(nodes, n)
		}
		if !whole {
			return nodes, nil
		}
	}
	if r.left > 0 {
		return nodes, fmt.Errorf("%d bytes after the last node", r.left)
	}
	return nodes, nil
}

// readNode reads a node that hangs below one of nodes, or begins a namespace.
// whole is false if not all its pages found memory, n nil if none did.
func (t *Tree) readNode(r *source, head *fileHead, nodes []*node) (n *node, whole bool, err error) {
	var h nodeHead
	if err := r.value(&h); err != nil {
		return nil, false, err
	}
	page := t.pool.pagePositions
	positions := int64(h.Pages) * int64(page)
	switch {
	case int64(h.Parent) > int64(len(nodes)) || h.Parent > 0 && h.Namespace > 0:
		return nil, false, fmt.Errorf("parent %d of %d, with a namespace of %d bytes", h.Parent, len(nodes), h.Namespace)
	case h.Snapshot > 1 || h.Snapshot == 1 && !t.ringed():
		return nil, false, fmt.Errorf("%d snapshots of %d bytes", h.Snapshot, t.snapshots.bytes)
	case h.Pages == 0 || int64(h.Namespace)+4*positions+int64(h.Pages)*int64(t.pool.pages.bytes) > r.left:
		return nil, false, fmt.Errorf("%d pages and a namespace of %d bytes, where %d bytes are left", h.Pages, h.Namespace, r.left)
	}
	namespace, tokens := make([]byte, h.Namespace), make([]int32, positions)
	if err := r.bytes(namespace); err != nil {
		return nil, false, err
	}
	if err := r.value(tokens); err != nil {
		return nil, false, err
	}
	parent, used := t.roots[string(namespace)], head.Clock
	if h.Parent > 0 {
		parent = nodes[h.Parent-1]
		used = parent.used
	}
	switch {
	case h.Used > used || h.Born > head.Clock:
		return nil, false, fmt.Errorf("used at %d and made at %d, expected at most %d and %d", h.Used, h.Born, used, head.Clock)
	case parent != nil && parent.children[key(tokens[:page])] != nil:
		return nil, false, errors.New("another node begins with the same tokens")
	}
	n = t.node(node{hits: h.Hits, used: h.Used, born: h.Born})
	if err := t.readMemory(r, n, h); err != nil {
		t.pool.pages.put(n.pages)
		t.unmark(n)
		return nil, false, err
	}
	if len(n.pages) == 0 {
		return nil, false, nil
	}
	if parent == nil {
		parent = t.root(string(namespace))
	}
	n.tokens = tokens[:len(n.pages)*page]
	parent.adopt(n, page)
	parent.used = max(parent.used, n.used) // of a root
	t.pages += len(n.pages)
	t.evictable += len(n.pages)
	return n, len(n.pages) == int(h.Pages), nil
}

// readMemory reads pages and a snapshot into n, as far as there is memory for
// them, and the sum behind them. Where there are rings a part of the pages is of
// no use.
func (t *Tree) readMemory(r *source, n *node, h nodeHead) error {
	p := t.pool
	fit := min(int(h.Pages), p.Free())
	if t.ringed() && fit < int(h.Pages) {
		fit = 0
	}
	for range fit {
		n.pages = append(n.pages, p.take())
		if err := r.bytes(p.pages.at(n.pages[len(n.pages)-1])); err != nil {
			return err
		}
	}
	skip := int64(int(h.Pages)-fit) * int64(p.pages.bytes)
	if h.Snapshot == 1 {
		if fit > 0 && t.snapshots.available() > 0 {
			n.snapshot = t.snapshots.take()
			t.marked = append(t.marked, n)
			if err := r.bytes(t.snapshots.at(n.snapshot)); err != nil {
				return err
			}
		} else {
			skip += int64(t.snapshots.bytes)
		}
	}
	if err := r.skip(skip); err != nil {
		return err
	}
	return r.close()
}

// source reads and sums up, no further than the file goes.
type source struct {
	r    *bufio.Reader
	left int64
	sum  uint32
}

func (r *source) bytes(b []byte) error {
	if int64(len(b)) > r.left {
		return fmt.Errorf("%d bytes are left, expected %d: %w", r.left, len(b), io.ErrUnexpectedEOF)
	}
	r.left -= int64(len(b))
	_, err := io.ReadFull(r.r, b)
	r.sum = crc32.Update(r.sum, castagnoli, b)
	return err
}

// value reads what v points to, or the elements of v.
func (r *source) value(v any) error {
	b := make([]byte, binary.Size(v))
	if err := r.bytes(b); err != nil {
		return err
	}
	_, err := binary.Decode(b, binary.LittleEndian, v)
	return err
}

// skip reads n bytes for their sum alone.
func (r *source) skip(n int64) error {
	b := make([]byte, min(n, 1<<16))
	for ; n > 0; n -= int64(len(b)) {
		b = b[:min(n, int64(len(b)))]
		if err := r.bytes(b); err != nil {
			return err
		}
	}
	return nil
}

// close reads the sum of what was read since the last.
func (r *source) close() error {
	sum, want := r.sum, uint32(0)
	if err := r.value(&want); err != nil {
		return err
	}
	r.sum = 0
	if sum != want {
		return fmt.Errorf("damaged: the sum is %08x, expected %08x", sum, want)
	}
	return nil
}
