package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A process is a server of its own, for one phase.
type process struct {
	cmd    *exec.Cmd
	client *http.Client
	url    string
	ended  chan struct{} // closed once it has

	mu   sync.Mutex
	last []string // lines of the log that are no line of a request
}

// serve starts a server and waits until it is ready.
func (s *soak) serve(ctx context.Context, model string, args ...string) (*process, error) {
	args = append(append(slices.Clone(s.binary[1:]), "serve", model, "--port", "0", "--log-format", "json", "--served-model-name", "soak"), args...)
	if s.threads > 0 {
		args = append(args, "--threads", strconv.Itoa(s.threads))
	}
	p := &process{
		cmd: exec.CommandContext(ctx, s.binary[0], args...), ended: make(chan struct{}),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * s.workers}},
	}
	stderr, err := p.cmd.StderrPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	address := make(chan string, 1)
	go p.log(stderr, address)
	select {
	case p.url = <-address:
	case <-p.ended:
		return nil, p.failed("it ended before it listened")
	}
	for {
		if status, _, err := p.get(ctx, "/ready"); err == nil && status == http.StatusOK {
			return p, nil
		}
		select {
		case <-p.ended:
			return nil, p.failed("it ended before it was ready")
		case <-ctx.Done():
			return nil, errors.Join(p.stop(), ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// log reads what the server writes until it ends.
func (p *process) log(r io.Reader, address chan<- string) {
	defer close(p.ended)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct{ Msg, Address string }
		_ = json.Unmarshal(lines.Bytes(), &line) // what a panic writes is no JSON
		switch {
		case line.Msg == "request":
			continue
		case line.Msg == "listening":
			address <- line.Address
		}
		p.mu.Lock()
		p.last = append(p.last[max(0, len(p.last)-30):], lines.Text())
		p.mu.Unlock()
	}
	_ = p.cmd.Wait() // its state says how it ended
}

func (p *process) failed(why string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Errorf("the server: %s (%v):\n%s", why, p.cmd.ProcessState, strings.Join(p.last, "\n"))
}

// stop ends the server as an operator does, and says if that is not how it ended.
func (p *process) stop() error {
	p.client.CloseIdleConnections()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return p.failed(err.Error())
	}
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
		return p.failed("it did not end within 30 s of SIGTERM")
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return p.failed(fmt.Sprintf("exit code %d after SIGTERM", code))
	}
	return nil
}

// memory is what the process holds that is no file's, in bytes: RssAnon and
// VmSwap of Linux.
func (p *process) memory() (bytes float64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if name, value, _ := strings.Cut(line, ":"); name == "RssAnon" || name == "VmSwap" {
			kB, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
			if err != nil {
				return 0, err
			}
			bytes += kB * 1024
		}
	}
	return bytes, nil
}

// metrics are those without labels but the model's.
func (p *process) metrics(ctx context.Context) (map[string]float64, error) {
	_, text, err := p.get(ctx, "/metrics")
	values := map[string]float64{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, _, _ = strings.Cut(name, "{")
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			values[name] = v
		}
	}
	return values, err
}

// settled waits until nothing runs and there are no more than so many
// goroutines, and says how long that took.
func (p *process) settled(ctx context.Context, goroutines float64) (took time.Duration, m map[string]float64, err error) {
	p.client.CloseIdleConnections()
	for begin := time.Now(); ; {
		if m, err = p.metrics(ctx); err != nil {
			return 0, nil, err
		}
		took = time.Since(begin)
		idle := m["vllm:num_requests_running"] == 0 && m["vllm:num_requests_waiting"] == 0
		if idle && m["go_goroutines"] <= goroutines || took > 20*time.Second {
			return took, m, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
}
