package kernel

import (
	"fmt"
	"testing"
)

// Every vector arrives where it belongs, and nothing beside it is touched.
func TestMove(t *testing.T) {
	const rows, columns = 5, 3
	for _, n := range []int{1, 7, 40_000} {
		for _, workers := range []int{1, 3} {
			t.Run(fmt.Sprintf("%d values, %d workers", n, workers), func(t *testing.T) {
				p := NewPool(workers)
				defer p.Close()
				wide := n + 2 // of which the vectors are the end
				from := make([]float32, rows*columns*wide)
				for i := range from {
					from[i] = float32(i)
				}
				to := make([]float32, columns*rows*(n+1))
				for i := range to {
					to[i] = -1
				}
				p.Move(Vectors{to, n + 1, rows * (n + 1)}, Vectors{from[2:], columns * wide, wide}, rows, columns, n)
				for column := range columns {
					for row := range rows {
						got := to[(column*rows+row)*(n+1):][:n+1]
						for i := range n {
							if want := from[(row*columns+column)*wide+2+i]; got[i] != want {
								t.Fatalf("row %d, column %d, value %d is %v, want %v", row, column, i, got[i], want)
							}
						}
						if got[n] != -1 {
							t.Errorf("row %d, column %d: the value behind the vector is %v", row, column, got[n])
						}
					}
				}
			})
		}
	}
}
