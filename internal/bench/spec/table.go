package spec

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// WriteTable writes the figures for people.
func (r *Report) WriteTable(out io.Writer) error {
	for _, line := range r.lines() {
		fmt.Fprintln(out, line)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i := range r.Rows {
		row := &r.Rows[i]
		if i == 0 || row.Prompts != r.Rows[i-1].Prompts || row.Method != r.Rows[i-1].Method {
			fmt.Fprintf(w, "\n%s\tat a time\tplain tokens/s\ttokens/s\tratio\tτ\ttokens a step\tacceptance by position", row.Prompts)
			if r.fixed() {
				fmt.Fprint(w, "\tadaptive to best fixed")
			}
			fmt.Fprintln(w)
		}
		fmt.Fprint(w, "  ", row.Name())
		for _, v := range row.Values() {
			fmt.Fprint(w, "\t", v)
		}
		if r.fixed() {
			fmt.Fprint(w, "\t", row.Compared())
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// lines say under what conditions the figures hold.
func (r *Report) lines() (lines []string) {
	if s := r.Simulated; s != nil {
		lines = append(lines, fmt.Sprintf("SIMULATED: acceptance %s and a draft cost of %v steps are made up, and what was generated is not the model's text.",
			list(s.Acceptance, len(s.Acceptance)), s.DraftCost))
	}
	lines = append(lines, fmt.Sprintf("Medians of %d rounds in turns; %d requests, or twice as many as run at a time; up to %d tokens each; temperature %v.",
		r.Runs, r.Requests, r.MaxTokens, r.Temperature))
	for _, s := range r.Sets {
		lines = append(lines, fmt.Sprintf("%s: %d prompts of %d, of %.0f tokens on average.", s.Name, s.Prompts, s.Of, s.Tokens))
	}
	if r.PromptsTimed {
		lines = append(lines, "Prompts are computed in the time of their answers: this model's cache shares no prefixes.")
	}
	if r.Retractions > 0 {
		lines = append(lines, fmt.Sprintf("%d times a request gave its memory back and was computed again, for the cache was full: measure fewer at a time.", r.Retractions))
	}
	if n := r.Differ(); n > 0 {
		lines = append(lines, fmt.Sprintf("WRONG: %d answers are not what they are without speculation.", n))
	}
	return lines
}

// fixed reports whether fixed numbers of drafted tokens were measured.
func (r *Report) fixed() bool {
	for i := range r.Rows {
		if r.Rows[i].Gamma > 0 {
			return true
		}
	}
	return false
}

// Name is the method, with γ where it is fixed.
func (r *Row) Name() string {
	if r.Gamma > 0 {
		return fmt.Sprintf("%s, γ = %d", r.Method, r.Gamma)
	}
	return r.Method
}

// Values are the columns at a time, plain tokens/s, tokens/s, ratio, τ, tokens a
// step and acceptance by position.
func (r *Row) Values() []string {
	return []string{
		strconv.Itoa(r.Concurrency), significant(r.Plain), significant(r.TokS), fmt.Sprintf("%.2f", r.Ratio),
		fmt.Sprintf("%.2f", r.Tau), fmt.Sprintf("%.2f", r.TokensPerStep), list(r.Acceptance, shownPositions),
	}
}

// shownPositions bounds the positions of drafts in tables.
const shownPositions = 8

// Compared is the column of the adaptive row that compares it with the fixed ones.
func (r *Row) Compared() string {
	if r.BestGamma == 0 {
		return ""
	}
	return fmt.Sprintf("%.3f of γ = %d", r.ToFixed, r.BestGamma)
}

// list writes the first most values.
func list(values []float64, most int) string {
	var parts []string
	for i, v := range values {
		if i == most {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, fmt.Sprintf("%.2f", v))
	}
	return strings.Join(parts, " ")
}

// significant has three digits, or all those before the point.
func significant(v float64) string {
	digits := 0
	for limit := 100.0; v < limit && digits < 2; limit /= 10 {
		digits++
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}
