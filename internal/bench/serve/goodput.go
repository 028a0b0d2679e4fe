package serve

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Limits are what a good request keeps, in ms; 0: no limit.
type Limits struct {
	TTFT float64 `json:"ttft,omitempty"`
	TPOT float64 `json:"tpot,omitempty"`
	E2E  float64 `json:"e2e,omitempty"`
}

// Set reads one limit, such as ttft:200.
func (l *Limits) Set(s string) error {
	name, value, _ := strings.Cut(s, ":")
	limit, err := strconv.ParseFloat(value, 64)
	field := map[string]*float64{"ttft": &l.TTFT, "tpot": &l.TPOT, "e2e": &l.E2E, "e2el": &l.E2E}[name]
	if field == nil || err != nil || !(limit > 0) || math.IsInf(limit, 1) {
		return fmt.Errorf("%.40q: expected ttft, tpot or e2e and a number of milliseconds, such as ttft:200", s)
	}
	*field = limit
	return nil
}

// String is the limits as Set reads them, with spaces between.
func (l Limits) String() string {
	var out []string
	for _, v := range []struct {
		name  string
		limit float64
	}{{"ttft", l.TTFT}, {"tpot", l.TPOT}, {"e2e", l.E2E}} {
		if v.limit > 0 {
			out = append(out, v.name+":"+strconv.FormatFloat(v.limit, 'f', -1, 64))
		}
	}
	return strings.Join(out, " ")
}

// keeps reports whether a completed request keeps all limits. An answer of one
// token has no time per token, and keeps whatever that is limited to.
func (l Limits) keeps(r *record) bool {
	tpot, _ := r.tpot()
	return (l.TTFT == 0 || ms(r.ttft) <= l.TTFT) && (l.TPOT == 0 || ms(tpot) <= l.TPOT) && (l.E2E == 0 || ms(r.e2e) <= l.E2E)
}

// Goodput is how many requests kept the limits.
type Goodput struct {
	Limits            Limits  `json:"limits_ms"`
	Requests          int     `json:"requests"`
	Share             float64 `json:"share"`              // of the requests that were completed or failed
	RequestThroughput float64 `json:"request_throughput"` // a second
}
