package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// figures checks what bench --json printed: figures FILE tokens=… context=… k=….
// The sizes are listed in the order of the figures, each of which is a positive
// number.
func figures(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: figures file size=list…")
	}
	text := ts.ReadFile(args[0])
	var report struct {
		Prefill, Decode, Verify []map[string]float64
		CPU, Model              string
		Threads                 int
	}
	ts.Check(json.Unmarshal([]byte(text), &report))
	if strings.Count(text, "\n") != 1 || report.CPU == "" || report.Model == "" || report.Threads < 1 {
		ts.Fatalf("not a report on one line: %s", text)
	}
	sizes := map[string][]string{}
	for _, list := range []struct {
		size    string
		figures []map[string]float64
		have    []string
	}{
		{"tokens", report.Prefill, []string{"tok_s"}},
		{"context", report.Decode, []string{"of_limit", "probe_gb_s", "tok_s"}},
		{"k", report.Verify, []string{"ms", "ratio"}},
	} {
		for _, f := range list.figures {
			for _, name := range list.have {
				if !(f[name] > 0) {
					ts.Fatalf("%s is not positive: %v", name, f)
				}
			}
			sizes[list.size] = append(sizes[list.size], fmt.Sprint(f[list.size]))
		}
	}
	var got []string
	for _, size := range slices.Sorted(maps.Keys(sizes)) {
		got = append(got, size+"="+strings.Join(sizes[size], ","))
	}
	if want := slices.Sorted(slices.Values(args[1:])); !slices.Equal(got, want) {
		ts.Fatalf("figures of %v, want %v", got, want)
	}
}
