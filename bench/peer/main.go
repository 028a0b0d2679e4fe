// Command peer compares Foretoken with llama.cpp on the same file and the same
// machine: it builds llama.cpp from source for this machine, makes models of
// published shapes with random weights, and lets both engines take turns.
//
//	go run ./bench/peer build
//	go run ./bench/peer model -shape qwen3-0.6b -type q8_0,q4_0
//	go run ./bench/peer run -model qwen3-0.6b-q8_0,qwen3-0.6b-q4_0
//	go run ./bench/peer serve -model qwen3-0.6b-q8_0
//	go run ./bench/peer spec -model model.gguf
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
	"strconv"
	"strings"
)

const usage = `usage: peer build [-dir DIR] [-sdist FILE]
       peer model -shape NAME [-layers N] [-type LIST] [-o DIR] [-dir DIR]
       peer run -model LIST [-t LIST] [-rounds N] [-prefill LIST] [-decode N] [-depth LIST] [-verify LIST]
                [-foretoken FILE] [-args LIST] [-json FILE] [-dir DIR]
       peer serve -model LIST [-t LIST] [-rounds N] [-streams N] [-requests N] [-input N] [-output N]
                [-interfere LIST] [-beside N] [-beside-output N] [-prefix N] [-builds LIST]
                [-foretoken FILE] [-args LIST] [-json FILE] [-dir DIR]
       peer spec -model LIST [-draft FILE] [-t LIST] [-rounds N] [-prompts LIST] [-streams LIST] [-requests N] [-output N]
                [-methods LIST] [-types LIST] [-builds LIST] [-foretoken FILE] [-args LIST] [-json FILE] [-dir DIR]

peer COMMAND -h says more. README.md beside the source says how to read the figures.`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := command(ctx, os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "peer: %v\n", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	switch args[0] {
	case "build":
		return buildCommand(ctx, args[1:])
	case "model":
		return modelCommand(ctx, args[1:])
	case "run":
		return runCommand(ctx, args[1:])
	case "serve":
		return serveCommand(ctx, args[1:])
	case "spec":
		return specCommand(ctx, args[1:])
	}
	return fmt.Errorf("command %q\n%s", args[0], usage)
}

// flags makes the flags of a command; all have -dir.
func flags(name string) (*flag.FlagSet, *string) {
	f := flag.NewFlagSet("peer "+name, flag.ContinueOnError)
	cache, err := os.UserCacheDir() // $XDG_CACHE_HOME on Linux
	if err != nil {
		cache = os.TempDir()
	}
	return f, f.String("dir", filepath.Join(cache, "foretoken", "peer"), "where llama.cpp and models are kept")
}

// parse refuses arguments that are no flags.
func parse(f *flag.FlagSet, args []string) error {
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("argument %q: expected flags alone", f.Arg(0))
	}
	return nil
}

// numbers reads a list such as 1,2,4.
func numbers(flag, list string, least int) ([]int, error) {
	var out []int
	for _, field := range split(list) {
		n, err := strconv.Atoi(field)
		if err != nil || n < least {
			return nil, fmt.Errorf("-%s %s: expected numbers of at least %d between commas", flag, list, least)
		}
		out = append(out, n)
	}
	return out, nil
}

// split cuts a list at commas. The empty list has no fields.
func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// join is the inverse of numbers.
func join(list []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
}

// do runs a command in dir, its output going to stderr.
func do(ctx context.Context, dir, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Stdout, c.Stderr = dir, os.Stderr, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}
