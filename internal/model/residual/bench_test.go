package residual

import (
	"fmt"
	"testing"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// BenchmarkHyper is what the streams cost a sublayer of DeepSeek V4 Flash. The
// connections are as many as fill the caches, for in a model every one comes
// from memory.
func BenchmarkHyper(b *testing.B) {
	const hidden, connections = 4096, 48 // 2 MiB each
	for _, workers := range []int{1, 2} {
		pool, arena := kernel.NewPool(workers), new(kernel.Arena)
		b.Cleanup(func() {
			pool.Close()
			arena.Free()
		})
		e := newExample(1, 512, hidden, false)
		w := e.loader(b, nn.Packing{Packer: &kernel.Packer{Pool: pool, Arena: arena}})
		hypers := make([]*Hyper, connections)
		for i := range hypers {
			hypers[i] = Load(w.Sub("connection."), e.Config)
		}
		if w.Err() != nil {
			b.Fatal(w.Err())
		}
		for _, rows := range []int{1, 8, 512} {
			b.Run(fmt.Sprintf("workers=%d/rows=%d", workers, rows), func(b *testing.B) {
				st := &nn.State{Pool: pool}
				x, y := e.x[:rows*Streams*hidden], e.y[:rows*hidden]
				for i := 0; b.Loop(); i++ {
					h := hypers[i%connections]
					_, mix := h.Pre(st, x)
					h.Post(st, x, y, mix)
					st.Release(0)
				}
			})
		}
	}
}
