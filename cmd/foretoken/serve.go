package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/foretoken/foretoken/internal/checkpoint/pull"
	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/server"
)

type serveCmd struct {
	Name string `arg:"" optional:"" name:"MODEL" help:"Model to serve; without it, and without --model, ${default_model}."`

	serveFlags
	limitFlags
	scheduleFlags
	cacheFlags
	speculationFlags
	engineFlags
	dtypeFlags
}

// Help is shown by --help.
func (serveCmd) Help() string {
	return `Serves a model over the OpenAI API. A model that can be pulled by its name is pulled on first use. The server
answers /health as soon as it lives, and /ready once it has the model.

The first SIGTERM or Ctrl-C lets requests end that run, and takes no new ones; the second ends them.

Flags have the names they have in vLLM, and some of SGLang's names too. --config has them as keys of a YAML file:
the command line wins, then the environment, then the file.

    foretoken serve
    foretoken serve ./model --host 0.0.0.0 --api-key-file keys.txt
    foretoken serve smollm2:135m --max-num-seqs 32 --kv-cache-memory 8GiB
    foretoken serve ./model --speculative-config '{"method": "auto"}'
    curl http://127.0.0.1:8000/v1/chat/completions -H 'Content-Type: application/json' \
        -d '{"messages": [{"role": "user", "content": "Why is the sky blue?"}]}'`
}

// BeforeResolve is called by kong, once the command line is read.
func (c *serveCmd) BeforeResolve(k *kongContext) error { return resolveConfig(k) }

// Validate is called by kong.
func (c *serveCmd) Validate() error {
	return cmp.Or(c.serveFlags.Validate(), c.limitFlags.Validate(), c.scheduleFlags.Validate(), c.cacheFlags.Validate(),
		c.speculationFlags.Validate(), c.engineFlags.Validate())
}

// Run serves until it is told to end.
func (c *serveCmd) Run(ctx context.Context) error {
	log := c.logger()
	defer endAtSecondSignal()()
	model := cmp.Or(c.Name, c.Model, pull.DefaultModel)
	o, err := c.server(log, model)
	if err != nil {
		return err
	}
	how, err := c.engine(log)
	if err != nil {
		return err
	}
	if _, missing, err := find(model); err != nil && !missing {
		return err
	}
	if err := checkDraft(how.Speculation); err != nil {
		return err
	}
	if c.OTLP != "" {
		tracer, stop, err := server.NewTracer(ctx, c.OTLP, version(), log)
		if err != nil {
			return usagef("--otlp-traces-endpoint: %w", err)
		}
		o.Tracer = tracer
		defer func() {
			end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			if err := stop(end); err != nil {
				log.Warn("traces are lost", "error", err)
			}
		}()
	}
	// First of all a port: that it is taken is better known before a model is
	// loaded, and who asks is told that it is being loaded.
	l, err := net.Listen("tcp", net.JoinHostPort(c.Host, strconv.Itoa(c.Port)))
	if err != nil {
		return err
	}
	log.Info("listening", "address", c.address(l.Addr()), "version", version())
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() && len(o.APIKeys) == 0 {
		log.Warn("anybody who reaches this address is served: there is no --api-key", "address", l.Addr().String())
	}

	s := server.New(o)
	ctx, stop := context.WithCancelCause(ctx)
	var e *engine.Engine
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		var err error
		if e, err = c.load(ctx, log, model, how); err != nil {
			stop(err)
			return
		}
		// One more than compute, so that who is refused does not wait for a step:
		// the scheduler of goroutines takes a worker off its processor after 10 ms,
		// the system's at once.
		runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), e.Threads()+1))
		s.Attach(e)
		c.report(log, e, s)
	}()
	err = s.Serve(ctx, l)
	stop(nil)
	<-loaded
	if e != nil {
		err = errors.Join(err, e.Close())
	}
	// ctx ended because a signal said so, or because there is no model.
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	if err == nil {
		log.Info("ended")
	}
	return err
}

// endAtSecondSignal ends the process at the second SIGTERM or Ctrl-C: the first
// ends ctx, and drains. It counts signals itself, so that none is lost that
// comes while another is being dealt with.
func endAtSecondSignal() (stop func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for range 2 {
			if _, open := <-signals; !open {
				return
			}
		}
		os.Exit(exitInterrupted)
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}

