package kernel

import (
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
	"pgregory.net/rapid"
)

// cacheTypes are those of caches, kvTypes those of the kinds.
var (
	cacheTypes = []tensor.DType{tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0}
	kvTypes    = [kvKinds]tensor.DType{tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0, tensor.BF16}
)

// drawKind draws a kind that the active tier has kernels for.
func drawKind(t *rapid.T) kvKind {
	kinds := []kvKind{kvF32, kvF16, kvBF16, kvQ8}
	if active.cpu.BF16 {
		kinds = append(kinds, kvPairs)
	}
	return rapid.SampledFrom(kinds).Draw(t, "kind")
}

// layoutAs is the layout of a kind, whatever the tier would choose.
func layoutAs(kind kvKind, keyDim, valueDim int) kvLayout {
	l := layoutOf(kvTypes[kind], keyDim, valueDim)
	l.kind, l.query = kind, keyDim
	if kind == kvPairs {
		l.query /= 2
	}
	return l
}

// asQueries is query vectors as the kernels of a kind take them.
func asQueries(kind kvKind, q []float32) []float32 {
	if kind != kvPairs {
		return q
	}
	pairs := make([]float32, len(q)/2)
	attentionGeneric.pack[kvPairs](bytesOf(pairs), q)
	return pairs
}

// panels returns the keys and values of a block of one head, filled with rows.
func panels(l *kvLayout, d tensor.DType, keys, vals []float32) (k, v []byte) {
	k, v = l.head(make([]byte, l.headBytes), 0)
	for lane := range KVBlock {
		packed := make([]byte, d.RowBytes(l.keyDim))
		attentionGeneric.pack[l.kind](packed, keys[lane*l.keyDim:][:l.keyDim])
		l.putKey(k, lane, packed)
		packed = make([]byte, d.RowBytes(l.valueDim))
		attentionGeneric.pack[l.kind](packed, vals[lane*l.valueDim:][:l.valueDim])
		l.putValue(v, lane, packed)
	}
	return k, v
}

// What is put into the panels of a block is found there by the twins, as the
// type stores it.
func TestPanelsHoldWhatIsPut(t *testing.T) {
	for kind, d := range kvTypes {
		for _, dims := range [][2]int{{64, 96}, {7, 50}, {16, 33}} {
			switch kvKind(kind) {
			case kvQ8:
				dims = [2]int{64, 96}
			case kvPairs:
				dims[0] = dims[0] / 2 * 2
			}
			l := layoutAs(kvKind(kind), dims[0], dims[1])
			keys, vals := random(1, KVBlock*l.keyDim), random(2, KVBlock*l.valueDim)
			k, v := panels(&l, d, keys, vals)
			roundTrip(d, keys)
			roundTrip(d, vals)
			for lane := range KVBlock {
				for dim := range l.keyDim {
					q, s := make([]float32, l.keyDim), make([]float32, KVBlock)
					q[dim] = 1
					attentionGeneric.scores[kind](s, asQueries(l.kind, q), k, l.keyDim, nil)
					if want := keys[lane*l.keyDim+dim]; s[lane] != want {
						t.Fatalf("%v: key %d of %d: dimension %d is %v, want %v", d, lane, l.keyDim, dim, s[lane], want)
					}
				}
				w, out := make([]float32, KVBlock), make([]float32, l.valueDim)
				w[lane] = 1
				attentionGeneric.values[kind](out, w, nil, v, l.valueDim, lane, lane+1, nil)
				if want := vals[lane*l.valueDim:][:l.valueDim]; !slices.Equal(out, want) {
					t.Fatalf("%v: value %d of %d: %v, want %v", d, lane, l.valueDim, out, want)
				}
			}
		}
	}
}

// roundTrip replaces values by what a cache of type d makes of them.
func roundTrip(d tensor.DType, values []float32) {
	b := make([]byte, d.RowBytes(len(values)))
	if err := tensor.Encode(d, b, values); err != nil {
		panic(err)
	}
	tensor.Decode(d, values, b)
}

// drawShape draws the widths of a head and a number of query vectors.
func drawShape(t *rapid.T, kind kvKind) (l kvLayout, m int) {
	keyDim, valueDim := rapid.IntRange(1, 150).Draw(t, "keyDim"), valueUnit*rapid.IntRange(1, 9).Draw(t, "valueDim/16")
	switch kind {
	case kvQ8:
		keyDim, valueDim = (keyDim+31)/32*32, (valueDim+31)/32*32
	case kvPairs:
		keyDim = (keyDim + 1) / 2 * 2
	}
	return layoutAs(kind, keyDim, valueDim), rapid.IntRange(0, 20).Draw(t, "m")
}
