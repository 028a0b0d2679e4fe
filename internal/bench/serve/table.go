package serve

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"text/tabwriter"
)

// WriteTable writes the figures for people.
func (r *Report) WriteTable(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, line := range r.lines() {
		fmt.Fprintf(w, "%s\t%s\n", line[0], line[1])
	}
	latencies := r.latencies()
	if len(latencies) > 0 {
		fmt.Fprint(w, "\nms\tmean\tmedian\tstd\tp90\tp99\tmax\n")
	}
	for _, l := range latencies {
		fmt.Fprint(w, l.Name)
		for _, v := range l.Values() {
			fmt.Fprintf(w, "\t%s", v)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// lines are names of figures, and what they are.
func (r *Report) lines() [][2]string {
	requests := fmt.Sprintf("%d completed, %d failed", r.Completed, r.Failed)
	if n := r.Interrupted + r.Unsent; n > 0 {
		requests += fmt.Sprintf("; interrupted: %d given up, %d not sent", r.Interrupted, r.Unsent)
	}
	lines := [][2]string{
		{"requests", requests},
		{"duration", fmt.Sprintf("%s s, %.1f requests at a time, at most %d", significant(r.Duration), r.MeanConcurrent, r.MaxConcurrent)},
		{"requests/s", significant(r.RequestThroughput)},
		{"input tokens/s", fmt.Sprintf("%s (%d in all, %d of them cached)", significant(r.InputThroughput), r.InputTokens, r.CachedTokens)},
		{"output tokens/s", fmt.Sprintf("%s (%d in all)", significant(r.OutputThroughput), r.OutputTokens)},
	}
	if g := r.Goodput; g != nil {
		lines = append(lines, [2]string{"goodput", fmt.Sprintf("%s requests/s, %.1f%% within %s ms", significant(g.RequestThroughput), 100*g.Share, g.Limits)})
	}
	if n := r.Interference; n != nil {
		lines = append(lines, [2]string{"long prompts", n.line(r.Load.Interfere)})
	}
	if r.Completed > 0 {
		lines = append(lines, [2]string{"tokens are counted", r.counting()})
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Errors)) {
		lines = append(lines, [2]string{"error " + kind, fmt.Sprintf("%d × %s", r.Errors[kind].Count, r.Errors[kind].Example)})
	}
	return lines
}

// lines are the same of the load.
func (l Load) lines() [][2]string {
	lines := [][2]string{{"arrivals", l.Arrivals}}
	add := func(name, value string) {
		if value != "" && value != "0" {
			lines = append(lines, [2]string{name, value})
		}
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	add("requests/s", number(l.Rate))
	add("at a time", strconv.Itoa(l.Concurrency))
	add("requests", strconv.Itoa(l.Requests))
	if l.Trace {
		add("lengths", "of the trace × "+number(l.LengthScale))
	}
	add("time of the trace ×", number(l.TimeScale))
	add("input tokens", l.Input)
	add("output tokens", l.Output)
	add("common prefix", strconv.Itoa(l.Prefix))
	add("long prompts between", strconv.Itoa(l.Interfere))
	add("prompts of", l.Prompts)
	add("ignore_eos", strconv.FormatBool(l.IgnoreEOS))
	add("seed", strconv.FormatUint(l.Seed, 10))
	return lines
}

// counting says how tokens were counted: the numbers mean nothing without.
func (r *Report) counting() string {
	switch r.CountedByUsage {
	case r.Completed:
		return fmt.Sprintf("by the server's usage; a chunk has %.2f, and ITL is between chunks", float64(r.OutputTokens)/float64(r.OutputChunks))
	case 0:
		return "as chunks: the server sends no usage"
	}
	return fmt.Sprintf("by the server's usage for %d requests, as chunks for the %d that had none", r.CountedByUsage, r.Completed-r.CountedByUsage)
}

type latency struct {
	Name string
	*Summary
}

// latencies are those that were measured.
func (r *Report) latencies() []latency {
	all := []latency{{"TTFT", r.TTFT}, {"TPOT", r.TPOT}, {"ITL", r.ITL}, {"E2E", r.E2E}, {"delay", r.Delay}}
	if n := r.Interference; n != nil {
		all = append(all, latency{"TTFT, long prompts", n.TTFT}, latency{"ITL during these", n.During}, latency{"ITL apart from them", n.Apart})
	}
	return slices.DeleteFunc(all, func(l latency) bool { return l.Summary == nil })
}

// Values are the columns mean, median, std, p90, p99 and max.
func (l latency) Values() (out []string) {
	for _, v := range []float64{l.Mean, l.Median, l.Std, l.P90, l.P99, l.Max} {
		out = append(out, significant(v))
	}
	return out
}

// significant has three digits, or all those before the point, and no more than
// three after it.
func significant(v float64) string {
	digits := 3
	if v >= 1 || v == 0 {
		digits = max(0, 2-int(math.Log10(max(v, 1))))
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}
