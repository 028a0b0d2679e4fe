package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// A server is a process that answers requests of the OpenAI API.
type server struct {
	url  string
	stop func() // ends the process and waits until it has
}

// startLlama starts llama.cpp's server.
func startLlama(ctx context.Context, l llama, s setting, more []string, model string, threads int, c capacity) (*server, error) {
	args := []string{
		"-m", model, "-t", strconv.Itoa(threads), "-np", strconv.Itoa(c.slots), "-c", strconv.Itoa(c.slots * c.context),
		"--offline", "--no-ui", "--cache-ram", "0", // prompts are kept in their slots, and not copied to a second cache
	}
	if !c.cache {
		args = append(args, "--no-cache-prompt")
	}
	return startServer(ctx, "/health", l.tool(s, serverTool), append(args, more...)...)
}

// startOurs starts foretoken serve.
func startOurs(ctx context.Context, binary string, more []string, model string, threads int, c capacity) (*server, error) {
	args := []string{"serve", model, "--threads", strconv.Itoa(threads), "--max-num-seqs", strconv.Itoa(c.slots)}
	return startServer(ctx, "/ready", binary, append(args, more...)...)
}

// loadTime bounds how long a server may take to load its model.
const loadTime = 5 * time.Minute

// startServer runs a command that listens on a port, and returns when it
// answers at path that it is ready.
func startServer(ctx context.Context, path, name string, args ...string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	args = append(args, "--host", "127.0.0.1", "--port", strconv.Itoa(port))
	log, err := os.CreateTemp("", "peer-serve-*.log")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	c := exec.CommandContext(ctx, name, args...)
	c.Stdout, c.Stderr = log, log
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 10 * time.Second
	exited := make(chan struct{})
	if err = c.Start(); err == nil {
		go func() {
			defer close(exited)
			err = c.Wait()
		}()
	} else {
		close(exited)
	}
	s := &server{
		url: fmt.Sprintf("http://127.0.0.1:%d", port),
		stop: func() {
			cancel()
			<-exited
			log.Close()
			os.Remove(log.Name())
		},
	}
	if !ready(ctx, exited, s.url+path) {
		cancel()
		<-exited
		said := lastLines(log)
		s.stop()
		if err == nil {
			err = errors.New("it ended, or did not answer in time")
		}
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, said)
	}
	return s, nil
}

// freePort is a port that nothing listened on a moment ago.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// ready waits until url is answered with 200, and reports whether it was.
func ready(ctx context.Context, exited <-chan struct{}, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		if r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil); err == nil {
			if answer, err := http.DefaultClient.Do(r); err == nil {
				answer.Body.Close()
				if answer.StatusCode == http.StatusOK {
					return true
				}
			}
		}
		select {
		case <-again.C:
		case <-exited:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// lastLines is the end of what a server logged.
func lastLines(log *os.File) string {
	const most = 2000
	size, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err.Error()
	}
	text := make([]byte, min(size, most))
	n, _ := log.ReadAt(text, size-int64(len(text)))
	return strings.TrimSpace(string(text[:n]))
}
