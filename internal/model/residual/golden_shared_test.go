//go:build shared

package residual

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/fixtures"
	"github.com/foretoken/foretoken/internal/kernel"
)

// golden reads arrays of float32.
type golden struct {
	t   *testing.T
	dir string
}

func (g golden) floats(name string) []float32 {
	g.t.Helper()
	data, err := os.ReadFile(fixtures.Golden(g.t, "mhc", g.dir, name+".f32"))
	if err != nil {
		g.t.Fatal(err)
	}
	v := make([]float32, len(data)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return v
}

func (g golden) config() Config {
	var meta struct {
		Streams    int
		Hidden     int
		Iterations int     `json:"sinkhorn_iterations"`
		Eps        float32 `json:"hc_eps"`
		NormEps    float32 `json:"norm_eps"`
	}
	fixtures.ReadJSON(g.t, fixtures.Golden(g.t, "mhc", g.dir, "meta.json"), &meta)
	return Config{Hidden: meta.Hidden, Streams: meta.Streams, Iterations: meta.Iterations, Eps: meta.Eps, NormEps: meta.NormEps}
}

func TestHyperGolden(t *testing.T) {
	var examples []*example
	for _, name := range []string{"normal", "extreme"} {
		g := golden{t, name}
		e := &example{
			Config: g.config(), x: g.floats("x"), y: g.floats("y"),
			fn: g.floats("fn"), base: g.floats("base"), scale: g.floats("scale"),
			headFn: g.floats("head_fn"), headBase: g.floats("head_base"), headScale: g.floats("head_scale"),
			input: g.floats("sublayer_input"), post: g.floats("post"), comb: g.floats("comb"),
			out: g.floats("streams_out"), heads: g.floats("head_out"),
		}
		if err := e.Validate(); err != nil {
			t.Fatal(err)
		}
		if err := differs(e.run(t), e, e.rows()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := differs(e.reference(""), e, e.rows()); err != nil {
			t.Errorf("%s: the tests' reference: %v", name, err)
		}
		examples = append(examples, e)
	}
	// With four shut gates pre is eps alone, and where rows agree on a column
	// eps decides the others: TestHyperAgainstReference has such rows.
	want := []string{"pre lacks eps", "no eps in sums"}
	if diff := cmp.Diff(want, unnoticed(examples)); diff != "" {
		t.Errorf("mistakes that would not be noticed (-want +got):\n%s", diff)
	}
}

func TestSinkhornGolden(t *testing.T) {
	g := golden{t, "sinkhorn"}
	c, logits, want := g.config(), g.floats("logits"), g.floats("matrix")
	differ := func(got []float32) (err error) {
		for at := 0; at < len(want) && err == nil; at += 16 {
			if err = near(got[at:at+16], want[at:at+16]); err != nil {
				err = fmt.Errorf("matrix %d: %w", at/16, err)
			}
		}
		return err
	}
	m := slices.Clone(logits)
	kernel.NewPool(1).Sinkhorn(m, c.Iterations, c.Eps)
	if err := differ(m); err != nil {
		t.Error(err)
	}
	for _, mistake := range []string{
		"softmax of columns", "columns before rows", "rows are last", "no eps after softmax", "no softmax", "half the iterations",
	} {
		if differ((&example{Config: c}).sinkhorn(logits, mistake)) == nil {
			t.Errorf("%s: nobody would notice", mistake)
		}
	}
}
