package serve

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// A Range is a range of numbers, both ends included, of which each is drawn as
// often as any other.
type Range struct{ Min, Max int }

// UnmarshalText reads "512" or "100-900".
func (r *Range) UnmarshalText(text []byte) error {
	low, high, two := strings.Cut(string(text), "-")
	if !two {
		high = low
	}
	var err1, err2 error
	r.Min, err1 = strconv.Atoi(low)
	r.Max, err2 = strconv.Atoi(high)
	if err1 != nil || err2 != nil || r.Min < 0 || r.Max < r.Min {
		return fmt.Errorf("%.40q: expected a number or a range, such as 512 or 100-900", text)
	}
	return nil
}

// String is the form that UnmarshalText reads.
func (r Range) String() string {
	if r.Min == r.Max {
		return strconv.Itoa(r.Min)
	}
	return fmt.Sprintf("%d-%d", r.Min, r.Max)
}

func (r Range) draw(random *rand.Rand) int { return r.Min + random.IntN(r.Max-r.Min+1) }

// What random numbers are drawn for. Each purpose has a sequence of its own, so
// that changing how many one takes leaves the others as they are.
const (
	drawLengths = iota
	drawArrivals
	drawPrefix
	drawBlock
	drawPrompt
	drawWarmup
	drawInterference
)

// source is the sequence of random numbers for one purpose and, where it has
// several, one thing of it.
func (o *Options) source(purpose, of uint64) *rand.Rand {
	return rand.New(rand.NewPCG(o.Seed<<3|purpose, of))
}

// plan is the load: what is sent, and when.
func (o *Options) plan() (*Trace, error) {
	t := &Trace{}
	if o.Trace != nil {
		var err error
		if t, err = o.Trace.scaled(o.TimeScale, o.LengthScale); err != nil {
			return nil, err
		}
		if o.Requests > 0 && o.Requests < len(t.Requests) {
			t.Requests = t.Requests[:o.Requests]
		}
	} else {
		random := o.source(drawLengths, 0)
		for range o.Requests {
			t.Requests = append(t.Requests, Request{Input: o.Input.draw(random), Output: o.Output.draw(random)})
		}
	}
	if o.Rate > 0 {
		// Gaps between the arrivals of a Poisson process are exponentially
		// distributed; the first request comes at the start.
		random := o.source(drawArrivals, 0)
		var at float64
		for i := range t.Requests {
			t.Requests[i].At = time.Duration(at * float64(time.Second))
			at += random.ExpFloat64() / o.Rate
		}
	}
	return t, nil
}
