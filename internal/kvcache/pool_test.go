package kvcache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/foretoken/foretoken/internal/tensor"
	"pgregory.net/rapid"
)

func newPool(t interface{ Fatal(...any) }, layers []LayerSpec, d tensor.DType, tokens int) *Pool {
	p, err := NewPool(layers, d, tokens, 0)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// plain is one layer with a key and a value of one value each.
var plain = []LayerSpec{{{Heads: 1, KeyDim: 1, ValueDim: 1}}}

// mixed has a store of every kind, as DeepSeek V4 has.
var mixed = []LayerSpec{
	{
		{Kind: "window", Layout: Rows, Heads: 1, KeyDim: 32, Ring: 20},
		{Kind: "compressed", Layout: Rows, Heads: 1, KeyDim: 32, Every: 4},
		{Kind: "index keys", Heads: 1, KeyDim: 64, Every: 4},
		{Kind: "inputs", Layout: Rows, Heads: 1, KeyDim: 12, DType: tensor.F32, Ring: 8},
	},
	{{Kind: "keys and values", Heads: 2, KeyDim: 32, ValueDim: 64}},
	{{Kind: "latent", Layout: Rows, Heads: 1, KeyDim: 96}, {Kind: "compressed", Layout: Rows, Heads: 1, KeyDim: 32, Every: 128}},
}

// Sequences grow, rewind and end in any order: free + held pages = pool, no
// page is held twice, and what was written is read back.
func TestPoolAccounting(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pool := newPool(rt, plain, tensor.F32, 40*BlockSize)
		tables := make([]*Table, 4)
		for i := range tables {
			tables[i] = new(Table)
		}
		lengths := make([]int, 4)
		view := pool.Views(&tables)[0][0]
		for step := range 60 {
			i := rapid.IntRange(0, 3).Draw(rt, "sequence")
			n := rapid.IntRange(0, 20*BlockSize).Draw(rt, "length")
			if n < lengths[i] {
				if err := pool.Rewind(tables[i], n); err != nil {
					rt.Fatal(err)
				}
				lengths[i] = n
			} else {
				held := len(tables[i].pages)
				var full *ErrFull
				switch err := pool.Grow(tables[i], n); {
				case err == nil:
					for pos := lengths[i]; pos < n; pos++ {
						binary.LittleEndian.PutUint32(view.Block(i, pos/BlockSize)[pos%BlockSize*4:], uint32(1000*i+pos))
					}
					lengths[i] = n
				case !errors.As(err, &full) || full.Want <= full.Free || len(tables[i].pages) != held:
					rt.Fatalf("step %d: %v", step, err)
				}
			}
			seen := map[int32]bool{}
			held := 0
			for j := range tables {
				for _, p := range tables[j].pages {
					if seen[p] {
						rt.Fatalf("page %d is held twice", p)
					}
					seen[p] = true
					held++
				}
			}
			if pool.Free()+held != 40 {
				rt.Fatalf("%d free + %d held pages, expected 40", pool.Free(), held)
			}
			for j := range tables {
				for pos := 0; pos < lengths[j]; pos += 7 {
					if got := binary.LittleEndian.Uint32(view.Block(j, pos/BlockSize)[pos%BlockSize*4:]); got != uint32(1000*j+pos) {
						rt.Fatalf("sequence %d position %d holds %v", j, pos, got)
					}
				}
			}
		}
	})
}

// Rings are taken and given back with their sequences.
func TestRingAccounting(t *testing.T) {
	pool := newPool(t, mixed, tensor.F32, 128)
	for range 3 {
		var table, other Table
		if err := pool.Grow(&table, 100); err != nil {
			t.Fatal(err)
		}
		if full := (*ErrFull)(nil); !errors.As(pool.Grow(&other, 1), &full) || pool.rings.available() != 0 {
			t.Fatalf("a second sequence: %v, %d rings free", full, pool.rings.available())
		}
		pool.Release(&table)
		if pool.Free() != 1 || pool.rings.available() != 1 {
			t.Fatalf("%d pages and %d rings free, want 1", pool.Free(), pool.rings.available())
		}
	}
}

// eachPlace calls f with every block and entry of two sequences, and with a
// name of its own for each. Of a ring it has the last entries.
func eachPlace(pool *Pool, tables []*Table, length int, f func(memory []byte, name byte, block bool)) {
	name := byte(0)
	for layer, views := range pool.Views(&tables) {
		for store, view := range views {
			s := pool.layers[layer][store]
			for seq := range tables {
				entries := length / s.every()
				switch {
				case s.Layout == Blocks:
					for b := range (entries + BlockSize - 1) / BlockSize {
						name++
						f(view.Block(seq, b), name, true)
					}
				default:
					from := 0
					if s.Ring > 0 {
						from = entries - s.Ring - Slack
					}
					for i := from; i < entries; i++ {
						name++
						f(view.Entry(seq, i), name, false)
					}
				}
			}
		}
	}
}

