package residual

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/tensor"
)

// Against float64: rows in several tasks, segments without columns, any size of
// streams and gates.
func TestHyperAgainstReference(t *testing.T) {
	var examples []*example
	for _, size := range [][2]int{{3, 64}, {1, 8}, {2, 40}, {70, 264}} {
		for _, extreme := range []bool{false, true} {
			e := newExample(uint64(len(examples)), size[0], size[1], extreme)
			want := e.reference("")
			e.input, e.post, e.comb, e.out, e.heads = want.input, want.post, want.comb, want.out, want.heads
			if err := differs(e.run(t), e, e.rows()); err != nil {
				t.Errorf("%d rows of %d, extreme %v: %v", e.rows(), e.Hidden, extreme, err)
			}
			examples = append(examples, e)
		}
	}
	if list := unnoticed(examples); len(list) > 0 {
		t.Errorf("these mistakes would not be noticed: %q", list)
	}
}

// A row's bits are the same alone and among others, on any number of workers.
func TestHyperRowsAreIndependent(t *testing.T) {
	const rows, hidden = 67, 192
	e := newExample(1, rows, hidden, false)
	run := func(workers, from, to int) [][]float32 {
		h, head, st := e.open(t, workers, tensor.Invalid)
		x := slices.Clone(e.x[from*Streams*hidden : to*Streams*hidden])
		heads := head.Collapse(st, x)
		y, mix := h.Pre(st, x)
		h.Post(st, x, e.y[from*hidden:to*hidden], mix)
		return [][]float32{y, mix.Post, mix.Comb, x, heads}
	}
	all := run(3, 0, rows)
	for _, row := range []int{0, 31, 32, 66} {
		for i, alone := range run(1, row, row+1) {
			n := len(alone)
			for k, v := range all[i][row*n:][:n] {
				if math.Float32bits(v) != math.Float32bits(alone[k]) {
					t.Fatalf("result %d of row %d, value %d: %v, alone %v", i, row, k, v, alone[k])
				}
			}
		}
	}
}

// No option rounds what steers all layers.
func TestProjectionStaysExact(t *testing.T) {
	e := newExample(2, 3, 64, false)
	want := e.reference("")
	h, _, st := e.open(t, 1, tensor.Q4_0)
	_, mix := h.Pre(st, e.x)
	for row := range e.rows() {
		if err := near(mix.Comb[row*16:][:16], want.comb[row*16:][:16]); err != nil {
			t.Errorf("row %d: %v", row, err)
		}
	}
}

func TestHyperAllocatesNothing(t *testing.T) {
	for _, rows := range []int{1, 70} {
		e := newExample(3, rows, 256, false)
		h, head, st := e.open(t, 2, tensor.Invalid)
		step := func() {
			mark := st.Mark()
			y, mix := h.Pre(st, e.x)
			h.Post(st, e.x, y, mix)
			head.Collapse(st, e.x)
			st.Release(mark)
		}
		for range 3 { // the workspace grows
			step()
		}
		if n := testing.AllocsPerRun(20, step); n != 0 {
			t.Errorf("%d rows: %v allocations, want none", rows, n)
		}
	}
}

// The results of Pre outlive what it releases.
func TestMixSurvivesTheSublayer(t *testing.T) {
	e := newExample(4, 5, 64, false)
	h, _, st := e.open(t, 1, tensor.Invalid)
	st.Take(1 << 16) // room for all
	st.Release(0)
	y, mix := h.Pre(st, e.x)
	want := [][]float32{slices.Clone(y), slices.Clone(mix.Post), slices.Clone(mix.Comb)}
	scratch := st.Take(1 << 12)
	for i := range scratch {
		scratch[i] = -1
	}
	for i, got := range [][]float32{y, mix.Post, mix.Comb} {
		if !slices.Equal(got, want[i]) {
			t.Errorf("result %d was overwritten", i)
		}
	}
}

func TestLoadNamesWhatIsWrong(t *testing.T) {
	for _, test := range []struct {
		change func(e *example)
		want   string
	}{
		{func(e *example) { e.fn = e.fn[:20*Streams*e.Hidden] }, `tensor "connection.fn": shape [20, 256], expected [24, 256]`},
		{func(e *example) { e.base = e.base[:4] }, `tensor "connection.base": 4 values, expected 24`},
		{func(e *example) { e.scale = e.scale[:1] }, `tensor "connection.scale": 1 values, expected 3`},
		{func(e *example) { e.headFn = append(e.headFn, e.headFn...) }, `tensor "collapse.hc_fn": shape [8, 256], expected [4, 256]`},
		{func(e *example) { e.headScale = e.scale }, `tensor "collapse.hc_scale": 3 values, expected 1`},
	} {
		e := newExample(5, 1, 64, false)
		test.change(e)
		w := e.loader(t, nn.Packing{}) // checked, not packed
		Load(w.Sub("connection."), e.Config)
		LoadHead(w.Sub("collapse."), e.Config)
		if w.Err() == nil || !strings.HasSuffix(w.Err().Error(), test.want) {
			t.Errorf("error %v, want …%s", w.Err(), test.want)
		}
	}
}

func TestValidate(t *testing.T) {
	valid := Config{Hidden: 4096, Streams: 4, Iterations: 20, Eps: 1e-6, NormEps: 1e-6}
	if err := valid.Validate(); err != nil {
		t.Error(err)
	}
	nan := float32(math.NaN())
	for want, change := range map[string]func(c *Config){
		"hyper-connections have 2 streams, expected 4":                         func(c *Config) { c.Streams = 2 },
		"hidden size with hyper-connections is 4100, expected a multiple of 8": func(c *Config) { c.Hidden = 4100 },
		"hidden size with hyper-connections is 0, expected a multiple of 8":    func(c *Config) { c.Hidden = 0 },
		"hyper-connections have 0 Sinkhorn iterations, expected 1 to 1000":     func(c *Config) { c.Iterations = 0 },
		"hyper-connections have 1001 Sinkhorn iterations, expected 1 to 1000":  func(c *Config) { c.Iterations = 1001 },
		"hyper-connection epsilon is 0, expected a number between 0 and 1":     func(c *Config) { c.Eps = 0 },
		"hyper-connection epsilon is NaN, expected a number between 0 and 1":   func(c *Config) { c.Eps = nan },
		"norm epsilon is 2, expected a number between 0 and 1":                 func(c *Config) { c.NormEps = 2 },
	} {
		c := valid
		change(&c)
		if err := c.Validate(); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
