package main

import (
	"fmt"
	"slices"
	"time"
)

// A figure is a line of the report.
type figure struct {
	goal, limit, measured string
	missed                bool
}

func (f figure) String() string {
	mark := ""
	if f.missed {
		mark = " **missed**"
	}
	return fmt.Sprintf("| %s | %s | %s%s |", f.goal, f.limit, f.measured, mark)
}

// within is a figure of how long something took, of many times 99 in 100: what
// is slower says more of what else the machine does.
func within(goal string, limit time.Duration, took []time.Duration) figure {
	most := quantile(took, 0.99)
	f := figure{goal: goal, limit: "≤ " + limit.String(), measured: ms(most), missed: most > limit}
	switch n := len(took); {
	case n >= 100:
		f.measured = fmt.Sprintf("median %s, p99 %s, slowest of %d %s", ms(quantile(took, 0.5)), ms(most), n, ms(took[n-1]))
	case n > 1:
		f.measured = fmt.Sprintf("median %s, slowest of %d %s", ms(quantile(took, 0.5)), n, ms(most))
	}
	return f
}

// exactly is a figure of something counted.
func exactly(goal string, want, got int, of string) figure {
	return figure{goal: goal, limit: fmt.Sprint(want), measured: fmt.Sprintf("%d of %s", got, of), missed: got != want}
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/1e6) }

// quantile sorts d and returns the least that a share of d is not above.
func quantile(d []time.Duration, share float64) time.Duration {
	slices.Sort(d)
	return d[min(int(share*float64(len(d))), len(d)-1)]
}

// A point is a measurement y at x.
type point struct{ x, y float64 }

// slope is that of the line through the points with the least squares.
func slope(points []point) float64 {
	var mx, my, xx, xy float64
	for _, p := range points {
		mx += p.x / float64(len(points))
		my += p.y / float64(len(points))
	}
	for _, p := range points {
		xx += (p.x - mx) * (p.x - mx)
		xy += (p.x - mx) * (p.y - my)
	}
	if xx == 0 {
		return 0
	}
	return xy / xx
}
