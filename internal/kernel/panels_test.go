package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/foretoken/foretoken/internal/kernel/panel"
	"github.com/foretoken/foretoken/internal/tensor"
	"pgregory.net/rapid"
)

// storage is a file's type for each kind of panel.
var storage = [panel.NumKinds]tensor.DType{
	panel.Q8: tensor.Q8_0, panel.Q4: tensor.Q4_0, panel.Q4M: tensor.Q4_1, panel.Q5: tensor.Q5_0, panel.Q5M: tensor.Q5_1,
	panel.Q2K: tensor.Q2_K, panel.Q3K: tensor.Q3_K, panel.Q4K: tensor.Q4_K, panel.Q5K: tensor.Q5_K, panel.Q6K: tensor.Q6_K,
	panel.IQ4NL: tensor.IQ4_NL, panel.IQ4XS: tensor.IQ4_XS, panel.MX4: tensor.MXFP4,
	panel.F32: tensor.F32, panel.F16: tensor.F16, panel.BF16: tensor.BF16, panel.F8: tensor.F8E4M3,
}

// weights returns a matrix of random bits whose values are mostly moderate:
// the halves that scale blocks lie between 2^-9 and 2^-5.
func weights(d tensor.DType, rows, cols int, r *rand.Rand) *tensor.Matrix {
	data := make([]byte, rows*d.RowBytes(cols))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	halves := map[tensor.DType][]int{
		tensor.Q8_0: {0}, tensor.Q4_0: {0}, tensor.Q4_1: {0, 2}, tensor.Q5_0: {0}, tensor.Q5_1: {0, 2},
		tensor.Q2_K: {80, 82}, tensor.Q3_K: {108}, tensor.Q4_K: {0, 2}, tensor.Q5_K: {0, 2}, tensor.Q6_K: {208},
		tensor.IQ4_NL: {0}, tensor.IQ4_XS: {0},
	}[d]
	size := d.BlockBytes()
	for b := 0; b < len(data); b += size {
		for _, h := range halves {
			data[b+h+1] = data[b+h+1]&0x8f | 0x10 | data[b+h+1]&0x20>>1
		}
		switch d {
		case tensor.MXFP4:
			data[b] = 118 + data[b]%8
		case tensor.F32:
			data[b+3] = data[b+3]&0x80 | 0x3e
		case tensor.BF16:
			data[b+1] = data[b+1]&0x80 | 0x3e
		case tensor.F16:
			data[b+1] = data[b+1]&0x80 | 0x38 | data[b+1]&3
		case tensor.F8E4M3:
			data[b] &^= 0x40
		}
	}
	m, err := tensor.NewMatrix("w", d, rows, cols, data)
	if err != nil {
		panic(err)
	}
	return m
}

// activations returns n values of which a few are zero, large or tiny.
func activations(n int, r *rand.Rand) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
		switch r.IntN(40) {
		case 0:
			x[i] = 0
		case 1:
			x[i] *= 100
		case 2:
			x[i] *= 1e-20
		case 3:
			x[i] *= 1e-40
		}
	}
	return x
}

// run calls a kernel on rows of activations of width bytes for each block, and
// checks that it writes its T rows of 32 outputs and nothing else.
func run[T any](t *rapid.T, f dotFunc, k *panel.Kind, data []byte, x []T, rows, groups int, start float32) []float32 {
	const guard = 12345
	stride := panel.Rows + 7
	out := make([]float32, rows*stride+16)
	for i := range out {
		out[i] = guard
		if i%stride < panel.Rows && i/stride < rows {
			out[i] = start
		}
	}
	f(&data[0], (*byte)(unsafe.Pointer(&x[0])), (*byte)(unsafe.Pointer(&out[0])), &data[0], uint64(groups),
		uint64(len(x)/rows*int(unsafe.Sizeof(x[0]))), uint64(4*stride), uint64(k.GroupBytes()))
	y := make([]float32, 0, rows*panel.Rows)
	for i, v := range out {
		if i%stride < panel.Rows && i/stride < rows {
			y = append(y, v)
		} else if v != guard {
			t.Fatalf("%s: wrote %v at %d, outside its rows", k.Name, v, i)
		}
	}
	return y
}

