package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/kernel/panel"
	"github.com/foretoken/foretoken/internal/tensor"
	"pgregory.net/rapid"
)

// drawRows returns which of n rows a product multiplies: all, none, some that lie
// one after the other, or any in any order, more than once too.
func drawRows(t *rapid.T, n int) []int32 {
	switch rapid.IntRange(0, 4).Draw(t, "which rows") {
	case 0:
		return nil
	case 1:
		return []int32{}
	case 2:
		from := rapid.IntRange(0, n-1).Draw(t, "from")
		rows := make([]int32, rapid.IntRange(1, n-from).Draw(t, "count"))
		for i := range rows {
			rows[i] = int32(from + i)
		}
		return rows
	}
	return rapid.SliceOfN(rapid.Int32Range(0, int32(n-1)), 1, 2*n).Draw(t, "rows")
}

// A product of some rows has for each the bits that it has alone, whatever other
// products there are, on any number of workers; and it writes nothing else.
func TestMatMulOfSomeRows(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		one := map[bool]*subject{true: newSubject(t, 1, true), false: newSubject(t, 1, false)}
		many := map[int]map[bool]*subject{1: one, 3: {true: newSubject(t, 3, true), false: newSubject(t, 3, false)}}
		rapid.Check(t, func(rt *rapid.T) {
			const guard = 12345
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
			exact := rapid.Bool().Draw(rt, "exact")
			s := many[rapid.SampledFrom([]int{1, 3}).Draw(rt, "workers")][exact]
			unit := rapid.SampledFrom([]int{0, 8}).Draw(rt, "unit")
			n := rapid.IntRange(1, 12).Draw(rt, "of rows")
			blocks, floats := rapid.IntRange(1, 2).Draw(rt, "blocks"), rapid.Bool().Draw(rt, "floats")
			in := 256 * blocks
			if floats { // and segments that do not end with blocks
				in = rapid.IntRange(1, 200).Draw(rt, "in")
			}
			x := activations(n*in, r)

			products := make([]Product, rapid.IntRange(1, 40).Draw(rt, "products")) // some share a task, some a part of one
			for i := range products {
				d := rapid.SampledFrom(storage[:panel.F32]).Draw(rt, "dtype")
				if floats {
					d = rapid.SampledFrom(storage[panel.F32:]).Draw(rt, "dtype")
				}
				p := &products[i]
				p.W = s.pack(weights(d, rapid.IntRange(1, 2*panel.Rows+3).Draw(rt, "out"), in, r), unit)
				if rapid.Bool().Draw(rt, "bias") {
					p.Bias = random(3, p.W.Rows)
				}
				if p.Rows = drawRows(rt, n); i > 0 && rapid.Bool().Draw(rt, "same rows") {
					p.Rows = products[i-1].Rows
				}
				p.Y = make([]float32, count(p.Rows, n)*p.W.Rows+1)
				for i := range p.Y {
					p.Y[i] = guard
				}
			}
			s.Pool.MatMul(x, n, products...)
			for i, p := range products {
				out := p.W.Rows
				for row := range count(p.Rows, n) {
					from := row
					if p.Rows != nil {
						from = int(p.Rows[row])
					}
					want := one[exact].matmul(x[from*in:(from+1)*in], 1, p.W, p.Bias)
					same(rt, fmt.Sprintf("product %d, row %d", i, row), p.Y[row*out:(row+1)*out], want)
				}
				if last := p.Y[len(p.Y)-1]; last != guard {
					rt.Fatalf("product %d wrote %v behind its last row", i, last)
				}
			}
		})
	})
}

func count(rows []int32, all int) int {
	if rows == nil {
		return all
	}
	return len(rows)
}

