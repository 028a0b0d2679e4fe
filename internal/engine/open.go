// Package engine generates: it opens a model with its tokenizer and chat
// template, and runs the step loop that all requests share. It wires the
// other packages together and decides nothing that they decide.
package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"sync"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/exec"
	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/tensor"
	"github.com/foretoken/foretoken/internal/tokenizer"
)

// Options say how a model runs. The zero value is a good choice.
type Options struct {
	Threads      int    // workers; 0: the processors that this process may use
	MaxModelLen  int    // longest sequence in tokens; 0: the model's own limit
	DType        string // activations: auto or float32
	KVCacheDType string // auto, f32, f16 or bf16
}

// MaxThreads bounds Options.Threads: each has memory of its own, and no machine
// has more processors.
const MaxThreads = 1 << 12

// An Engine runs one model. Its methods may be called from any goroutine.
type Engine struct {
	checkpoint *checkpoint.Checkpoint
	model      model.Model
	tokenizer  *tokenizer.Tokenizer // nil: the model has none
	noVocab    error                // why tokenizer is nil
	templates  map[string]string    // sources of chat templates by name
	compiled   sync.Map             // source → *chat.Template
	params     sample.Params        // what the model's files recommend
	eog        []int32              // tokens that end generation
	maxLen     int
	stepRows   int // most rows of one step
	threads    int

	pool    *kernel.Pool
	cache   *kvcache.Pool
	runner  *exec.Runner
	sampler sample.Sampler
	loop    loop

	close    sync.Once
	closeErr error
}

// Open loads the model at path: a directory, a .gguf file or a .safetensors
// file beside its config.json. Close it when done.
func Open(path string, o Options) (*Engine, error) {
	cacheType, err := o.cacheType()
	if err != nil {
		return nil, err
	}
	if o.DType != "" && o.DType != "auto" && o.DType != "float32" {
		return nil, fmt.Errorf("dtype %q: expected auto or float32", o.DType)
	}
	if o.Threads > MaxThreads {
		return nil, fmt.Errorf("threads %d: expected at most %d", o.Threads, MaxThreads)
	}
	c, err := checkpoint.Open(path)
	if err != nil {
		return nil, err
	}
	e := &Engine{checkpoint: c, threads: o.Threads, stepRows: defaultStepRows}
	if err := e.load(o, cacheType); err != nil {
		c.Close()
		return nil, err
	}
	e.start()
	return e, nil
}

func (o Options) cacheType() (tensor.DType, error) {
	switch o.KVCacheDType {
	case "", "auto", "f32":
		return tensor.F32, nil
	case "f16":
		return tensor.F16, nil
	case "bf16":
		return tensor.BF16, nil
	}
	return 0, fmt.Errorf("kv-cache-dtype %q: expected auto, f32, f16 or bf16", o.KVCacheDType)
}

func (e *Engine) load(o Options, cacheType tensor.DType) (err error) {
	if e.model, err = model.Load(e.checkpoint); err != nil {
		return err
	}
	config := e.model.Config()
	e.maxLen = config.Context
	if o.MaxModelLen < 0 || o.MaxModelLen > config.Context {
		return fmt.Errorf("max-model-len %d: expected 1 to %d, the model's own limit", o.MaxModelLen, config.Context)
	}
	if o.MaxModelLen > 0 {
		e.maxLen = o.MaxModelLen
	}
	g, err := e.checkpoint.Generation()
	if err != nil {
		return err
	}
	if err := config.CheckEOS(g.EOS); err != nil {
		return fmt.Errorf("generation_config.json: %w", err)
	}
	e.params = recommended(&g)
	if e.tokenizer, err = OpenTokenizer(e.checkpoint); errors.Is(err, fs.ErrNotExist) {
		e.noVocab = fmt.Errorf("%s: the model has no tokenizer; give token ids", e.checkpoint.Files()[0])
	} else if err != nil {
		return err
	}
	if e.templates, err = Templates(e.checkpoint); err != nil {
		return err
	}
	if err := e.params.Validate(e.vocab()); err != nil {
		return fmt.Errorf("%s: recommended sampling: %w", e.checkpoint.Files()[0], err)
	}
	e.eog = e.endOfGeneration(g.EOS)
	if e.cache, err = kvcache.NewPool(e.model.Cache(), cacheType, e.maxLen); err != nil {
		return err
	}
	if e.threads <= 0 {
		// The runtime counts the processors of the affinity mask and the
		// cgroup's quota.
		e.threads = runtime.GOMAXPROCS(0)
	}
	e.pool = kernel.NewPool(e.threads)
	e.runner = exec.NewRunner(e.model, e.pool, e.cache)
	return nil
}

// Close ends all requests with ErrClosed and unmaps the model. Further calls
// return what the first did.
func (e *Engine) Close() error {
	e.close.Do(func() {
		e.stop()
		e.pool.Close()
		e.closeErr = e.checkpoint.Close()
	})
	return e.closeErr
}

// OpenTokenizer reads the tokenizer of a checkpoint: GGUF metadata or
// tokenizer.json. The error is fs.ErrNotExist if it has none.
func OpenTokenizer(c *checkpoint.Checkpoint) (*tokenizer.Tokenizer, error) {
	if m := c.Metadata(); m != nil {
		_, ggml := m.String("tokenizer.ggml.model")
		if _, hf := m.String("tokenizer.huggingface.json"); !ggml && !hf {
			return nil, fs.ErrNotExist
		}
		t, err := tokenizer.FromGGUF(m)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Files()[0], err)
		}
		return t, nil
	}
	data, err := c.File("tokenizer.json")
	if err != nil {
		return nil, err
	}
	config, err := c.File("tokenizer_config.json")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return tokenizer.FromJSON(data, config)
}

// endOfGeneration lists the tokens after which the model has nothing to say:
// those of generation_config.json, which is complete where it exists, or
// those that the configuration and the tokenizer name.
func (e *Engine) endOfGeneration(recommended []int32) []int32 {
	if len(recommended) > 0 {
		return recommended
	}
	ids := e.model.Config().EOS
	if e.tokenizer != nil {
		ids = append(slices.Clip(ids), e.tokenizer.EOG()...)
	}
	return ids
}

// Tokenizer returns the model's tokenizer, or why it has none.
func (e *Engine) Tokenizer() (*tokenizer.Tokenizer, error) { return e.tokenizer, e.noVocab }

// Config describes the model.
func (e *Engine) Config() *model.Config { return e.model.Config() }

// Checkpoint is the model's files. The engine closes it.
func (e *Engine) Checkpoint() *checkpoint.Checkpoint { return e.checkpoint }

// HasTemplate reports whether Prompt can render conversations.
func (e *Engine) HasTemplate() bool { return len(e.templates) > 0 }

// CacheBytesPerToken is what the cache keeps of one token.
func (e *Engine) CacheBytesPerToken() int {
	return kvcache.BytesPerToken(e.model.Cache(), e.cache.DType())
}

// MaxModelLen is the longest sequence in tokens.
func (e *Engine) MaxModelLen() int { return e.maxLen }

// Threads is the number of workers.
func (e *Engine) Threads() int { return e.threads }
