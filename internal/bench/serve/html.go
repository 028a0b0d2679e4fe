package serve

import (
	_ "embed"
	"html/template"
	"io"
	"slices"
)

//go:embed report.html
var page string

var pageTemplate = template.Must(template.New("report").Parse(page))

// WriteHTML writes the figures and their distributions as a page that needs
// nothing beside itself.
func (r *Report) WriteHTML(out io.Writer) error {
	plots := r.plots
	if len(r.busy) > 0 {
		plots = append(slices.Clip(plots), newTimeline(r.busy, r.Duration))
	}
	return pageTemplate.Execute(out, struct {
		*Report
		Lines     [][2]string
		Latencies []latency
		Plots     []plot
		LoadLines [][2]string
	}{r, r.lines(), r.latencies(), plots, r.Load.lines()})
}