// Every block and entry is its own: of the right size, and apart from those
// of other layers, pages and sequences. Blocks begin at cache lines.
func TestPlacesAreApart(t *testing.T) {
	for _, d := range []tensor.DType{tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0} {
		pool := newPool(t, mixed, d, 1024)
		tables := []*Table{new(Table), new(Table)}
		if err := errors.Join(pool.Grow(tables[0], 200), pool.Grow(tables[1], 200)); err != nil {
			t.Fatal(err)
		}
		if pool.PageSize() != 128 {
			t.Errorf("pages of %d positions, want 128: 32 index keys, one entry of the last store", pool.PageSize())
		}
		eachPlace(pool, tables, 200, func(memory []byte, name byte, block bool) {
			if block && uintptr(unsafe.Pointer(&memory[0]))%lineBytes != 0 {
				t.Errorf("%v: a block begins inside a cache line", d)
			}
			for i := range memory {
				memory[i] = name
			}
		})
		eachPlace(pool, tables, 200, func(memory []byte, name byte, _ bool) {
			for i, got := range memory {
				if got != name {
					t.Fatalf("%v: byte %d of place %d belongs to %d", d, i, name, got)
				}
			}
		})
	}
}

func TestBytes(t *testing.T) {
	for d, want := range map[tensor.DType][2]int{
		// 32/4 + 64/4 + 2·96 + 96 + 32/128 values a token; 84 windows of 32 values, 72 inputs of 12 floats
		tensor.F32:  {1249, 84*32*4 + 72*48},
		tensor.BF16: {625, 84*32*2 + 72*48}, // 624.5
		tensor.Q8_0: {332, 84*34 + 72*48},   // 331.77
	} {
		if got := [2]int{BytesPerToken(mixed, d), BytesPerSequence(mixed, d)}; got != want {
			t.Errorf("%v: %v bytes per token and sequence, want %v", d, got, want)
		}
	}
}

// A ring gives back what it held before, after up to Slack positions were
// added and rewound; beyond that Rewind refuses.
func TestRewindRestoresRings(t *testing.T) {
	pool := newPool(t, mixed, tensor.F32, 4096)
	table := new(Table)
	window := pool.Views(&[]*Table{table})[0][0]
	write := func(from, to int, mark float32) {
		if err := pool.Grow(table, to); err != nil {
			t.Fatal(err)
		}
		for pos := from; pos < to; pos++ {
			window.Float(0, pos)[0] = float32(pos) + mark
		}
	}
	write(0, 500, 0)
	for _, k := range []int{1, 17, Slack} {
		write(500, 500+k, 0.5)
		if err := pool.Rewind(table, 500); err != nil {
			t.Fatal(err)
		}
		for pos := 500 - 20; pos < 500; pos++ { // what the row at 500 reads, but for itself
			if got := window.Float(0, pos)[0]; got != float32(pos) {
				t.Fatalf("after %d drafts: position %d holds %v", k, pos, got)
			}
		}
	}
	gone := (*ErrRewind)(nil)
	if err := pool.Rewind(table, 499); !errors.As(err, &gone) {
		t.Errorf("rewinding %d positions: %v", Slack+1, err)
	}
	write(500, 530, 0) // the drafts reached further than this does
	if err := pool.Rewind(table, 499); !errors.As(err, &gone) {
		t.Errorf("rewinding beyond abandoned drafts: %v", err)
	}
	if err := pool.Rewind(table, 0); err != nil || pool.Free() != 4096/128 {
		t.Errorf("emptied: %v, %d pages free", err, pool.Free())
	}
}

