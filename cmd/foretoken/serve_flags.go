package main

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/server"
)

// serveFlags say where and as what a model is served.
type serveFlags struct {
	Model           string       `placeholder:"MODEL" aliases:"model-path" help:"Model to serve, if there is no argument MODEL."`
	ServedModelName []string     `placeholder:"NAME" help:"Names that requests may call the model by; answers have the first. By default the name of MODEL, of a path its last part without .gguf."`
	Host            string       `placeholder:"HOST" default:"127.0.0.1" help:"Address to listen at, by default 127.0.0.1. 0.0.0.0: all."`
	Port            int          `placeholder:"PORT" default:"8000" help:"Port, by default 8000. 0: any that is free."`
	APIKey          []string     `name:"api-key" placeholder:"KEY" sep:"none" help:"Serve only who has the key, as Authorization: Bearer KEY. Can be repeated."`
	APIKeyFile      string       `name:"api-key-file" placeholder:"FILE" help:"Such keys, one a line."`
	AllowedOrigins  []string     `placeholder:"ORIGIN" help:"Web pages that may use the server, such as https://chat.example.org; *: all."`
	SSLKeyfile      string       `name:"ssl-keyfile" placeholder:"FILE" help:"Serve HTTPS, with this key in PEM."`
	SSLCertfile     string       `name:"ssl-certfile" placeholder:"FILE" help:"Its certificate, and those it stands on, in PEM."`
	ChatTemplate    templateFile `group:"engine" placeholder:"FILE" help:"A .jinja file to use instead of the model's own chat template."`
	ToolCallParser  string       `placeholder:"NAME" help:"How the model marks calls of tools, such as hermes; none: they are text. By default as its template tells."`
	ReasoningParser string       `placeholder:"NAME" help:"How the model marks reasoning, such as qwen3; none: it is text. By default as its template tells."`
	Seed            uint64       `placeholder:"N" aliases:"random-seed" env:"FORETOKEN_SERVE_SEED" help:"Of the seeds that requests get which have none: the same requests in the same order have the same answers. 0: drawn anew."`
	LogLevel        slog.Level   `placeholder:"LEVEL" default:"info" help:"debug, info, warn or error, by default info."`
	LogFormat       string       `placeholder:"FORM" default:"text" enum:"text,json" help:"text, the default, or json."`
	OTLP            string       `name:"otlp-traces-endpoint" placeholder:"URL" help:"Send a span for each request to this OpenTelemetry collector, such as http://localhost:4318/v1/traces."`
	Config          string       `placeholder:"FILE" help:"Flags as keys of a YAML file."`
}

// Validate is called by kong.
func (f serveFlags) Validate() error {
	if f.Port < 0 || f.Port > 1<<16-1 {
		return fmt.Errorf("--port %d: expected 1 to 65535, or 0 for any that is free", f.Port)
	}
	return nil
}

// keys are those of the command line and of the file.
func (f *serveFlags) keys() ([]string, error) {
	keys := f.APIKey
	if f.APIKeyFile != "" {
		data, err := readInput(f.APIKeyFile)
		if err != nil {
			return nil, err
		}
		before := len(keys)
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimSpace(line); line != "" {
				keys = append(keys, line)
			}
		}
		if len(keys) == before {
			return nil, fmt.Errorf("%s: no key in it", f.APIKeyFile)
		}
	}
	for _, key := range keys {
		if strings.TrimSpace(key) == "" {
			return nil, usagef("--api-key is empty")
		}
	}
	return keys, nil
}

// templateFile is the path of a chat template; "" is none.
type templateFile string

// read returns the template's source.
func (f templateFile) read() (string, error) {
	if f == "" {
		return "", nil
	}
	data, err := readInput(string(f))
	if err == nil && len(data) == 0 {
		err = fmt.Errorf("%s: the chat template is empty", string(f))
	}
	return string(data), err
}

// A countFlag is a number on the command line of which there may be up to maxCount;
// 0 is the default.
type countFlag struct {
	name string
	n    int
}

const maxCount = 1 << 30

