//go:build shared

package serve

import (
	"os"
	"testing"
	"time"

	"github.com/foretoken/foretoken/internal/fixtures"
)

// The published traces, whose totals were counted by other means.
func TestPublishedTraces(t *testing.T) {
	for _, c := range []struct {
		file                    string
		requests, input, output int
		last                    time.Duration
	}{
		{"azure2023_code.csv", 8819, 18059974, 245896, 57*time.Minute + 15*time.Second + 948*step + 56*time.Microsecond},
		{"azure2023_conv.csv", 19366, 22361870, 4088665, 58*time.Minute + 21*time.Second + 721*step + 937*time.Microsecond},
		{"mooncake_conversation_trace.jsonl", 12031, 144793823, 4122048, 3536999 * step},
	} {
		t.Run(c.file, func(t *testing.T) {
			f, err := os.Open(fixtures.Data(t, "traces", c.file))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			trace, err := ReadTrace(f)
			if err != nil {
				t.Fatal(err)
			}
			var input, output int
			for _, r := range trace.Requests {
				input += r.Input
				output += r.Output
			}
			last := trace.Requests[len(trace.Requests)-1].At.Truncate(time.Microsecond)
			if len(trace.Requests) != c.requests || input != c.input || output != c.output || last != c.last {
				t.Errorf("%d requests of %d and %d tokens in %v, want %d of %d and %d in %v",
					len(trace.Requests), input, output, last, c.requests, c.input, c.output, c.last)
			}
		})
	}
}

// The share of prompt tokens that a cache without bounds would find, which
// follows from the ids alone, is what the prompts made of them have in common.
func TestMooncakePrefixes(t *testing.T) {
	f, err := os.Open(fixtures.Data(t, "traces", "mooncake_conversation_trace.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	trace, err := ReadTrace(f)
	if err != nil {
		t.Fatal(err)
	}
	o := options(nil)
	o.TokenIDs = Range{1000, 31999}
	o.Trace, o.TimeScale, o.LengthScale, o.Requests = trace, 1, 0.02, 400 // blocks of 10 tokens
	plan, err := o.plan()
	if err != nil {
		t.Fatal(err)
	}
	p := &prompts{Options: &o, block: plan.BlockSize}
	seen := map[int64]bool{}
	tree := prefixes{}
	hits, want := 0, 0
	for i, r := range plan.Requests {
		matching := true
		for j, block := range r.Blocks {
			if matching = matching && seen[block]; matching {
				want += min(plan.BlockSize, max(0, r.Input-j*plan.BlockSize))
			}
			seen[block] = true
		}
		hits += tree.insert(idsOf(t, p, i, r))
	}
	// Of hundreds of prompts that go on differently after a block, a few take the
	// same of 31,000 tokens.
	if want == 0 || hits < want || hits > want+20 {
		t.Errorf("%d tokens are shared prefixes, want %d", hits, want)
	}
}

// prefixes is a trie of tokens.
type prefixes map[int]prefixes

// insert adds tokens and returns how many of them, from the first, were there.
func (p prefixes) insert(tokens []int) (shared int) {
	for i, id := range tokens {
		next := p[id]
		if next == nil {
			next = prefixes{}
			p[id] = next
		} else if shared == i {
			shared++
		}
		p = next
	}
	return shared
}
