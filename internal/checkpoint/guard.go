package checkpoint

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"unsafe"
)

// Guard runs f and turns a memory fault on one of the checkpoint's mapped
// files into an error that names the file. Such a fault means that the file
// was truncated, or that its disk or network share went away, after Open;
// without Guard it ends the process.
//
// Only the calling goroutine is guarded: whoever reads tensor data on other
// goroutines calls Guard on each. Other panics pass through.
func (c *Checkpoint) Guard(f func() error) error { return guard(c.maps, f) }

func guard(maps []*mapping, f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if err = faultOn(maps, p); err == nil {
			panic(p)
		}
	}()
	return f()
}

// faultOn describes the panic p if it is a fault at an address of a mapping.
func faultOn(maps []*mapping, p any) error {
	fault, ok := p.(interface {
		runtime.Error
		Addr() uintptr
	})
	if !ok {
		return nil
	}
	for _, m := range maps {
		start := uintptr(unsafe.Pointer(unsafe.SliceData(m.data)))
		if at := fault.Addr(); at < start || at-start >= uintptr(len(m.data)) {
			continue
		}
		if info, err := os.Stat(m.path); err == nil && info.Size() < int64(len(m.data)) {
			return fmt.Errorf("%s: truncated while in use: %d bytes, expected %d", m.path, info.Size(), len(m.data))
		}
		return fmt.Errorf("%s: became unreadable while in use", m.path)
	}
	return nil
}
