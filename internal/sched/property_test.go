package sched

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawConfig draws limits from roomy down to constant retraction.
func drawConfig(t *rapid.T) Config {
	c := Config{
		PageSize:         rapid.SampledFrom([]int{1, 4, 16}).Draw(t, "page size"),
		MaxRows:          rapid.IntRange(1, 48).Draw(t, "rows"),
		Policy:           rapid.SampledFrom([]Policy{FCFS, LPM, DFSWeight, Priority}).Draw(t, "policy"),
		MinChunk:         rapid.IntRange(1, 20).Draw(t, "least chunk"),
		MaxDraft:         rapid.IntRange(0, 5).Draw(t, "drafts"),
		Separate:         rapid.IntRange(0, 3).Draw(t, "separate") == 0,
		Patience:         time.Duration(rapid.IntRange(1, 200).Draw(t, "patience")) * time.Second,
		Slowdown:         rapid.SampledFrom([]float64{0, 1, 2}).Draw(t, "slowdown"),
		Conservativeness: rapid.SampledFrom([]float64{0.1, 1, 2}).Draw(t, "conservativeness"),
	}
	c.Pages = (60+rapid.IntRange(0, 200).Draw(t, "spare tokens"))/c.PageSize + 1 // the longest request has 60
	c.MaxSeqs = rapid.IntRange(1, c.MaxRows).Draw(t, "sequences")
	c.Prefill = rapid.IntRange(1, c.MaxRows).Draw(t, "prefill")
	c.Chunk = rapid.IntRange(1, c.Prefill).Draw(t, "chunk")
	c.MaxPartial = rapid.IntRange(1, min(3, c.MaxSeqs)).Draw(t, "partial")
	return c
}

func drawRequest(t *rapid.T, id uint64) (r Request, family, shared int) {
	r = Request{
		ID: id, Prompt: rapid.IntRange(1, 40).Draw(t, "prompt"), MaxNew: rapid.IntRange(1, 20).Draw(t, "new"),
		Key: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "key"), Priority: rapid.IntRange(-30, 30).Draw(t, "priority"),
	}
	return r, rapid.IntRange(1, 3).Draw(t, "family"), rapid.IntRange(0, 40).Draw(t, "shared")
}

// Whatever arrives, is aborted or stops early, and however little memory
// there is: no plan takes more than there is, the oldest request always has
// rows, accounts balance, everything ends. (world.step checks.)
func TestRandomTraffic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, err := newWorld(drawConfig(t))
		if err != nil {
			t.Fatal(err)
		}
		w.cost = Curve{Step: 1, Decode: 0.1, Prefill: 0.1, DecodeContext: 0.001, PrefillContext: 0.001}
		w.truth = w.cost
		w.accept = func(n int) int { return rapid.IntRange(0, n).Draw(t, "accepted") }
		w.stops = func(uint64, int) bool { return rapid.IntRange(0, 15).Draw(t, "stop") == 0 }
		n := rapid.IntRange(1, 30).Draw(t, "requests")
		work := 0
		for id := 0; id < n || len(w.live()) > 0; {
			for id < n && rapid.IntRange(0, 2).Draw(t, "arrives") == 0 {
				r, family, shared := drawRequest(t, uint64(id))
				if err := w.submit(r, family, shared); err != nil {
					t.Fatal(err)
				}
				work += r.Prompt + r.MaxNew
				id++
			}
			if live := w.live(); len(live) > 0 && rapid.IntRange(0, 9).Draw(t, "abort") == 0 {
				w.abort(rapid.SampledFrom(live).Draw(t, "aborted").ID)
			}
			if err := w.step(); err != nil {
				t.Fatalf("step %d: %v", w.steps, err)
			}
			// Every step that is not empty computes a row of the oldest, or
			// the next one does: so many steps are enough for all one by one.
			if most := 3*n + 4*(work+100); w.steps > most {
				t.Fatalf("%d requests of %d tokens have not ended after %d steps", n, work, w.steps)
			}
		}
		if free := w.cache.Available(); free != w.s.cfg.Pages {
			t.Fatalf("%d of %d pages are available when all has ended", free, w.s.cfg.Pages)
		}
		if got, want := w.s.Stats(), (Stats{NewTokenRatio: newRatio(w.s.cfg.Conservativeness).now}); got != want {
			t.Fatalf("when all has ended: %+v, want %+v", got, want)
		}
	})
}

