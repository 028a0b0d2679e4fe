package bench

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// WriteTable writes the figures for people.
func (r *Report) WriteTable(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(r.Prefill) > 0 {
		fmt.Fprint(w, "prefill\ttokens/s\tbest\n")
	}
	for _, p := range r.Prefill {
		fmt.Fprintf(w, "  %d tokens\t%s\t%s\n", p.Tokens, figure(p.TokS, p.SD), significant(p.Best))
	}
	if len(r.Decode) > 0 {
		fmt.Fprint(w, "decode\ttokens/s\tbest\tof the memory limit\n")
	}
	for _, d := range r.Decode {
		what := fmt.Sprintf("context %d", d.Context)
		if d.Batch > 1 {
			what = fmt.Sprintf("%d × %s", d.Batch, what)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%.0f%% of %s GB/s\n", what, figure(d.TokS, d.SD), significant(d.Best), 100*d.OfLimit, significant(d.Probe))
	}
	context := -1
	for _, v := range r.Verify {
		if v.Context != context {
			context = v.Context
			fmt.Fprintf(w, "verify, context %d\tms\tbest\tto 1 token\n", context)
		}
		unit := "tokens"
		if v.K == 1 {
			unit = "token"
		}
		fmt.Fprintf(w, "  %d %s\t%s\t%s\t%.2f\n", v.K, unit, figure(v.MS, v.SD), significant(v.Best), v.Ratio)
	}
	return w.Flush()
}

// figure is a median with its deviation.
func figure(v, sd float64) string { return fmt.Sprintf("%s ± %s", significant(v), significant(sd)) }

// significant has three digits, or all those before the point.
func significant(v float64) string {
	digits := 0
	switch {
	case v == 0 || v >= 100:
	case v >= 10:
		digits = 1
	case v >= 1:
		digits = 2
	default:
		digits = 3
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}
