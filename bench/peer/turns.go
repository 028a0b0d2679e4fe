package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// A contest is what the commands have in common that compare: what is compared,
// how often, and where figures go.
type contest struct {
	llama
	root, models, threads, binary, more, out *string
	rounds                                   *int
	counts                                   []int // of threads
}

// newContest defines the flags of a contest, which the command adds its own to.
func newContest(name, models, threads string, rounds int, more string) (*flag.FlagSet, *contest) {
	f, root := flags(name)
	return f, &contest{
		root:    root,
		models:  f.String("model", "", models),
		threads: f.String("t", threads, "numbers of threads"),
		rounds:  f.Int("rounds", rounds, "rounds, of which figures are medians"),
		binary:  f.String("foretoken", "", "the command to measure; by default built from this source"),
		more:    f.String("args", "", "more flags of foretoken "+more+", between commas"),
		out:     f.String("json", "", "where all figures are written"),
	}
}

// open reads the flags, and sees to it that there is something to compare with.
func (c *contest) open(f *flag.FlagSet, args []string) (err error) {
	if err := parse(f, args); err != nil {
		return err
	}
	c.llama = llama{*c.root}
	if err := c.built(); err != nil {
		return err
	}
	c.counts, err = numbers("t", *c.threads, 1)
	return err
}

// A pairing is the comparison of one model.
type pairing struct {
	round func(threads, number int) error
	head  func() string // what is said once, of all models
	write func(io.Writer)
	save  func(path string) error // of this and those before
}

// hold builds our command, if none is given, and has every model compared in all
// rounds, with each number of threads. begin gets the path of a model.
func (c *contest) hold(ctx context.Context, begin func(model string) (pairing, error)) error {
	if *c.binary == "" {
		*c.binary = filepath.Join(c.dir, "foretoken")
		if err := buildForetoken(ctx, *c.binary); err != nil {
			return err
		}
	}
	for i, name := range split(*c.models) {
		p, err := begin(c.find(name))
		if err != nil {
			return err
		}
		for round := range *c.rounds {
			for _, threads := range c.counts {
				fmt.Fprintf(os.Stderr, "%s: round %d of %d, threads: %d\n", name, round+1, *c.rounds, threads)
				if err := p.round(threads, round); err != nil {
					return err
				}
			}
		}
		if i == 0 {
			fmt.Printf("%s\nMedians of %d rounds.\n", p.head(), *c.rounds)
		}
		fmt.Println()
		p.write(os.Stdout)
		if *c.out == "" {
			continue
		}
		if err := p.save(*c.out); err != nil {
			return err
		}
	}
	return nil
}
