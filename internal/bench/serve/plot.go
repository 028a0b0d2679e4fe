package serve

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The drawing area of a plot, in units of its SVG.
const (
	plotLeft, plotRight = 56.0, 628.0
	plotTop, plotBottom = 14.0, 196.0
)

// A plot is what the template draws: bars, a curve above them, and axes.
type plot struct {
	Title  string
	X, Y   []tick
	Bars   []bar
	Curve  string // points of a polyline
	Marks  []tick // vertical lines
	Label  string // of the horizontal axis
	Legend string
}

type tick struct {
	At    float64 // unit of the SVG, along its axis
	Label string
}

type bar struct{ X, Y, Width, Height float64 }

// An axis maps values to 0…1.
type axis struct {
	low, high float64
	log       bool
}

// newAxis spans values from low to high, on a logarithmic scale where they are
// far apart.
func newAxis(low, high float64) axis {
	if low > 0 && high/low > 20 {
		return axis{low, high, true}
	}
	if high-low < 1e-9*high || high == low {
		return axis{0, max(2*high, 1), false}
	}
	return axis{low, high, false}
}

func (a axis) of(v float64) float64 {
	if a.log {
		return math.Log(v/a.low) / math.Log(a.high/a.low)
	}
	return (v - a.low) / (a.high - a.low)
}

// value is the inverse of of.
func (a axis) value(part float64) float64 {
	if a.log {
		return a.low * math.Pow(a.high/a.low, part)
	}
	return a.low + part*(a.high-a.low)
}

// ticks are round values on the axis.
func (a axis) ticks() (values []float64) {
	if !a.log {
		// The least of 1, 2 and 5 times a power of ten that gives at most six steps.
		step := math.Pow(10, math.Floor(math.Log10((a.high-a.low)/6)))
		for _, m := range []float64{1, 2, 5, 10} {
			if (a.high-a.low)/(m*step) <= 6 {
				step *= m
				break
			}
		}
		for i := math.Ceil(a.low / step); i*step <= a.high*(1+1e-12); i++ {
			values = append(values, i*step)
		}
		return values
	}
	multiples := []float64{1, 2, 5}
	if a.high/a.low > 1e3 {
		multiples = multiples[:1]
	}
	for power := math.Pow(10, math.Floor(math.Log10(a.low))); power <= a.high; power *= 10 {
		for _, m := range multiples {
			if v := m * power; v >= a.low && v <= a.high {
				values = append(values, v)
			}
		}
	}
	return values
}

func (a axis) horizontal() (ticks []tick) {
	for _, v := range a.ticks() {
		ticks = append(ticks, tick{horizontal(a.of(v)), label(v)})
	}
	return ticks
}

func (a axis) vertical() (ticks []tick) {
	for _, v := range a.ticks() {
		ticks = append(ticks, tick{vertical(a.of(v)), label(v)})
	}
	return ticks
}

// Places of 0…1 in the drawing area, to a tenth of a unit.
func horizontal(part float64) float64 { return tenth(plotLeft + part*(plotRight-plotLeft)) }
func vertical(part float64) float64   { return tenth(plotBottom - part*(plotBottom-plotTop)) }
func tenth(v float64) float64         { return math.Round(v*10) / 10 }
func label(v float64) string          { return strconv.FormatFloat(v, 'g', 6, 64) }

const (
	plotBars   = 52
	plotPoints = 200
)

// newPlot draws a distribution: a histogram, and the share of values that are
// no greater.
func newPlot(title string, d distribution) plot {
	n := d.len()
	x := newAxis(d.at(0), d.at(n-1))
	p := plot{
		Title: title, X: x.horizontal(), Y: axis{0, 100, false}.vertical(), Label: "ms",
		Legend: "Bars: how often, to the highest. Line: share of values no greater (CDF). Dashed: p50 and p99.",
	}
	for i := range p.Y {
		p.Y[i].Label += "%"
	}
	var counts [plotBars]int
	before, most := 0, 1
	for i := range counts {
		upTo := n
		if i < plotBars-1 {
			upTo = below(d, x.value(float64(i+1)/plotBars))
		}
		counts[i] = upTo - before
		before = upTo
		most = max(most, counts[i])
	}
	for i, count := range counts {
		if count == 0 {
			continue
		}
		from, to, top := horizontal(float64(i)/plotBars), horizontal(float64(i+1)/plotBars), vertical(float64(count)/float64(most))
		p.Bars = append(p.Bars, bar{from, top, tenth(max(1, to-from-1)), tenth(plotBottom - top)})
	}
	var points []string
	for i := range plotPoints + 1 {
		q := float64(i) / plotPoints
		points = append(points, fmt.Sprintf("%v,%v", horizontal(x.of(quantile(d, q))), vertical(q)))
	}
	p.Curve = strings.Join(points, " ")
	p.Marks = []tick{
		{horizontal(x.of(quantile(d, 0.5))), "p50"},
		{horizontal(x.of(quantile(d, 0.99))), "p99"},
	}
	return p
}

// newTimeline draws how many requests ran over a time of so many seconds.
func newTimeline(busy []float64, seconds float64) plot {
	most := 1.0
	for _, v := range busy {
		most = max(most, v)
	}
	x, y := axis{0, max(seconds, 1e-3), false}, axis{0, most, false}
	p := plot{
		Title: "Requests that run", X: x.horizontal(), Y: y.vertical(), Label: "s",
		Legend: fmt.Sprintf("Average over each of %d parts of the run.", len(busy)),
	}
	var points []string
	for i, v := range busy {
		for _, edge := range []int{i, i + 1} {
			points = append(points, fmt.Sprintf("%v,%v", horizontal(float64(edge)/float64(len(busy))), vertical(y.of(v))))
		}
	}
	p.Curve = strings.Join(points, " ")
	return p
}
