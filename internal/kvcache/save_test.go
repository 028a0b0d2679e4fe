package kvcache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
)

const digest = "sha256:0123 absorbed"

// grown is a tree with splits, namespaces and, where layers keep rings,
// snapshots, some of them gone.
func grown(t fataler, layers []LayerSpec) *world {
	w := newWorld(t, layers, 32, 0, 2, TreeOptions{Snapshots: 4})
	for _, word := range []string{"abcd", "ab", "abef", "xy", "abe", "abcd"} {
		w.keep(word)
	}
	w.tree.Match("", w.spell("xz"))
	w.attach(w.sequences[0], "lora", nil)
	if err := w.compute(w.sequences[0], w.spell("ab")...); err != nil {
		t.Fatal(err)
	}
	w.insert(w.sequences[0])
	w.release(w.sequences[0])
	return w
}

// What is saved is restored: prefixes, content, and the order in which they are
// evicted.
func TestRestore(t *testing.T) {
	for name, layers := range map[string][]LayerSpec{"plain": plain, "rings": ringed, "all stores": mixed} {
		dir := filepath.Join(t.TempDir(), "made", "when needed")
		saved := grown(t, layers)
		for range 2 { // over the one before
			if err := saved.tree.Save(dir, digest); err != nil {
				t.Fatal(err)
			}
		}
		files, _ := os.ReadDir(dir)
		if info, err := os.Stat(file(dir, digest)); len(files) != 1 || err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: saved to %v, %v; want one file of the owner's", name, files, err)
		}

		w := newWorld(t, layers, 32, 0, 2, TreeOptions{Snapshots: 4})
		tokens, err := w.tree.Restore(dir, digest)
		if err != nil || tokens != saved.tree.pages*w.pool.PageSize() {
			t.Fatalf("%s: %d tokens, %v", name, tokens, err)
		}
		if _, err := w.tree.Restore(dir, digest); err == nil {
			t.Errorf("%s: restored twice", name)
		}
		w.want(saved.shape())
		for w.tree.pages > 0 {
			w.want(saved.shape())
			if n := w.attach(w.sequences[0], "", w.spell("abcd")); n != saved.attach(saved.sequences[0], "", w.spell("abcd")) {
				t.Errorf("%s: %d positions are shared", name, n)
			}
			w.attach(w.sequences[1], "lora", w.spell("ab"))
			saved.attach(saved.sequences[1], "lora", w.spell("ab"))
			for i, s := range w.sequences {
				w.release(s)
				saved.release(saved.sequences[i])
			}
			w.tree.Evict(1)
			saved.tree.Evict(1)
		}
	}
}

// Whatever eviction goes by comes back.
func TestRestoreKeepsEvictionOrder(t *testing.T) {
	for _, policy := range []Policy{LRU, LFU, FIFO} {
		saved, w := newWorld(t, plain, 32, 0, 1, TreeOptions{Policy: policy}), newWorld(t, plain, 32, 0, 1, TreeOptions{Policy: policy})
		for _, word := range []string{"ab", "ab", "cd", "ax", "cd", "cd", "ab", "ef"} {
			saved.keep(word)
		}
		var data bytes.Buffer
		if err := saved.tree.write(&data, digest); err != nil {
			t.Fatal(err)
		}
		if err := w.tree.read(&data, int64(data.Len()), digest); err != nil {
			t.Fatal(err)
		}
		w.keep("new")
		saved.keep("new")
		for w.tree.pages > 0 {
			w.want(saved.shape())
			w.tree.Evict(1)
			saved.tree.Evict(1)
		}
	}
}

// A tree that cannot be saved leaves nothing behind.
func TestSaveFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(file(dir, digest), "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	err := grown(t, plain).tree.Save(dir, digest)
	if files, _ := os.ReadDir(dir); err == nil || len(files) != 1 {
		t.Errorf("%v; the directory has %v", err, files)
	}
}

// A smaller pool takes what was used last.
func TestRestoreToASmallerPool(t *testing.T) {
	for _, test := range []struct {
		layers    []LayerSpec
		pages     int
		snapshots int
		want      string
	}{
		{plain, 10, 4, "ab(cd e(f)) x(y), lora: ab"},
		{plain, 7, 4, "ab(cd) x, lora: ab"},
		{plain, 6, 4, "ab(c) x, lora: ab"}, // a part of a node is of use
		{plain, 1, 4, "lora: a"},
		{plain, 0, 4, ""},
		{ringed, 10, 4, "ab*(cd*) x(y*), lora: ab*"},
		{ringed, 6, 4, "ab*, lora: ab*"}, // but not without its snapshot, and so not x either
		{ringed, 10, 2, "ab*, lora: ab*"},
	} {
		saved := grown(t, test.layers)
		var data bytes.Buffer
		if err := saved.tree.write(&data, digest); err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, test.layers, test.pages, 0, 1, TreeOptions{Snapshots: test.snapshots})
		if err := w.tree.read(&data, int64(data.Len()), digest); err != nil {
			t.Fatal(err)
		}
		if got := w.shape(); got != test.want {
			t.Errorf("%d pages: %q, want %q", test.pages, got, test.want)
		}
	}
}

