package kernel

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
)

// A slot that was copied has the bytes that storing the same keys and values
// there leaves, and nothing beside it changes.
func TestCopySlot(t *testing.T) {
	eachAttention(t, func(t *testing.T) {
		for _, d := range cacheTypes {
			for _, dims := range [][2]int{{64, 96}, {32, 32}, {7, 50}, {16, 33}, {80, 16}} {
				if d == tensor.Q8_0 && (dims[0]%32 > 0 || dims[1]%32 > 0) {
					continue
				}
				t.Run(fmt.Sprintf("%v %v", d, dims), func(t *testing.T) {
					checkCopySlot(t, Attention{Heads: 3, KVHeads: 3, KeyDim: dims[0], ValueDim: dims[1], DType: d, Window: 1})
				})
			}
		}
	})
}

func checkCopySlot(t *testing.T, a Attention) {
	const slots, seq = 100, 1
	pool := NewPool(1)
	defer pool.Close()
	// stored returns what is kept of rows whose tokens have the given seeds.
	stored := func(seeds []int) *kvMemory {
		kv := newKV(&a)
		kv.reserve(seq+1, slots)
		b := batch{Attention: a}
		b.KV = kv
		var ignored []float32
		for slot, seed := range seeds {
			tok := token{random(uint64(3*seed), a.Heads*a.KeyDim), random(uint64(3*seed+1), a.KVHeads*a.KeyDim), random(uint64(3*seed+2), a.KVHeads*a.ValueDim)}
			b.add(tok, seq, slot, slot, nil, &ignored)
		}
		b.attend(pool)
		return kv
	}
	seeds := upTo(slots)
	got := stored(seeds)
	for _, move := range [][2]int{{3, 4}, {8, 31}, {31, 32}, {30, 95}, {64, 65}, {33, 96}, {34, 8}} {
		to, from := move[0], move[1]
		CopySlot(got, seq, a.DType, a.KVHeads, a.KeyDim, a.ValueDim, to, from)
		seeds[to] = seeds[from]
	}
	want := stored(seeds)
	for s := range seq + 1 {
		for b := range want.blocks[s] {
			if !bytes.Equal(got.blocks[s][b], want.blocks[s][b]) {
				t.Errorf("sequence %d, block %d: not what storing keys and values %v leaves", s, b, seeds[b*KVBlock:min((b+1)*KVBlock, slots)])
			}
		}
	}
}
