package spec

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
)

//go:embed report.html
var page string

var pageTemplate = template.Must(template.New("report").Parse(page))

// WriteHTML writes the figures as a page that needs nothing beside itself, with a
// plot of the ratios for each set.
func (r *Report) WriteHTML(out io.Writer) error {
	var plots []plot
	for _, s := range r.Sets {
		plots = append(plots, r.plot(s.Name))
	}
	return pageTemplate.Execute(out, struct {
		*Report
		Lines []string
		Fixed bool
		Plots []plot
	}{r, r.lines(), r.fixed(), plots})
}

// A plot draws the ratio to decoding without speculation over the number of
// requests at a time.
type plot struct {
	Title  string
	X, Y   []tick
	One    float64 // where the ratio is 1
	Curves []curve
}

type tick struct {
	At    float64 // unit of the SVG, along its axis
	Label string
}

// A curve is of one method.
type curve struct {
	Name   string
	Class  int // of its colour
	Points string
	Dots   []dot
	Label  float64 // where its name stands
}

type dot struct{ X, Y float64 }

// The drawing area of a plot, and the numbers of colours.
const (
	plotLeft, plotRight = 44.0, 470.0
	plotTop, plotBottom = 14.0, 236.0
	plotColours         = 6
)

func (r *Report) plot(set string) plot {
	var counts []int
	top := 1.0
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Prompts == set {
			counts = append(counts, row.Concurrency)
			top = max(top, row.Ratio)
		}
	}
	slices.Sort(counts)
	counts = slices.Compact(counts)
	step := 0.25
	for top/step > 8 {
		step *= 2
	}
	top = step * math.Ceil(top/step)
	y := func(ratio float64) float64 { return tenth(plotBottom - ratio/top*(plotBottom-plotTop)) }
	x := func(count int) float64 {
		return tenth(plotLeft + (0.5+float64(slices.Index(counts, count)))/float64(len(counts))*(plotRight-plotLeft))
	}
	p := plot{Title: set, One: y(1)}
	for v := 0.0; v <= top; v += step {
		p.Y = append(p.Y, tick{y(v), fmt.Sprint(v)})
	}
	for _, n := range counts {
		p.X = append(p.X, tick{x(n), fmt.Sprint(n)})
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Prompts != set {
			continue
		}
		k := slices.IndexFunc(p.Curves, func(c curve) bool { return c.Name == row.Name() })
		if k < 0 {
			k = len(p.Curves)
			p.Curves = append(p.Curves, curve{Name: row.Name(), Class: k % plotColours, Label: plotTop + 6 + 16*float64(k)})
		}
		p.Curves[k].Dots = append(p.Curves[k].Dots, dot{x(row.Concurrency), y(row.Ratio)})
	}
	for k := range p.Curves {
		var points []string
		for _, d := range p.Curves[k].Dots {
			points = append(points, fmt.Sprintf("%v,%v", d.X, d.Y))
		}
		p.Curves[k].Points = strings.Join(points, " ")
	}
	return p
}

func tenth(v float64) float64 { return math.Round(v*10) / 10 }
