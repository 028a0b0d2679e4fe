package kvcache

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/foretoken/foretoken/internal/tensor"
)

// fataler is a testing.TB or a rapid.T.
type fataler interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// A world is a pool with a tree and sequences whose layers "compute" patterns:
// an entry is filled with a hash of the namespace, all tokens up to its last,
// and its store. One that is read anywhere else than where it belongs is seen.
type world struct {
	fataler
	pool      *Pool
	tree      *Tree
	tables    []*Table
	sequences []*sequence
	views     [][]View
}

// A sequence is some tokens whose entries are computed.
type sequence struct {
	number    int
	table     *Table
	namespace string
	tokens    []int32
}

func newWorld(t fataler, layers []LayerSpec, pages, pageSize, sequences int, o TreeOptions) *world {
	least := pagePositions(layers)
	pool, err := NewPool(layers, tensor.F32, pages*max(pageSize, least), pageSize)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := NewTree(pool, o)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{fataler: t, pool: pool, tree: tree}
	for i := range sequences {
		w.tables = append(w.tables, new(Table))
		w.sequences = append(w.sequences, &sequence{number: i, table: w.tables[i]})
	}
	w.views = pool.Views(&w.tables)
	return w
}

// attach begins s with what the tree has of tokens.
func (w *world) attach(s *sequence, namespace string, tokens []int32) int {
	n := w.tree.Attach(s.table, namespace, tokens)
	s.namespace, s.tokens = namespace, slices.Clone(tokens[:n])
	w.read(s)
	return n
}

// compute appends tokens to s and writes what layers keep of them.
func (w *world) compute(s *sequence, tokens ...int32) error {
	from := len(s.tokens)
	if err := w.pool.Grow(s.table, from+len(tokens)); err != nil {
		return err
	}
	s.tokens = append(s.tokens, tokens...)
	w.entries(s, from, len(s.tokens), func(entry []byte, pattern uint64, _ string) {
		for i := range entry {
			if i%8 == 0 {
				pattern = mix(pattern, uint64(i))
			}
			entry[i] = byte(pattern >> (i % 8 * 8))
		}
	})
	return nil
}

// insert puts all that s has computed into the tree.
func (w *world) insert(s *sequence) { w.tree.Insert(s.table, s.namespace, s.tokens) }

// rewind keeps the first n tokens of s.
func (w *world) rewind(s *sequence, n int) error {
	err := w.pool.Rewind(s.table, n)
	if err == nil {
		s.tokens = s.tokens[:n]
	}
	return err
}

func (w *world) release(s *sequence) {
	w.pool.Release(s.table)
	s.tokens = nil
}

// read compares all that the next row of s can read with what it should be.
func (w *world) read(s *sequence) {
	w.entries(s, 0, 0, func(entry []byte, pattern uint64, name string) {
		for i, got := range entry {
			if i%8 == 0 {
				pattern = mix(pattern, uint64(i))
			}
			if want := byte(pattern >> (i % 8 * 8)); got != want {
				w.Fatalf("sequence %d of %d tokens, %s, byte %d: %d, want %d", s.number, len(s.tokens), name, i, got, want)
			}
		}
	})
}

// check balances the books.
func (w *world) check() {
	if err := w.tree.Check(w.tables...); err != nil {
		w.Fatal(err)
	}
}

// entries calls f with each entry of s that ends at position from or later,
// with its pattern. Of a ring it has those that the next row reads, and more
// before them.
func (w *world) entries(s *sequence, from, more int, f func(entry []byte, pattern uint64, name string)) {
	hash := uint64(0)
	for _, c := range []byte(s.namespace) {
		hash = mix(hash, uint64(c))
	}
	for pos, token := range s.tokens {
		hash = mix(hash, uint64(token))
		if pos < from {
			continue
		}
		for i, l := range w.pool.layers {
			for k, store := range l {
				if (pos+1)%store.every() > 0 || store.Ring > 0 && pos < len(s.tokens)-store.Ring-more {
					continue
				}
				view, at := &w.views[i][k], pos/store.every()
				var entry []byte
				if store.Layout == Blocks {
					n := store.EntryBytes(w.pool.dtype)
					entry = view.Block(s.number, at/BlockSize)[at%BlockSize*n:][:n]
				} else {
					entry = view.Entry(s.number, at)
				}
				f(entry, mix(hash, uint64(100*i+k)), fmt.Sprintf("layer %d store %d entry %d", i, k, at))
			}
		}
	}
}

func mix(a, b uint64) uint64 {
	x := (a ^ b + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
	return x ^ x>>29
}

// pathOf names a prefix, for maps.
func pathOf(namespace string, tokens []int32) string {
	name := append([]byte(namespace), 0)
	for _, token := range tokens {
		name = binary.LittleEndian.AppendUint32(name, uint32(token))
	}
	return string(name)
}

// paths returns all prefixes in the tree, of whole pages.
func (w *world) paths() map[string]bool {
	paths, tokens := map[string]bool{}, map[*node][]int32{}
	for n := range w.tree.all() {
		root := n
		for root.parent != nil {
			root = root.parent
		}
		before := tokens[n.parent]
		tokens[n] = append(slices.Clone(before), n.tokens...)
		for end := len(before) + w.pool.pagePositions; end <= len(tokens[n]); end += w.pool.pagePositions {
			paths[pathOf(root.namespace, tokens[n][:end])] = true
		}
	}
	return paths
}

// run is n equal tokens.
func run(token int32, n int) []int32 { return slices.Repeat([]int32{token}, n) }

// spell makes tokens of a word: a page of each letter.
func (w *world) spell(word string) (tokens []int32) {
	for _, letter := range word {
		tokens = append(tokens, run(letter, w.pool.pagePositions)...)
	}
	return tokens
}

// begin lets s share what it can of a word, computes the rest and inserts it.
func (w *world) begin(s *sequence, word string) {
	tokens := w.spell(word)
	n := w.attach(s, "", tokens)
	if err := w.compute(s, tokens[n:]...); err != nil {
		w.Fatal(err)
	}
	w.insert(s)
}

// keep is begin, and the end of it.
func (w *world) keep(word string) {
	s := w.sequences[len(w.sequences)-1]
	w.begin(s, word)
	w.release(s)
}

// shape writes the tree as letters of its pages, * for a snapshot, the number
// of locks, and children in parentheses: "ab2(c1 d1)".
func (w *world) shape() string {
	w.check()
	var write func(n *node) string
	write = func(n *node) string {
		b := []byte{}
		for at := 0; at < len(n.tokens); at += w.pool.pagePositions {
			b = append(b, byte(n.tokens[at]))
		}
		if n.snapshot != none {
			b = append(b, '*')
		}
		if n.locks > 0 {
			b = fmt.Append(b, n.locks)
		}
		var children []string
		for _, child := range n.children {
			children = append(children, write(child))
		}
		slices.Sort(children)
		if len(children) > 0 && n.parent != nil {
			b = fmt.Append(b, "(", strings.Join(children, " "), ")")
		} else {
			b = append(b, strings.Join(children, " ")...)
		}
		return string(b)
	}
	var roots []string
	for name, root := range w.tree.roots {
		if name != "" {
			name += ": "
		}
		roots = append(roots, name+write(root))
	}
	slices.Sort(roots)
	return strings.Join(roots, ", ")
}

func (w *world) want(shape string) {
	if got := w.shape(); got != shape {
		w.Fatalf("the tree is %q, want %q", got, shape)
	}
}