// compareSums checks got against a sum of terms of the given size. NaN and
// infinities have to agree in being not finite.
func compareSums(t *rapid.T, what string, got, want, size []float32, tolerance float64) {
	for i := range want {
		g, w := float64(got[i]), float64(want[i])
		if math.IsNaN(w) || math.IsInf(w, 0) {
			if !math.IsNaN(g) && !math.IsInf(g, 0) {
				t.Fatalf("%s: output %d is %v, the reference has %v", what, i, g, w)
			}
			continue
		}
		if !(math.Abs(g-w) <= tolerance*float64(size[i])) {
			t.Fatalf("%s: output %d is %v, the reference has %v (tolerance %v)", what, i, g, w, tolerance*float64(size[i]))
		}
	}
}

// absolute returns what the terms of outputs add up to without their signs.
func absolute(k *panel.Kind, data []byte, x []float32, rows, blocks int) []float32 {
	w := make([]float32, blocks*panel.Block*panel.Rows)
	k.Unpack(w, data, blocks)
	size := make([]float32, rows*panel.Rows)
	for t := range rows {
		for col := range blocks * panel.Block {
			v := x[t*blocks*panel.Block+col]
			for r := range panel.Rows {
				size[t*panel.Rows+r] += float32(math.Abs(float64(w[col*panel.Rows+r] * v)))
			}
		}
	}
	return size
}

// Every kernel with integer activations agrees with its plain-Go twin: integer
// sums exactly, so that what is left is the rounding of the float sums; and a
// row has the same bits in a tile of any height.
func TestInt8KernelsAgainstTwins(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		for id, kernels := range active.panels.int8 {
			k := &panel.Kinds[id]
			t.Run(k.Name, func(t *testing.T) {
				rapid.Check(t, func(rt *rapid.T) {
					r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
					groups := rapid.IntRange(1, 3).Draw(rt, "groups")
					blocks := groups * k.Group()
					m := weights(storage[id], panel.Rows, blocks*panel.Block, r)
					data := make([]byte, k.Bytes(blocks))
					k.Pack(data, m, 0, []panel.Segment{{From: 0, To: m.Cols}})
					T := len(kernels)
					x := activations(T*m.Cols, r)
					if rapid.Bool().Draw(rt, "special") {
						x[r.IntN(len(x))] = float32(math.Inf(1))
						x[r.IntN(len(x))] = float32(math.NaN())
					}
					q := make([]QBlock, T*blocks)
					active.rows.quantize(q, x)
					back := make([]float32, len(x))
					for i := range back {
						back[i] = float32(q[i/32].Q[i%32]) * q[i/32].Scale
					}
					want := run(rt, dotInt8Generic(k, T), k, data, q, T, groups, 9)
					size := absolute(k, data, back, T, blocks)
					got := run(rt, kernels[T-1], k, data, q, T, groups, 9)
					compareSums(rt, k.Name, got, want, size, 2e-6)
					for T := 1; T < len(kernels); T++ {
						same(rt, fmt.Sprintf("%s: %d rows", k.Name, T), run(rt, kernels[T-1], k, data, q[:T*blocks], T, groups, 9), got[:T*panel.Rows])
					}
				})
			})
		}
	})
}

// same checks that bits are equal; any NaN equals any other.
func same(t *rapid.T, what string, got, want []float32) {
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && !(got[i] != got[i] && want[i] != want[i]) {
			t.Fatalf("%s: output %d is %v, expected the bits of %v", what, i, got[i], want[i])
		}
	}
}

