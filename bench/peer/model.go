package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

func modelCommand(ctx context.Context, args []string) error {
	f, dir := flags("model")
	name := f.String("shape", "", shapeNames())
	layers := f.Int("layers", 0, "number of layers; by default all, or of large shapes as many as make a Q8_0 of six gigabytes")
	types := f.String("type", "bf16", "types of llama-quantize, such as q8_0,q4_k_m; with -pure, every matrix is of that type")
	out := f.String("o", "", "where models are written; by default models in -dir")
	if err := parse(f, args); err != nil {
		return err
	}
	l := llama{*dir}
	if *out == "" {
		*out = l.models()
	}
	s, err := findShape(*name)
	if err != nil {
		return err
	}
	if *layers == 0 {
		*layers = cmp.Or(s.cut, s.layers)
	}
	if *layers < 0 || *layers > s.layers {
		return fmt.Errorf("-layers %d: expected 1 to %d", *layers, s.layers)
	}
	base := *name
	if *layers < s.layers {
		s.layers = *layers
		base += fmt.Sprintf("-%dl", *layers)
	}
	if err := os.MkdirAll(*out, 0o755); err != nil {
		return err
	}
	bf16 := filepath.Join(*out, base+"-bf16.gguf")
	if err := unlessThere(bf16, func() error { return writeRandom(bf16, base, s) }); err != nil {
		return err
	}
	for _, t := range split(*types) {
		path := filepath.Join(*out, base+"-"+t+".gguf")
		if err := unlessThere(path, func() error { return l.convert(ctx, bf16, path, t) }); err != nil {
			return err
		}
		fmt.Println(path)
	}
	return nil
}

// unlessThere writes a file that is not there yet. Models have no other
// content than what their name says.
func unlessThere(path string, write func() error) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	fmt.Fprintf(os.Stderr, "writing %s\n", path)
	return write()
}

// convert quantises with llama.cpp's own tool, so that the peer has the types
// it is published with: in most, the head is finer than the rest. A type
// ending in -pure has none of that.
func (l llama) convert(ctx context.Context, from, to, kind string) error {
	if err := l.built(); err != nil {
		return err
	}
	partial := to + ".partial"
	defer os.Remove(partial)
	kind, pure := strings.CutSuffix(kind, "-pure")
	var args []string
	if pure {
		args = append(args, "--pure")
	}
	if err := do(ctx, l.dir, l.tool(settings[0], quantizeTool), append(args, from, partial, kind, fmt.Sprint(runtime.NumCPU()))...); err != nil {
		return err
	}
	return os.Rename(partial, to)
}
