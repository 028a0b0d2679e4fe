package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/foretoken/foretoken/internal/checkpoint/pull"
)

// maxInput bounds what is read of a file or stdin, which may have no end.
const maxInput = 512 << 20

// readInput reads a file that the user names: /dev/stdin and pipes too.
func readInput(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, pathError(path, err)
	}
	defer f.Close()
	return readBounded(f, path, maxInput)
}

func readBounded(r io.Reader, name string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("more than the %s that are read", pull.ByteSize(limit))
	}
	if err != nil {
		return nil, pathError(name, err)
	}
	return data, nil
}

// readStdin reads all of stdin. Reading cannot be interrupted, waiting can.
func readStdin(ctx context.Context) (string, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := readBounded(os.Stdin, "stdin", maxInput)
		done <- result{data, err}
	}()
	select {
	case r := <-done:
		return string(r.data), r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// readJSON reads a file that the user wrote. expected says what it is.
func readJSON(path, expected string, v any) error {
	data, err := readInput(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w: expected %s", path, jsonError(err), expected)
	}
	return nil
}

// jsonError says what was found, where encoding/json would name a Go type.
func jsonError(err error) error {
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("byte %d: a JSON %.40s", mismatch.Offset, mismatch.Value)
	}
	return err
}