// What is exported is imported with its bits, into another place.
func TestExport(t *testing.T) {
	pool := newPool(t, mixed, tensor.BF16, 2048)
	tables := []*Table{new(Table), new(Table), new(Table)}
	if err := errors.Join(pool.Grow(tables[0], 100), pool.Grow(tables[1], 300)); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	var want [][]byte
	eachPlace(pool, tables[1:2], 290, func(memory []byte, _ byte, _ bool) {
		for i := range memory {
			memory[i] = byte(random.Uint32())
		}
		want = append(want, bytes.Clone(memory))
	})
	var file bytes.Buffer
	if err := pool.Export(tables[1], 290, &file); err != nil {
		t.Fatal(err)
	}
	data := bytes.Clone(file.Bytes())
	if n, err := pool.Import(tables[2], &file); err != nil || n != 290 {
		t.Fatalf("%d positions, %v", n, err)
	}
	eachPlace(pool, tables[2:], 290, func(memory []byte, _ byte, _ bool) {
		if !bytes.Equal(memory, want[0]) {
			t.Fatal("an entry differs")
		}
		want = want[1:]
	})
	pool.Release(tables[2])

	free := pool.Free()
	other := newPool(t, plain, tensor.BF16, 2048)
	for name, err := range map[string]error{
		"cut short":   second(pool.Import(tables[2], bytes.NewReader(data[:len(data)-1]))),
		"no header":   second(pool.Import(tables[2], bytes.NewReader(data[:9]))),
		"other pool":  second(other.Import(tables[2], bytes.NewReader(data))),
		"too far":     pool.Export(tables[1], 400, &file),
		"nothing":     pool.Export(tables[0], 0, &file),
		"beyond ring": pool.Export(tables[1], 200, &file),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if pool.Free() != free || len(tables[2].pages)+len(tables[2].ring) > 0 {
		t.Error("a failed import keeps memory")
	}
}

func second(_ int, err error) error { return err }

func TestNewPoolRefuses(t *testing.T) {
	for _, test := range []struct {
		store Store
		d     tensor.DType
		want  string
	}{
		{Store{Heads: 1, KeyDim: 32, ValueDim: 32}, tensor.Q4_0, "cache dtype Q4_0: expected F32, F16, BF16 or Q8_0"},
		{Store{Kind: "keys and values", Heads: 1, KeyDim: 32, ValueDim: 80}, tensor.Q8_0, "blocks of 32 values, and this model keeps vectors of 80 (keys and values, layer 0): expected f32, f16 or bf16"},
		{Store{Kind: "latent", Heads: 1, KeyDim: 40}, tensor.Q8_0, "blocks of 32 values, and this model keeps vectors of 40 (latent, layer 0)"},
	} {
		if _, err := NewPool([]LayerSpec{{test.store}}, test.d, 1, 0); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v of %v: error %v, want %q", test.d, test.store, err, test.want)
		}
	}
}

func TestPageSize(t *testing.T) {
	for _, test := range []struct {
		layers         []LayerSpec
		asked, want    int
		pages, perPage int // of 1000 tokens; bytes
	}{
		{plain, 0, 32, 32, 32 * 8},
		{plain, 32, 32, 32, 32 * 8},
		{plain, 96, 96, 11, 96 * 8},
		{mixed, 0, 128, 8, 128*1248 + 128}, // the last store has one entry of 128 bytes
		{mixed, 256, 256, 4, 2 * (128*1248 + 128)},
	} {
		pool, err := NewPool(test.layers, tensor.F32, 1000, test.asked)
		if err != nil || pool.PageSize() != test.want || pool.Free() != test.pages || pool.pages.bytes != test.perPage {
			t.Errorf("page size %d: %d pages of %d positions and %d bytes, %v; want %d of %d and %d", test.asked, pool.Free(), pool.PageSize(), pool.pages.bytes, err, test.pages, test.want, test.perPage)
		}
	}
	for size, want := range map[int]string{64: "page size 64: expected a multiple of 128", -128: "page size -128: expected a multiple of 128"} {
		if _, err := NewPool(mixed, tensor.F32, 1000, size); err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// Clear writes zeros where a table writes, and nowhere else.
func TestClear(t *testing.T) {
	pool := newPool(t, plain, tensor.F32, 8*BlockSize)
	var table, other Table
	tables := []*Table{&table, &other}
	view := pool.Views(&tables)[0][0]
	for seq, x := range tables {
		if err := pool.Grow(x, 2*BlockSize); err != nil {
			t.Fatal(err)
		}
		for b := range 2 {
			copy(view.Block(seq, b), bytes.Repeat([]byte{7}, len(view.Block(seq, b))))
		}
	}
	pool.Clear(&table)
	for seq, want := range []byte{0, 7} {
		for b := range 2 {
			block := view.Block(seq, b)
			if !bytes.Equal(block, bytes.Repeat([]byte{want}, len(block))) {
				t.Errorf("block %d of sequence %d is not %d throughout", b, seq, want)
			}
		}
	}
}

func TestClearRings(t *testing.T) {
	pool := newPool(t, ringed, tensor.F32, 8*BlockSize)
	var table, other Table
	tables := []*Table{&table, &other}
	for _, x := range tables {
		if err := pool.Grow(x, BlockSize); err != nil {
			t.Fatal(err)
		}
	}
	views := slices.Concat(pool.Views(&tables)...)
	for i := range views {
		for seq := range tables {
			copy(views[i].Entry(seq, 1), bytes.Repeat([]byte{7}, len(views[i].Entry(seq, 1))))
		}
	}
	pool.Clear(&table)
	for i := range views {
		for seq, want := range []byte{0, 7} {
			if entry := views[i].Entry(seq, 1); !bytes.Equal(entry, bytes.Repeat([]byte{want}, len(entry))) {
				t.Errorf("store %d of sequence %d is not %d throughout", i, seq, want)
			}
		}
	}
}