func TestRestoreRefuses(t *testing.T) {
	dir := t.TempDir()
	saved := grown(t, ringed)
	if err := saved.tree.Save(dir, digest); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file(dir, digest))
	if err != nil {
		t.Fatal(err)
	}
	other := newWorld(t, ringed, 32, 0, 1, TreeOptions{})
	refuse := func(name string, w *world, digest, want string) {
		t.Helper()
		n, err := w.tree.Restore(dir, digest)
		if n != 0 || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %d tokens, error %v, want %q", name, n, err, want)
		}
		if w.want(""); w.pool.Free()*w.pool.PageSize() != w.pool.Capacity() || w.tree.Stats() != (Stats{}) {
			t.Errorf("%s: %d pages are free, %+v", name, w.pool.Free(), w.tree.Stats())
		}
	}
	if _, err := other.tree.Restore(dir, "another"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing saved: %v", err)
	}
	for name, w := range map[string]*world{
		"other layers":    newWorld(t, plain, 32, 0, 1, TreeOptions{}),
		"other page size": newWorld(t, ringed, 32, 64, 1, TreeOptions{}),
	} {
		refuse(name, w, digest, "a prefix cache of other layers, dtype or page size")
	}
	if err := os.WriteFile(file(dir, "another"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	refuse("renamed", other, "another", "a prefix cache of another model")
	if err := os.WriteFile(file(dir, digest[1:]+"x"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	refuse("renamed, of the same length", other, digest[1:]+"x", "a prefix cache of another model")
	if err := os.Mkdir(file(dir, "a directory"), 0o700); err != nil {
		t.Fatal(err)
	}
	refuse("a directory", other, "a directory", "directory")

	write := func(data []byte) {
		if err := os.WriteFile(file(dir, digest), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"empty":         {nil, "unexpected EOF"},
		"another file":  {bytes.Repeat([]byte("{}"), 100), "not a prefix cache of version 1"},
		"a byte more":   {append(bytes.Clone(data), 0), "1 bytes after the last node"},
		"a byte less":   {data[:len(data)-1], "unexpected EOF"},
		"half":          {data[:len(data)/2], "bytes are left"},
		"a bit flipped": {flip(data, len(data)/2), "damaged: the sum is"},
	} {
		write(test.data)
		refuse(name, other, digest, test.want)
	}
}

func flip(data []byte, at int) []byte {
	data = bytes.Clone(data)
	data[at] ^= 4
	return data
}

// Whatever byte is damaged, the file is refused.
func TestRestoreSeesEveryByte(t *testing.T) {
	saved := newWorld(t, ringed, 32, 0, 1, TreeOptions{})
	saved.keep("a")
	var data bytes.Buffer
	if err := saved.tree.write(&data, digest); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, ringed, 32, 0, 1, TreeOptions{})
	for at := range data.Len() {
		if err := w.tree.read(bytes.NewReader(flip(data.Bytes(), at)), int64(data.Len()), digest); err == nil {
			t.Fatalf("byte %d of %d is flipped: no error", at, data.Len())
		}
	}
	w.want("")
	if err := w.tree.read(&data, int64(data.Len()), digest); err != nil {
		t.Error(err)
	}
}

// Sums can be made to fit: what they do not prove is checked.
func TestRestoreChecksNodes(t *testing.T) {
	layers := plain
	first := binary.Size(fileHead{}) + len(digest) + 4
	second := first + binary.Size(nodeHead{}) + 32*(4+8) + 4 // of a node of a page
	put := func(at int, v uint32) func([]byte) {
		return func(b []byte) { binary.LittleEndian.PutUint32(b[at:], v) }
	}
	for name, test := range map[string]struct {
		damage func([]byte)
		want   string
	}{
		"a clock that overflows":   {put(44, 1<<31), "a clock of"},
		"a digest of 4 GB":         {put(52, 1<<32-1), "a prefix cache of another model"},
		"more nodes":               {put(48, 9), "node 3: 0 bytes are left"},
		"fewer nodes":              {put(48, 1), "bytes after the last node"},
		"a parent that comes last": {put(second, 2), "node 2: parent 2 of 1"},
		"a parent and a namespace": {put(second+4, 1), "node 2: parent 1 of 1, with a namespace of 1 bytes"},
		"4 GB of namespace":        {put(first+4, 1<<32-1), "node 1: 1 pages and a namespace of 4294967295 bytes, where"},
		"4 billion pages":          {put(first+8, 1<<32-1), "node 1: 4294967295 pages"},
		"no pages":                 {put(first+8, 0), "node 1: 0 pages"},
		"a snapshot of nothing":    {put(first+12, 1), "node 1: 1 snapshots of 0 bytes"},
		"two snapshots":            {put(first+12, 2), "node 1: 2 snapshots"},
		"used in the future":       {put(first+24, 99), "node 1: used at 99"},
		"used after its parent":    {put(second+24, 99), "node 2: used at 99"},
		"made in the future":       {put(first+32, 99), "node 1: used at"},
		"twins":                    {put(second, 0), "node 2: another node begins with the same tokens"},
	} {
		saved := newWorld(t, layers, 32, 0, 1, TreeOptions{})
		saved.keep("aa")
		saved.tree.Match("", saved.spell("a"))
		saved.want("a(a)")
		var data bytes.Buffer
		if err := saved.tree.write(&data, digest); err != nil {
			t.Fatal(err)
		}
		b := data.Bytes()
		test.damage(b)
		seal(saved.pool, b)
		w := newWorld(t, layers, 32, 0, 1, TreeOptions{})
		if err := w.tree.read(bytes.NewReader(b), int64(len(b)), digest); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
		w.want("")
	}
}

// seal makes the sums of a file fit, as far as it can be followed.
func seal(p *Pool, data []byte) {
	at := 0
	sum := func(n int64) bool {
		end := int64(at) + n
		if n < 0 || end+4 > int64(len(data)) {
			return false
		}
		binary.LittleEndian.PutUint32(data[end:], crc32.Checksum(data[at:end], castagnoli))
		at = int(end) + 4
		return true
	}
	head := int64(binary.Size(fileHead{}))
	if int64(len(data)) < head || !sum(head+int64(binary.LittleEndian.Uint32(data[head-4:]))) {
		return
	}
	for {
		var h nodeHead
		if _, err := binary.Decode(data[at:], binary.LittleEndian, &h); err != nil {
			return
		}
		n := int64(binary.Size(h)) + int64(h.Namespace) + int64(h.Pages)*int64(4*p.pagePositions+p.pages.bytes)
		if h.Snapshot == 1 {
			n += int64(p.snapshotBytes())
		}
		if !sum(n) {
			return
		}
	}
}

// A file with any damage is refused, or what it holds is a tree.
func FuzzRestore(f *testing.F) {
	for i, layers := range [][]LayerSpec{plain, ringed} {
		saved := grown(f, layers)
		var data bytes.Buffer
		if err := saved.tree.write(&data, digest); err != nil {
			f.Fatal(err)
		}
		for _, sealed := range []bool{true, false} {
			f.Add(i == 1, sealed, data.Bytes())
		}
	}
	f.Fuzz(func(t *testing.T, rings, sealed bool, data []byte) {
		layers := plain
		if rings {
			layers = ringed
		}
		w := newWorld(t, layers, 8, 0, 2, TreeOptions{Snapshots: 2})
		if sealed {
			seal(w.pool, data)
		}
		err := w.tree.read(bytes.NewReader(data), int64(len(data)), digest)
		w.check()
		if err != nil && w.pool.Free() != 8 {
			t.Fatalf("%v: but %d pages are held", err, 8-w.pool.Free())
		}
		if n := w.tree.Attach(w.tables[0], "", w.spell("abcd")); n > 0 {
			w.check()
		}
		if err := w.pool.Grow(w.tables[1], 3*32); err != nil && w.tables[0].shared <= 5 {
			t.Fatal(err)
		}
		w.check()
	})
}

// Trees that differ in anything that a page's bytes depend on do not read one
// another's files.
func TestLayoutsDiffer(t *testing.T) {
	store := Store{Kind: "keys", Layout: Rows, Heads: 2, KeyDim: 32, ValueDim: 64}
	seen := map[[32]byte]string{}
	for name, change := range map[string]func(s *Store, d *tensor.DType, page *int){
		"nothing":   func(*Store, *tensor.DType, *int) {},
		"layout":    func(s *Store, _ *tensor.DType, _ *int) { s.Layout = Blocks },
		"heads":     func(s *Store, _ *tensor.DType, _ *int) { s.Heads, s.KeyDim, s.ValueDim = 1, 64, 128 },
		"widths":    func(s *Store, _ *tensor.DType, _ *int) { s.KeyDim, s.ValueDim = 64, 32 },
		"every":     func(s *Store, _ *tensor.DType, _ *int) { s.Every = 2 },
		"ring":      func(s *Store, _ *tensor.DType, _ *int) { s.Ring = 8 },
		"dtype":     func(_ *Store, d *tensor.DType, _ *int) { *d = tensor.BF16 },
		"own dtype": func(s *Store, _ *tensor.DType, _ *int) { s.DType = tensor.BF16 },
		"page":      func(_ *Store, _ *tensor.DType, page *int) { *page = 64 },
	} {
		s, d, page := store, tensor.F16, 0
		change(&s, &d, &page)
		pool, err := NewPool([]LayerSpec{{s}}, d, 64, page)
		if err != nil {
			t.Fatal(err)
		}
		if other, same := seen[pool.layout()]; same {
			t.Errorf("%s and %s have one layout", name, other)
		}
		seen[pool.layout()] = name
	}
}
