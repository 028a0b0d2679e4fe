package sched

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "write what commands print into the scripts of testdata")

// The scripts of testdata show every rule at work. A script is a list of
//
//	command argument key=value …
//	----
//	what it prints
//
// with a blank line behind each; lines that begin with # are text. The
// commands are the methods of script.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runScript(t, file) })
	}
}

func runScript(t *testing.T, file string) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var s script
	var out strings.Builder
	lines := strings.Split(string(b), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if line == "" || line[0] == '#' {
			out.WriteString(line + "\n")
			continue
		}
		if i+1 == len(lines) || lines[i+1] != "----" {
			t.Fatalf("%s:%d: %q is not followed by ----", file, i+1, line)
		}
		at := i + 1
		var want strings.Builder
		for i += 2; i < len(lines) && lines[i] != ""; i++ {
			want.WriteString(lines[i] + "\n")
		}
		got, err := s.do(line)
		if err != nil {
			t.Fatalf("%s:%d: %s: %v", file, at, line, err)
		}
		if got != want.String() && !*rewrite {
			t.Errorf("%s:%d: %s\nprinted\n%swant\n%s", file, at, line, got, want.String())
		}
		fmt.Fprintf(&out, "%s\n----\n%s\n", line, got)
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(strings.TrimRight(out.String(), "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A script drives a world.
type script struct{ w *world }

// args are the arguments of a command: those with a name by name, the others
// as "0", "1", ….
type args map[string]string

func (a args) int(key string, orElse int) int {
	v, ok := a[key]
	if !ok {
		return orElse
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		panic(fmt.Sprintf("%s=%s: %v", key, v, err))
	}
	return n
}

func (a args) float(key string) float64 {
	f, _ := strconv.ParseFloat(a[key], 64)
	return f
}

func (a args) duration(key string) time.Duration {
	d, _ := time.ParseDuration(a[key])
	return d
}

func (s *script) retractAll() string {
	for _, id := range s.w.s.RetractAll() {
		s.w.retract(id)
	}
	return s.stats()
}

func (s *script) stats() string {
	st := s.w.s.Stats()
	return fmt.Sprintf("waiting %d, running %d, partial %d; %d of %d pages available\n", st.Waiting, st.Running, st.Partial, s.w.cache.Available(), s.w.s.cfg.Pages)
}

func (s *script) do(line string) (string, error) {
	words := strings.Fields(line)
	a := args{}
	for i, w := range words[1:] {
		if k, v, named := strings.Cut(w, "="); named {
			a[k] = v
		} else {
			a[strconv.Itoa(i)] = w
		}
	}
	switch words[0] {
	case "new":
		return s.start(a)
	case "cost":
		return s.cost(a)
	case "submit":
		return s.submit(a)
	case "abort":
		s.w.abort(uint64(a.int("0", 0)))
		return "", nil
	case "retract-all":
		return s.retractAll(), nil
	case "wait":
		s.w.now = s.w.now.Add(a.duration("0"))
		return "", nil
	case "step":
		return s.step(a.int("0", 1), a["show"] == "time")
	case "run":
		return s.run()
	case "ratio":
		return fmt.Sprintf("%.4f\n", s.w.s.Stats().NewTokenRatio), nil
	case "served":
		account := s.w.s.accounts[a["0"]]
		if account == nil {
			return "no account\n", nil
		}
		return fmt.Sprintf("%d\n", account.served), nil
	case "stats":
		return s.stats(), nil
	}
	return "", fmt.Errorf("unknown command")
}

// start makes a scheduler and its world.
func (s *script) start(a args) (out string, err error) {
	s.w, err = newWorld(Config{
		Pages: a.int("pages", 100), PageSize: a.int("page", 1), MaxRows: a.int("rows", 16), MaxSeqs: a.int("seqs", 0),
		Policy: Policy(a["policy"]), Prefill: a.int("prefill", 0), Chunk: a.int("chunk", 0), MaxPartial: a.int("partial", 0), MinChunk: a.int("least", 0),
		ITLTarget: a.duration("itl"), Slowdown: a.float("slowdown"), Separate: a["separate"] == "true", MaxDraft: a.int("drafts", 0),
		Patience: a.duration("patience"), Conservativeness: a.float("conservativeness"),
	})
	if err != nil {
		return err.Error() + "\n", nil
	}
	return "", nil
}

// cost sets the cost curve, in milliseconds, and what steps really take.
func (s *script) cost(a args) (string, error) {
	c := Curve{a.float("step") / 1e3, a.float("decode") / 1e3, a.float("prefill") / 1e3, a.float("decode-context") / 1e3, a.float("prefill-context") / 1e3}
	s.w.cost, s.w.truth = c, c
	return "", nil
}

// submit submits a request, or those from i to j as i..j; like=f:n gives them
// the first n tokens of family f.
func (s *script) submit(a args) (string, error) {
	var family, shared int
	if like, ok := a["like"]; ok {
		if _, err := fmt.Sscanf(like, "%d:%d", &family, &shared); err != nil {
			return "", err
		}
	}
	var low, high int
	if n, _ := fmt.Sscanf(a["0"], "%d..%d", &low, &high); n == 1 {
		high = low
	}
	for id := low; id <= high; id++ {
		err := s.w.submit(Request{ID: uint64(id), Prompt: a.int("prompt", 1), MaxNew: a.int("new", 1), Key: a["key"], Priority: a.int("priority", 0)}, family, shared)
		if err != nil {
			return err.Error() + "\n", nil
		}
	}
	return "", nil
}

// step runs steps and prints their plans; equal ones once.
func (s *script) step(n int, showTime bool) (string, error) {
	var out strings.Builder
	last, times := "", 0
	flush := func() {
		if times > 1 {
			last += fmt.Sprintf(" (%d times)", times)
		}
		if times > 0 {
			out.WriteString(last + "\n")
		}
	}
	for range n {
		if err := s.w.step(); err != nil {
			return "", err
		}
		line := s.w.describe()
		if showTime {
			line += fmt.Sprintf(" in %v", s.w.took.Round(time.Microsecond))
		}
		if line == last {
			times++
			continue
		}
		flush()
		last, times = line, 1
	}
	flush()
	return out.String(), nil
}

// run runs until all requests have ended.
func (s *script) run() (string, error) {
	n := 0
	for ; len(s.w.live()) > 0; n++ {
		if n == 10000 {
			return "", fmt.Errorf("no end after %d steps", n)
		}
		if err := s.w.step(); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d steps\n", n), nil
}

// describe is the last plan in a line. A span is id:rows, with +drafts.
func (w *world) describe() string {
	var parts []string
	for _, id := range w.plan.Retracted {
		parts = append(parts, fmt.Sprintf("retract %d", id))
	}
	for _, a := range w.plan.Admitted {
		p := fmt.Sprintf("admit %d", a.ID)
		if a.Cached > 0 {
			p += fmt.Sprintf(" (%d cached)", a.Cached)
		}
		parts = append(parts, p)
	}
	if len(w.plan.Spans) > 0 {
		p := "run"
		for _, s := range w.plan.Spans {
			p += fmt.Sprintf(" %d:%d", s.ID, s.Rows)
			if s.Draft > 0 {
				p += fmt.Sprintf("+%d", s.Draft)
			}
		}
		parts = append(parts, p)
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}