// checkCounts names the first that cannot be.
func checkCounts(counts ...countFlag) error {
	for _, c := range counts {
		if c.n < 0 || c.n > maxCount {
			return fmt.Errorf("--%s %d: expected 1 to %d, or 0 for the default", c.name, c.n, maxCount)
		}
	}
	return nil
}

// limitFlags bound what a client can ask for.
type limitFlags struct {
	MaxRequestBytes       byteCount     `group:"limits" placeholder:"SIZE" help:"Of a request, by default 16MiB."`
	MaxPromptTokens       int           `group:"limits" placeholder:"N" help:"Of a prompt, by default what the model takes."`
	MaxOutputTokens       int           `group:"limits" placeholder:"N" help:"Of a request's answers together, by default what the model's context leaves."`
	MaxConcurrentRequests int           `group:"limits" placeholder:"N" help:"Requests that are served at a time, waiting ones included; more are refused with 429. By default 1024."`
	FirstTokenTimeout     time.Duration `group:"limits" placeholder:"TIME" help:"Until a request has its first token, such as 30s. By default there is no limit."`
	RequestTimeout        time.Duration `group:"limits" placeholder:"TIME" help:"Until a request has its last token. By default there is no limit."`
	StallTimeout          time.Duration `group:"limits" placeholder:"TIME" help:"Until a client is let go that sends nothing of its request, or takes nothing of its answer, by default 30s."`
	PingInterval          time.Duration `group:"limits" placeholder:"TIME" help:"Silence in a stream until there is a comment in it, which keeps the connection open, by default 10s."`
	WatchdogTimeout       time.Duration `group:"limits" placeholder:"TIME" help:"Log what the engine does if it does the same thing for so long, by default 300s."`
}

// Validate is called by kong.
func (f limitFlags) Validate() error {
	if err := checkCounts(
		countFlag{"max-prompt-tokens", f.MaxPromptTokens}, countFlag{"max-output-tokens", f.MaxOutputTokens}, countFlag{"max-concurrent-requests", f.MaxConcurrentRequests},
	); err != nil {
		return err
	}
	for _, l := range []struct {
		name string
		d    time.Duration
	}{
		{"first-token-timeout", f.FirstTokenTimeout},
		{"request-timeout", f.RequestTimeout},
		{"stall-timeout", f.StallTimeout},
		{"ping-interval", f.PingInterval},
		{"watchdog-timeout", f.WatchdogTimeout},
	} {
		if l.d < 0 {
			return fmt.Errorf("--%s %v: expected a time above 0, or 0 for the default", l.name, l.d)
		}
	}
	return nil
}

func (f limitFlags) limits() server.Limits {
	return server.Limits{
		Body: f.MaxRequestBytes.bytes, Prompt: f.MaxPromptTokens, Output: f.MaxOutputTokens, Concurrent: f.MaxConcurrentRequests,
		FirstToken: f.FirstTokenTimeout, Total: f.RequestTimeout, Ping: f.PingInterval, Stall: f.StallTimeout,
	}
}

// scheduleFlags say how requests share the engine.
type scheduleFlags struct {
	MaxNumSeqs               int     `group:"schedule" placeholder:"N" aliases:"max-running-requests" help:"Sequences that run at once, by default 64."`
	MaxQueuedRequests        int     `group:"schedule" placeholder:"N" help:"Requests that wait; more are refused with 429. Each prompt of a request counts. By default there is no limit but --max-concurrent-requests."`
	MaxNumBatchedTokens      int     `group:"schedule" placeholder:"N" aliases:"max-prefill-tokens" help:"Tokens that are computed in a step, by default 128, or --max-num-seqs if that is more."`
	ChunkedPrefillSize       int     `group:"schedule" placeholder:"N" help:"Most of one prompt in a step, by default all."`
	MaxPartialPrompts        int     `group:"schedule" placeholder:"N" aliases:"max-num-partial-prefills" help:"Prompts that are computed in part at a time, by default 1."`
	EnableMixedChunk         bool    `group:"schedule" default:"true" negatable:"" help:"Compute prompts and the next tokens of answers in the same steps, as by default; else in turns."`
	SchedulePolicy           string  `group:"schedule" placeholder:"NAME" aliases:"scheduling-policy" default:"fcfs" enum:"fcfs,lpm,dfs-weight,priority" help:"Which request is next: fcfs, the first that came and the default; lpm, that with the longest cached prefix; dfs-weight, the busiest branch of the prefix cache; priority."`
	ScheduleConservativeness float64 `group:"schedule" placeholder:"X" default:"1" help:"Below 1 more requests run at the risk that some are computed again, above 1 fewer."`
	ITLTargetMS              float64 `name:"itl-target-ms" group:"schedule" placeholder:"MS" help:"Time between two tokens of an answer to keep while prompts are computed, by default twice what it is without."`
}