// load fetches and opens the model.
func (c *serveCmd) load(ctx context.Context, log *slog.Logger, model string, o engine.Options) (*engine.Engine, error) {
	path, err := fetch(ctx, model)
	if err != nil {
		return nil, err
	}
	if err := fetchDraft(ctx, &o.Speculation); err != nil {
		return nil, err
	}
	log.Info("loading", "model", model, "path", path)
	return c.open(ctx, path, o)
}

// engine is how the model runs.
func (c *serveCmd) engine(log *slog.Logger) (engine.Options, error) {
	o := c.engineFlags.options(c.dtypeFlags)
	c.scheduleFlags.set(&o)
	c.cacheFlags.set(&o)
	o.WatchdogTimeout, o.Seed, o.Log = c.WatchdogTimeout, c.Seed, log
	var err error
	if o.Speculation, err = c.speculation(); err != nil {
		return o, usageError{err}
	}
	o.ChatTemplate, err = c.ChatTemplate.read()
	return o, err
}

// server is how it is served.
func (c *serveCmd) server(log *slog.Logger, model string) (server.Options, error) {
	o := server.Options{
		Models: c.ServedModelName, Origins: c.AllowedOrigins, Limits: c.limitFlags.limits(), Version: version(), Log: log,
	}
	o.Format.Calls, o.Format.Reasoning = c.ToolCallParser, c.ReasoningParser
	if len(o.Models) == 0 {
		o.Models = []string{servedName(model)}
	}
	if err := o.CheckFormat(); err != nil {
		return o, usageError{err}
	}
	var err error
	if o.APIKeys, err = c.keys(); err != nil {
		return o, err
	}
	switch {
	case (c.SSLKeyfile == "") != (c.SSLCertfile == ""):
		return o, usagef("--ssl-keyfile and --ssl-certfile go together")
	case c.SSLKeyfile != "":
		pair, err := tls.LoadX509KeyPair(c.SSLCertfile, c.SSLKeyfile)
		if err != nil {
			return o, fmt.Errorf("--ssl-certfile and --ssl-keyfile: %w", err)
		}
		o.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	return o, nil
}

// servedName is what clients call a model that has been given no other name.
// They learn no path of this machine, and no address, which may be a signed one.
func servedName(model string) string {
	if r, err := pull.ParseRef(model); err == nil && r.Kind == pull.KindURL {
		if u, err := url.Parse(r.URL); err == nil {
			return strings.TrimSuffix(path.Base(u.Path), ".gguf")
		}
	}
	if _, err := os.Stat(model); err != nil && !isPath(model) {
		return model
	}
	if full, err := filepath.Abs(model); err == nil { // . has a name too
		model = full
	}
	return strings.TrimSuffix(filepath.Base(model), ".gguf")
}

// address is what clients use as their base URL, without /v1.
func (c *serveCmd) address(a net.Addr) string {
	if c.SSLKeyfile != "" {
		return "https://" + a.String()
	}
	return "http://" + a.String()
}

// report says what was chosen, by the names that SGLang has for it.
func (c *serveCmd) report(log *slog.Logger, e *engine.Engine, s *server.Server) {
	prefixes := "shared"
	if err := e.PrefixCache(); err != nil {
		prefixes = "not shared: " + err.Error()
	}
	log.Info("ready", "model", s.Models, "machine", e.Machine(),
		"max_total_num_tokens", e.Stats().CacheTokens, "context_len", e.MaxModelLen(),
		"max_running_requests", e.MaxSeqs(), "max_prefill_tokens", e.StepRows(), "chunked_prefill_size", cmp.Or(c.ChunkedPrefillSize, e.StepRows()),
		"prefixes", prefixes, "speculation", methods(e), "tool_call_parser", cmp.Or(s.Format.Calls, "none"), "reasoning_parser", cmp.Or(s.Format.Reasoning, "none"))
}

// methods are what drafts for an engine.
func methods(e *engine.Engine) string {
	list := slices.Sorted(maps.Keys(e.Stats().Speculation))
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// logger writes to stderr.
func (c *serveCmd) logger() *slog.Logger {
	o := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, o))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, o))
}
