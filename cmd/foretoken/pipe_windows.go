package main

import (
	"errors"
	"syscall"
)

// readerLeft reports whether err is a write to a pipe that nobody reads any
// more. There is nothing to say about it.
func readerLeft(err error) bool {
	const noData syscall.Errno = 232 // ERROR_NO_DATA: the pipe is being closed
	return errors.Is(err, syscall.ERROR_BROKEN_PIPE) || errors.Is(err, noData)
}
