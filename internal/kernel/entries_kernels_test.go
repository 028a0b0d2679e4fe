package kernel

import (
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
	"pgregory.net/rapid"
)

// Entries are stored as their type encodes them, by however many workers, and
// nothing beside them is written.
func TestStoreEntries(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		for _, d := range cacheTypes {
			for _, workers := range []int{1, 4} {
				const rows, n = 300, 576
				x := random(1, rows*n)
				m := newEntryMemory(d.RowBytes(n), rows, 2*rows)
				var seqs, slots []int32
				for row := range int32(rows) {
					seqs, slots = append(seqs, row%2), append(slots, (row*7)%rows)
				}
				pool := NewPool(workers)
				pool.StoreEntries(m, d, x, n, seqs, slots)
				pool.Close()
				want := newEntryMemory(d.RowBytes(n), rows, 2*rows)
				for row := range rows {
					if err := tensor.Encode(d, want.Entry(int(seqs[row]), int(slots[row])), x[row*n:][:n]); err != nil {
						t.Fatal(err)
					}
				}
				for seq := range want.seqs {
					if !slices.Equal(m.seqs[seq], want.seqs[seq]) {
						t.Errorf("%v, %d workers: entries of sequence %d differ", d, workers, seq)
					}
				}
			}
		}
	})
}

// Kernels pack entries as the twin does, and write and read nothing else.
func TestEntryKernelsAgainstTwin(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			kind := drawKind(t)
			l, _ := drawShape(t, kind)
			d := kvTypes[kind]
			offset := 2 * rapid.IntRange(0, 40).Draw(t, "offset/2")
			fences, entries := make([]fence[byte], KVBlock), [KVBlock]*byte{}
			size := d.RowBytes(max(l.keyDim, l.valueDim))
			for lane := range entries {
				packed := make([]byte, size)
				if err := tensor.Encode(d, packed, random(rapid.Uint64().Draw(t, "seed"), size/d.BlockBytes()*d.BlockLen())); err != nil {
					t.Fatal(err)
				}
				fences[lane] = fenced(packed)
				entries[lane] = &fences[lane].all[fenceBytes-offset]
			}
			keys, values := fenced(make([]byte, l.keyBytes)), fenced(make([]byte, l.headBytes-l.keyBytes))
			active.entries.keys[kind](keys.slice, &entries, offset, d.RowBytes(l.keyDim))
			active.entries.values[kind](values.slice, &entries, offset, d.RowBytes(l.valueDim))
			wantKeys, wantValues := make([]byte, l.keyBytes), make([]byte, l.headBytes-l.keyBytes)
			entriesGeneric.keys[kind](wantKeys, &entries, offset, d.RowBytes(l.keyDim))
			entriesGeneric.values[kind](wantValues, &entries, offset, d.RowBytes(l.valueDim))
			if !slices.Equal(keys.slice, wantKeys) {
				t.Fatalf("keys of %d: %x, twin %x", l.keyDim, keys.slice, wantKeys)
			}
			if !slices.Equal(values.slice, wantValues) {
				t.Fatalf("values of %d: %x, twin %x", l.valueDim, values.slice, wantValues)
			}
			keys.check(t, "keys")
			values.check(t, "values")
		})
	})
}