// Scattered rows beyond what a worker brings together at once, for two products
// that share them, are those of the whole product.
func TestMatMulOfManyScatteredRows(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		for _, exact := range []bool{true, false} {
			for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.Q8_0} {
				const in, rows = 1024, 200
				s := newSubject(t, 2, exact)
				r := rand.New(rand.NewPCG(1, 2))
				gate, up := s.pack(weights(d, 9*panel.Rows+5, in, r), 0), s.pack(weights(d, 7*panel.Rows, in, r), 0)
				x, order := random(2, rows*in), make([]int32, 2*rows)
				for i := range order {
					order[i] = int32(r.IntN(rows))
				}
				if block := cachedRows / (2 * in); block >= len(order) {
					t.Fatalf("blocks of %d rows: nothing is cut", block)
				}
				y := [2][]float32{make([]float32, len(order)*gate.Rows), make([]float32, len(order)*up.Rows)}
				s.Pool.MatMul(x, rows, Product{Y: y[0], W: gate, Rows: order}, Product{Y: y[1], W: up, Rows: order})
				for i, w := range []*Weight{gate, up} {
					whole := s.matmul(x, rows, w, nil)
					for t0, row := range order {
						for o := range w.Rows {
							got, want := y[i][t0*w.Rows+o], whole[int(row)*w.Rows+o]
							if math.Float32bits(got) != math.Float32bits(want) {
								t.Fatalf("%v, product %d, row %d: output %d is %v, want %v", d, i, row, o, got, want)
							}
						}
					}
				}
			}
		}
	})
}

// Every panel is part of one task; no task has much more than its share of the
// work; and a product is not cut into small parts.
func TestMatMulTasks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		workers := rapid.IntRange(1, 64).Draw(rt, "workers")
		j := matmulJob{pool: &Pool{scratch: make([][]float32, workers)}}
		panels, work, most := 0, 0, 0
		for range rapid.IntRange(1, 300).Draw(rt, "products") {
			w := &Weight{Rows: 32 * rapid.IntRange(1, 70).Draw(rt, "panels"), panelBytes: 64 * rapid.IntRange(1, 3000).Draw(rt, "lines")}
			r := productRun{Product: Product{W: w}, rows: rapid.IntRange(1, 500).Draw(rt, "rows"), stride: 2 * w.panelBytes / 68, first: panels}
			panels += w.panels()
			work += w.panels() * r.work()
			most = max(most, r.work())
			j.products = append(j.products, r)
		}
		j.cut(work)
		share := work / (tasksPerWorker * workers)
		from := 0
		for task, to := range j.tasks {
			if to <= from {
				rt.Fatalf("task %d is [%d, %d)", task, from, to)
			}
			sum := 0
			for _, r := range j.products {
				first, last := max(from, r.first), min(to, r.first+r.W.panels())
				if first >= last {
					continue
				}
				part := (last - first) * r.work()
				sum += part
				if last-first < r.W.panels() && part < share/2-r.work() {
					rt.Errorf("task %d takes %d of the %d panels of a product, %d of a share of %d", task, last-first, r.W.panels(), part, share)
				}
			}
			if sum > share+share/2+most {
				rt.Errorf("task %d has a work of %d, its share is %d", task, sum, share)
			}
			from = to
		}
		if from != panels {
			rt.Errorf("tasks end with panel %d of %d", from, panels)
		}
	})
}

// The experts of a layer cost no memory once there was a call as large.
func TestMatMulOfExpertsDoesNotAllocate(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		const in, rows = 64, 50
		s := newSubject(t, 2, false)
		r := rand.New(rand.NewPCG(1, 2))
		x := random(1, rows*in)
		var products []Product
		for range 128 {
			chosen := make([]int32, r.IntN(9))
			for i := range chosen {
				chosen[i] = int32(r.IntN(rows))
			}
			for _, d := range []tensor.DType{tensor.Q8_0, tensor.F16} {
				products = append(products, Product{Y: make([]float32, len(chosen)*40), W: s.pack(weights(d, 40, in, r), 0), Rows: chosen})
			}
		}
		if n := testing.AllocsPerRun(20, func() { s.Pool.MatMul(x, rows, products...) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

func TestMatMulRefusesRowsThatAreNotThere(t *testing.T) {
	s := newSubject(t, 1, true)
	w := s.pack(matrix(t, tensor.F32, 4, 32, random(1, 4*32)), 0)
	for _, rows := range [][]int32{{-1}, {0, 3}, {1, 2, 3}} {
		func() {
			defer func() {
				if v := fmt.Sprint(recover()); !strings.Contains(v, "of 3") {
					t.Errorf("rows %v: %s", rows, v)
				}
			}()
			s.Pool.MatMul(random(1, 3*32), 3, Product{Y: make([]float32, 12), W: w, Rows: rows})
		}()
	}
}
