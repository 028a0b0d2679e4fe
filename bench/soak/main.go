// Command soak holds `foretoken serve` to the goals of docs/reliability.md: it
// starts servers on this machine's loopback interface, sends them what clients
// of sense and others send, and prints what it has measured beside each goal.
// It exits with 1 if a goal is missed.
//
//	go run ./bench/soak
//	go run ./bench/soak -only load -model smollm2:135m -requests 500 -warmup 100
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A soak is one run of the command.
type soak struct {
	binary []string // foretoken, and what starts it
	dir    string   // for models and caches
	model  string   // to serve instead of a tiny one; "": a tiny one

	requests, warmup int // of load
	streams          int // that are open at a time
	workers          int // that send load
	threads          int // of the server; 0: its default
	prompt           int // tokens of the long prompt
}

// phases are run in this order.
var phases = []struct {
	name string
	run  func(*soak, context.Context) ([]figure, error)
}{
	{"refuse", (*soak).refuse},
	{"full", (*soak).full},
	{"leave", (*soak).leave},
	{"notfinite", (*soak).notFinite},
	{"drain", (*soak).drain},
	{"descriptors", (*soak).descriptors},
	{"stall", (*soak).stall},
	{"streams", (*soak).open},
	{"load", (*soak).load},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	switch missed, err := command(ctx, os.Args[1:]); {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "soak: %v\n", err)
		os.Exit(1)
	case missed > 0:
		fmt.Fprintf(os.Stderr, "soak: goals missed: %d\n", missed)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) (missed int, err error) {
	s := new(soak)
	var names []string
	for _, p := range phases {
		names = append(names, p.name)
	}
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	binary := f.String("foretoken", "", "the command to test; by default built from this source")
	f.StringVar(&s.model, "model", "", "what to serve in the phases leave and load; by default a tiny model")
	f.IntVar(&s.requests, "requests", 10000, "requests of load that count")
	f.IntVar(&s.warmup, "warmup", 2000, "requests before them")
	f.IntVar(&s.streams, "streams", 1000, "streams that are open at a time")
	f.IntVar(&s.workers, "workers", 16, "clients that send load")
	f.IntVar(&s.threads, "t", 0, "threads of the server; by default its own choice")
	f.IntVar(&s.prompt, "prompt", 32768, "tokens of the prompt that others have to bear")
	only := f.String("only", strings.Join(names, ","), "phases, between commas")
	limit := f.Duration("timeout", 10*time.Minute, "of the whole run")
	if err := f.Parse(args); err != nil {
		return 0, err
	}
	asked := strings.Split(*only, ",")
	for _, name := range asked {
		if !slices.Contains(names, name) {
			return 0, fmt.Errorf("-only %q: expected phases of %s", name, strings.Join(names, ","))
		}
	}
	if f.NArg() > 0 || s.requests < 1 || s.warmup < 0 || s.streams < 1 || s.workers < 1 || s.prompt < 1 {
		return 0, errors.New("expected flags only, and numbers above 0")
	}
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	if s.dir, err = os.MkdirTemp("", "soak"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(s.dir)
	if *binary == "" {
		*binary = filepath.Join(s.dir, "foretoken")
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", *binary, "./cmd/foretoken")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return 0, fmt.Errorf("building foretoken, from the root of the repository: %w", err)
		}
	}
	s.binary = []string{*binary}
	fmt.Print("| goal | limit | measured |\n|---|---|---|\n")
	for _, p := range phases {
		if !slices.Contains(asked, p.name) {
			continue
		}
		begin := time.Now()
		figures, err := p.run(s, ctx)
		for _, f := range figures {
			fmt.Println(f)
			if f.missed {
				missed++
			}
		}
		if err != nil {
			return missed, fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Fprintf(os.Stderr, "soak: %s took %v\n", p.name, time.Since(begin).Round(100*time.Millisecond))
	}
	return missed, nil
}
