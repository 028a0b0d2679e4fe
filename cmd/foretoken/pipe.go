//go:build !windows

package main

import (
	"errors"
	"syscall"
)

// readerLeft reports whether err is a write to a pipe that nobody reads any
// more, as in "foretoken … | head". There is nothing to say about it.
func readerLeft(err error) bool { return errors.Is(err, syscall.EPIPE) }