// Validate is called by kong.
func (f scheduleFlags) Validate() error {
	if err := checkCounts(
		countFlag{"max-num-seqs", f.MaxNumSeqs}, countFlag{"max-queued-requests", f.MaxQueuedRequests}, countFlag{"max-num-batched-tokens", f.MaxNumBatchedTokens},
		countFlag{"chunked-prefill-size", f.ChunkedPrefillSize}, countFlag{"max-partial-prompts", f.MaxPartialPrompts},
	); err != nil {
		return err
	}
	switch step := f.MaxNumBatchedTokens; {
	case step > 0 && f.ChunkedPrefillSize > step:
		return fmt.Errorf("--chunked-prefill-size %d: expected at most the %d of --max-num-batched-tokens", f.ChunkedPrefillSize, step)
	case !(f.ScheduleConservativeness > 0 && f.ScheduleConservativeness <= 100):
		return fmt.Errorf("--schedule-conservativeness %v: expected above 0 and at most 100", f.ScheduleConservativeness)
	case !(f.ITLTargetMS >= 0 && f.ITLTargetMS <= 3600e3):
		return fmt.Errorf("--itl-target-ms %v: expected 0 to 3600000", f.ITLTargetMS)
	}
	return nil
}

func (f scheduleFlags) set(o *engine.Options) {
	o.MaxSeqs, o.MaxQueued, o.MaxBatchedTokens, o.ChunkSize, o.MaxPartial = f.MaxNumSeqs, f.MaxQueuedRequests, f.MaxNumBatchedTokens, f.ChunkedPrefillSize, f.MaxPartialPrompts
	o.SeparatePrefill = !f.EnableMixedChunk
	o.Policy, o.Conservativeness = f.SchedulePolicy, f.ScheduleConservativeness
	o.ITLTarget = time.Duration(f.ITLTargetMS * float64(time.Millisecond))
}

// cacheFlags are about the cache, and the prefixes that requests share in it.
type cacheFlags struct {
	KVCacheMemory       byteCount `name:"kv-cache-memory" group:"cache" aliases:"kv-cache-memory-bytes" placeholder:"SIZE" help:"Of the cache, such as 8GiB. By default it has room for four sequences of --max-model-len, up to 32768 tokens, and for one in any case."`
	PageSize            int       `group:"cache" placeholder:"N" aliases:"block-size" help:"Tokens that share together, by default the fewest that the model allows."`
	EnablePrefixCaching bool      `group:"cache" default:"true" negatable:"" help:"Compute beginnings that prompts have in common once, as by default."`
	RadixEvictionPolicy string    `group:"cache" placeholder:"NAME" default:"lru" enum:"lru,lfu,fifo" help:"Which prefix makes room: lru, unused for the longest time and the default; lfu, used least often; fifo, the oldest."`
	PrefixCacheDir      string    `group:"cache" placeholder:"DIR" help:"Where prefixes are kept between runs, by default nowhere: for each model, and each way to run it, in a file, of which the eight that were saved last stay."`
}

// Validate is called by kong.
func (f cacheFlags) Validate() error { return checkCounts(countFlag{"page-size", f.PageSize}) }

func (f cacheFlags) set(o *engine.Options) {
	o.KVCacheMemory, o.PageSize, o.NoPrefixCache = f.KVCacheMemory.bytes, f.PageSize, !f.EnablePrefixCaching
	o.EvictionPolicy, o.PrefixCacheDir = f.RadixEvictionPolicy, f.PrefixCacheDir
}