// A plan depends on what the scheduler was told and on nothing else.
func TestPlansAreDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		var worlds [2]*world
		for i := range worlds {
			var err error
			if worlds[i], err = newWorld(c); err != nil {
				t.Fatal(err)
			}
		}
		for id := range uint64(rapid.IntRange(1, 20).Draw(t, "requests")) {
			r, family, shared := drawRequest(t, id)
			for _, w := range worlds {
				if err := w.submit(r, family, shared); err != nil {
					t.Fatal(err)
				}
			}
		}
		for len(worlds[0].live()) > 0 {
			for _, w := range worlds {
				if err := w.step(); err != nil {
					t.Fatal(err)
				}
			}
			if a, b := fmt.Sprint(*worlds[0].plan), fmt.Sprint(*worlds[1].plan); a != b {
				t.Fatalf("the same history gave\n%s\nand\n%s", a, b)
			}
		}
	})
}

// However the traffic that a policy favours keeps coming, a request that it
// does not favour runs soon after its patience has ended.
func TestNobodyStarves(t *testing.T) {
	for _, policy := range []Policy{FCFS, LPM, DFSWeight, Priority} {
		t.Run(string(policy), func(t *testing.T) {
			w, err := newWorld(Config{Pages: 30, PageSize: 4, MaxRows: 16, MaxSeqs: 4, Policy: policy, Patience: 100 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			// The favoured share a cached prefix, have priority and come
			// faster than they are served.
			favoured := func(id uint64) {
				if err := w.submit(Request{ID: id, Prompt: 48, MaxNew: 8, Priority: 50}, 1, 44); err != nil {
					t.Fatal(err)
				}
			}
			for id := range uint64(8) {
				favoured(id)
			}
			const victim = 1000
			for id := uint64(8); ; id++ {
				favoured(id)
				if id == 20 {
					if err := w.submit(Request{ID: victim, Prompt: 60, MaxNew: 8}, 2, 0); err != nil {
						t.Fatal(err)
					}
				}
				if err := w.step(); err != nil {
					t.Fatal(err)
				}
				q := w.seqs[victim]
				if q == nil {
					continue
				}
				waited := w.steps - q.submitted
				if q.done > 0 {
					t.Logf("ended after %d steps", waited)
					if early := waited < 100; early && policy != FCFS {
						t.Errorf("ended after %d steps, before its patience: the traffic does not press", waited)
					}
					return
				}
				if waited > 400 {
					t.Fatalf("still not served after %d steps", waited)
				}
			}
		})
	}
}

// Keys that always have requests waiting are served alike, however many each
// sends and of whatever size: no further apart than what runs at once.
func TestKeysAreServedAlike(t *testing.T) {
	w, err := newWorld(Config{Pages: 400, PageSize: 4, MaxRows: 32, MaxSeqs: 4})
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]Request{"a": {Prompt: 40, MaxNew: 5}, "b": {Prompt: 5, MaxNew: 30}, "c": {Prompt: 20, MaxNew: 20}}
	id := uint64(0)
	for _, key := range []string{"a", "a", "a", "b", "c"} { // a floods the queue
		for range 60 {
			r := sizes[key]
			r.ID, r.Key = id, key
			if err := w.submit(r, 0, 0); err != nil {
				t.Fatal(err)
			}
			id++
		}
	}
	const most = 4 * (40 + outputWeight*30)
	for range 400 {
		if err := w.step(); err != nil {
			t.Fatal(err)
		}
		a, b, c := w.s.accounts["a"].served, w.s.accounts["b"].served, w.s.accounts["c"].served
		if d := max(a, b, c) - min(a, b, c); d > most {
			t.Fatalf("served %d, %d and %d after %d steps: further apart than %d", a, b, c, w.steps, most)
		}
	}
	if a := w.s.accounts["a"].served; a < 2*most {
		t.Errorf("only %d served: the test says little", a)
	}
}
