package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
)

// writeFile writes a file that appears under its name when it is complete.
// What is no regular file, such as /dev/null or a pipe, is written directly.
func writeFile(path string, write func(*os.File) error) (err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return pathError(path, err)
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.partial")
	if err != nil {
		return pathError(path, err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil { // CreateTemp makes them private
		return pathError(path, err)
	}
	if err := f.Close(); err != nil {
		return pathError(path, err)
	}
	return os.Rename(f.Name(), path)
}

// floats writes little-endian float32 numbers.
type floats struct {
	*bufio.Writer
	row []byte
}

func newFloats(w io.Writer) *floats { return &floats{Writer: bufio.NewWriterSize(w, 1<<20)} }

// write writes logits − norm, subtracted in float64.
func (f *floats) write(logits []float32, norm float64) error {
	f.row = f.row[:0]
	for _, v := range logits {
		f.row = binary.LittleEndian.AppendUint32(f.row, math.Float32bits(float32(float64(v)-norm)))
	}
	_, err := f.Write(f.row)
	return err
}