func TestFloatKernelsAgainstTwins(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
			blocks := rapid.IntRange(1, 5).Draw(rt, "blocks")
			special := rapid.Bool().Draw(rt, "special")
			pack := func(id panel.ID) (*panel.Kind, []byte) {
				k := &panel.Kinds[id]
				m := weights(storage[id], panel.Rows, blocks*panel.Block, r)
				data := make([]byte, k.Bytes(blocks))
				k.Pack(data, m, 0, []panel.Segment{{From: 0, To: m.Cols}})
				return k, data
			}
			kernels := active.panels.float[panel.F32]
			T := len(kernels)
			x := activations(T*blocks*panel.Block, r)
			if special {
				x[r.IntN(len(x))] = float32(math.Inf(1))
			}
			for id, kernels := range active.panels.float {
				if kernels == nil {
					continue
				}
				k, data := pack(panel.ID(id))
				plain := make([]float32, blocks*panel.Block*panel.Rows)
				k.Unpack(plain, data, blocks)
				size := absolute(k, data, x, T, blocks)
				for i := range size {
					size[i]++ // what out holds at first
				}
				got := run(rt, kernels[T-1], k, data, x, T, blocks, 1)
				for row := range T {
					part := x[row*blocks*panel.Block:][:blocks*panel.Block]
					want := run(rt, dotF32Generic(1), k, unsafe.Slice((*byte)(unsafe.Pointer(&plain[0])), 4*len(plain)), part, 1, blocks, 1)
					compareSums(rt, k.Name, got[row*panel.Rows:][:panel.Rows], want, size[row*panel.Rows:], 1e-6)
				}
				for T := 1; T < len(kernels); T++ {
					same(rt, fmt.Sprintf("%s: %d rows", k.Name, T), run(rt, kernels[T-1], k, data, x[:T*blocks*panel.Block], T, blocks, 1), got[:T*panel.Rows])
				}
			}

			if kernels = active.panels.bf16; kernels == nil {
				return
			}
			T = len(kernels)
			h := make([]uint16, T*blocks*panel.Block)
			for i := range h {
				h[i] = tensor.F32ToBF16(x[i%len(x)])
				x[i%len(x)] = tensor.BF16ToF32(h[i])
			}
			k, data := pack(panel.BF16)
			got := run(rt, kernels[T-1], k, data, h, T, blocks, 9)
			want := run(rt, dotBF16Generic(T), k, data, h, T, blocks, 9)
			compareSums(rt, "BF16", got, want, absolute(k, data, x[:len(h)], T, blocks), 4e-6)
			for T := 1; T < len(kernels); T++ {
				same(rt, fmt.Sprintf("BF16: %d rows", T), run(rt, kernels[T-1], k, data, h[:T*blocks*panel.Block], T, blocks, 9), got[:T*panel.Rows])
			}
		})
	})
}

// Unpacked values are those of the file's decoder, exactly, special codes and
// scales included.
func TestUnpackKernelsAgainstTwins(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		for id, unpack := range active.panels.unpack {
			if unpack == nil {
				continue
			}
			k := &panel.Kinds[id]
			rapid.Check(t, func(rt *rapid.T) {
				r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
				groups := rapid.IntRange(1, 3).Draw(rt, "groups")
				data := make([]byte, groups*k.GroupBytes())
				for i := range data {
					data[i] = byte(r.Uint32())
				}
				n := groups * k.Group() * panel.Block * panel.Rows
				want, got := make([]float32, n), make([]float32, n+1)
				got[n] = 7
				k.Unpack(want, data, groups*k.Group())
				unpack(&got[0], &data[0], uint64(groups))
				if got[n] != 7 {
					rt.Fatalf("%s: wrote past its end", k.Name)
				}
				for i, w := range want {
					if g := got[i]; g != w && !(g != g && w != w) {
						rt.Fatalf("%s: value %d is %v, expected %v", k.Name, i, g, w)
					}
				}
			})
		}
	})
}

func TestTreeAgainstTwin(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		for rows := 1; rows <= 9; rows++ {
			parts := random(uint64(rows), maxSegments*rows*panel.Rows)
			parts[3] = float32(math.Copysign(0, -1))
			got, want := make([]float32, rows*40+1), make([]float32, rows*40+1)
			active.panels.tree(&got[0], &parts[0], uint64(rows), 160, uint64(4*rows*panel.Rows))
			treeGeneric(&want[0], &parts[0], uint64(rows), 160, uint64(4*rows*panel.Rows))
			for i := range want {
				if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
					t.Fatalf("%d rows: value %d is %v, expected %v", rows, i, got[i], want[i])
				}
			}
		}
	})
}

// The products of Qwen3-0.6B's layers, one worker.
func BenchmarkPanels(b *testing.B) {
	for _, id := range []panel.ID{panel.Q8, panel.Q4, panel.Q4K, panel.Q6K, panel.BF16, panel.F16} {
		k := &panel.Kinds[id]
		const rows, cols = 12288, 1024
		pool := NewPool(1)
		w, err := (&Packer{Pool: pool, Arena: new(Arena)}).Pack(weights(storage[id], rows, cols, rand.New(rand.NewPCG(1, 1))), 0)
		if err != nil {
			b.Fatal(err)
		}
		for _, n := range []int{1, 2, 4, 5, 8, 16, 128} {
			b.Run(fmt.Sprintf("%s/rows=%d", k.Name, n), func(b *testing.B) {
				x, y := random(2, n*cols), make([]float32, n*rows)
				for b.Loop() {
					pool.MatMul(x, n, Product{Y: y, W: w})
				}
				s := b.Elapsed().Seconds() / float64(b.N)
				b.ReportMetric(float64(w.Bytes())/s/1e9, "GB/s")
				b.ReportMetric(2*float64(rows*cols*n)/s/1e9, "GOPS")
			})
		}
	}
}
