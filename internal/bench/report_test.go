package bench

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestMedianAndDeviation(t *testing.T) {
	for _, c := range []struct {
		name              string
		samples           []float64
		median, deviation float64
	}{
		{"one", []float64{3}, 3, 0},
		{"two", []float64{5, 1}, 3, math.Sqrt(8)},
		{"odd", []float64{9, 1, 2}, 2, math.Sqrt(19)},
		{"even", []float64{4, 1, 3, 2}, 2.5, math.Sqrt(5. / 3)},
	} {
		t.Run(c.name, func(t *testing.T) {
			given := append([]float64{}, c.samples...)
			if got := Median(c.samples); got != c.median {
				t.Errorf("median %v, want %v", got, c.median)
			}
			if got := deviation(c.samples); math.Abs(got-c.deviation) > 1e-12 {
				t.Errorf("deviation %v, want %v", got, c.deviation)
			}
			if diff := cmp.Diff(given, c.samples); diff != "" {
				t.Errorf("samples were changed:\n%s", diff)
			}
		})
	}
}

// Times are compared by their medians.
func TestVerifyRatio(t *testing.T) {
	b := &bench{verifies: []*verify{{
		from: &sequences{context: 7}, ks: []int{1, 4}, ms: [][]float64{{10, 2, 2}, {3, 5, 3}},
	}}}
	want := []Verify{{Context: 7, K: 1, MS: 2, SD: math.Sqrt(64. / 3), Best: 2, Ratio: 1}, {Context: 7, K: 4, MS: 3, SD: math.Sqrt(4. / 3), Best: 3, Ratio: 1.5}}
	if diff := cmp.Diff(want, b.report().Verify, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func example() *Report {
	return &Report{
		Prefill: []Prefill{{Tokens: 512, TokS: 284.53, SD: 3.14, Best: 286.9}},
		Decode: []Decode{
			{Context: 0, TokS: 41.84, SD: 0.251, Best: 42.06, Probe: 40.12, OfLimit: 0.868},
			{Context: 2048, Batch: 4, TokS: 9.5, SD: 0, Best: 9.5, Probe: 8.02, OfLimit: 1},
		},
		Verify: []Verify{{Context: 7, K: 1, MS: 16.4, SD: 0.1, Best: 16.2, Ratio: 1}, {Context: 7, K: 4, MS: 17.1, SD: 0.12, Best: 17, Ratio: 1.043}},
		CPU:    "a processor", Threads: 2, Model: "a model", Runs: 5, WeightsBytes: 10, KVBytes: 3,
	}
}

func TestJSON(t *testing.T) {
	got, err := json.Marshal(example())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"prefill":[{"tokens":512,"tok_s":284.53,"sd":3.14,"best":286.9}],` +
		`"decode":[{"context":0,"tok_s":41.84,"sd":0.251,"best":42.06,"probe_gb_s":40.12,"of_limit":0.868},` +
		`{"context":2048,"batch":4,"tok_s":9.5,"sd":0,"best":9.5,"probe_gb_s":8.02,"of_limit":1}],` +
		`"verify":[{"context":7,"k":1,"ms":16.4,"sd":0.1,"best":16.2,"ratio":1},{"context":7,"k":4,"ms":17.1,"sd":0.12,"best":17,"ratio":1.043}],` +
		`"cpu":"a processor","threads":2,"model":"a model","runs":5,"weights_bytes":10,"kv_bytes":3}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTable(t *testing.T) {
	var got strings.Builder
	if err := example().WriteTable(&got); err != nil {
		t.Fatal(err)
	}
	want := `prefill             tokens/s      best
  512 tokens        285 ± 3.14    287
decode              tokens/s      best  of the memory limit
  context 0         41.8 ± 0.251  42.1  87% of 40.1 GB/s
  4 × context 2048  9.50 ± 0      9.50  100% of 8.02 GB/s
verify, context 7   ms            best  to 1 token
  1 token           16.4 ± 0.100  16.2  1.00
  4 tokens          17.1 ± 0.120  17.0  1.04
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}
