// Package engine generates: it opens a model with its tokenizer and chat
// template, and runs the step loop that all requests share. It wires the
// other packages together and decides nothing that they decide.
package engine

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/exec"
	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/tensor"
	"github.com/foretoken/foretoken/internal/tokenizer"
)

// Options say how a model runs. The zero value is a good choice.
type Options struct {
	Threads      int    // workers; 0: the processors that this process may use
	MaxModelLen  int    // longest sequence in tokens; 0: the model's own limit
	DType        string // activations: auto (what kernels are fastest with) or float32
	KVCacheDType string // auto (bf16 where the processor multiplies it, else f16; f32 with float32 activations), f32, f16, bf16 or q8_0
	Quantize     string // round matrices of floats while loading, where rows are blocks of 32: q8_0, q4_0 or q4_1; "": keep them
	// ExpertMemory bounds what packed experts of a mixture take, in bytes. With it
	// they are packed when a token first needs them, and those used longest ago make
	// room: a model may be larger than memory. 0: all are packed while loading.
	ExpertMemory int64
	// MLA is how models with latent attention attend: absorbed (""), or expanded,
	// which forms keys and values of all past tokens first. The two differ in
	// rounding, also in what they cache: prefixes are shared only where it is the
	// same.
	MLA string
	// RoundCache rounds what DeepSeek's models were trained to have rounded: index
	// queries and keys of V3.2 to fp8, of V4 to fp4, and all else that V4 keeps of
	// tokens to fp8. In memory it takes KVCacheDType all the same. Other models are
	// refused.
	RoundCache bool

	// Seed makes the seeds that Sampling draws the same ones in every run; 0: they
	// are not.
	Seed uint64
	// ChatTemplate is the source of a chat template; "": those of the model's files.
	ChatTemplate string

	// How requests share the engine.
	MaxSeqs          int           // sequences that run at once; 0: 64
	MaxQueued        int           // requests that wait; 0: no limit
	MaxBatchedTokens int           // rows of a step; 0: 128
	ChunkSize        int           // most rows of one prompt in a step; 0: MaxBatchedTokens
	MaxPartial       int           // prompts that are computed in part at a time; 0: one
	SeparatePrefill  bool          // prompts and decoding have steps of their own, turn about
	Policy           string        // order of the queue: fcfs (""), lpm, dfs-weight or priority
	Conservativeness float64       // of admission: what share of the tokens to come memory is kept for; 0: 1
	ITLTarget        time.Duration // inter-token latency to keep while prompts are computed; 0: twice that without

	// The cache, and the prefixes that requests share in it.
	KVCacheMemory  int64  // bytes, at least what a sequence of MaxModelLen takes; 0: 32768 tokens, if no sequence can be longer
	PageSize       int    // tokens that share together; 0: the least the model allows
	NoPrefixCache  bool   // share nothing
	EvictionPolicy string // of shared prefixes: lru (""), lfu or fifo
	PrefixCacheDir string // where shared prefixes are kept between runs; "": nowhere

	Speculation Speculation // how tokens are drafted ahead of the model

	WatchdogTimeout time.Duration // a step or job that takes longer is logged; 0: 300 s
	Log             *slog.Logger  // nil: nothing is logged

	// Progress is told how many bytes of the model's files have been prepared,
	// and how many there are; nil: nobody.
	Progress func(done, total int64)
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
	asked      bool                 // for the template, which is the only one
	compiled   sync.Map             // source → *chat.Template
	params     sample.Params        // what the model's files recommend
	seeds      seeds                // of requests that have none
	eog        []int32              // tokens that end generation
	maxLen     int
	stepRows   int // most rows of one step
	maxSeqs    int
	maxQueued  int
	watchdog   time.Duration
	threads    int
	why        string // that many threads

	pool     *kernel.Pool
	cache    *kvcache.Pool
	tree     *kvcache.Tree // nil: prefixes are not shared
	unshared error         // why
	saveTo   func() error  // keeps the tree for the next run; nil: it is not kept
	hashSeed maphash.Seed  // of prompts that begin alike
	log      *slog.Logger
	arena    kernel.Arena // weights
	runner   *exec.Runner
	spoiled  bool // something has panicked since the runner ran
	sampler  sample.Sampler

	drafting   drafting     // the model that drafts
	draftArena kernel.Arena // its weights
	speculator *speculator  // nil: nothing is drafted

	loop  loop
	stats Stats // the loop's
	board board

	close    sync.Once
	closeErr error
}

// Open loads the model at path: a directory, a .gguf file or a .safetensors
// file beside its config.json. Close it when done. ctx ends the loading of
// weights between two of them, and means nothing to the open engine.
func Open(ctx context.Context, path string, o Options) (*Engine, error) {
	e, err := prepare(ctx, path, o)
	if err != nil {
		return nil, err
	}
	e.ready()
	if e.speculator != nil {
		if err := e.selfCheck(ctx); err != nil {
			return nil, errors.Join(err, e.free())
		}
	}
	e.start()
	return e, nil
}

// prepare is Open but for the loop.
func prepare(ctx context.Context, path string, o Options) (*Engine, error) {
	if err := kernel.CPUError(); err != nil {
		return nil, err
	}
	if o.DType != "" && o.DType != "auto" && o.DType != "float32" {
		return nil, fmt.Errorf("dtype %q: expected auto or float32", o.DType)
	}
	quantize, err := o.quantize()
	if err != nil {
		return nil, err
	}
	if o.MLA != "" && o.MLA != "absorbed" && o.MLA != "expanded" {
		return nil, fmt.Errorf("mla %q: expected absorbed or expanded", o.MLA)
	}
	if o.Threads > MaxThreads {
		return nil, fmt.Errorf("threads %d: expected at most %d", o.Threads, MaxThreads)
	}
	e := &Engine{threads: o.Threads, why: "as asked"}
	if e.threads <= 0 {
		e.threads, e.why = kernel.DefaultThreads()
	}
	e.pool = kernel.NewPool(e.threads)
	packer := &kernel.Packer{Pool: e.pool, Arena: &e.arena, Exact: o.DType == "float32", Quantize: quantize}
	if err := e.open(ctx, path, o, packer); err != nil {
		return nil, err
	}
	return e, nil
}

// Describe opens the model at path without preparing its weights: the engine
// can be asked what the model is, and ends all requests with ErrClosed.
func Describe(path string) (*Engine, error) {
	e := &Engine{pool: kernel.NewPool(1)}
	if err := e.open(context.Background(), path, Options{}, nil); err != nil {
		return nil, err
	}
	e.ready()
	e.start()
	e.stop()
	return e, nil
}

func (e *Engine) open(ctx context.Context, path string, o Options, packer *kernel.Packer) (err error) {
	cacheType, err := o.cacheType()
	if err == nil {
		e.checkpoint, err = checkpoint.Open(path)
	}
	if err != nil {
		e.pool.Close()
		return err
	}
	packing := nn.Packing{Packer: packer, Progress: func(done, total int64) error {
		if o.Progress != nil {
			o.Progress(done, total)
		}
		return ctx.Err()
	}}
	if err := e.checkpoint.Guard(func() error { return e.load(ctx, o, packing, cacheType) }); err != nil {
		return errors.Join(err, e.free())
	}
	return nil
}

func (o Options) cacheType() (tensor.DType, error) {
	switch o.KVCacheDType {
	case "", "auto":
		switch {
		case o.DType == "float32":
			return tensor.F32, nil
		case kernel.ThisCPU().BF16:
			return tensor.BF16, nil
		}
		return tensor.F16, nil
	case "f32":
		return tensor.F32, nil
	case "f16":
		return tensor.F16, nil
	case "bf16":
		return tensor.BF16, nil
	case "q8_0":
		return tensor.Q8_0, nil
	}
	return 0, fmt.Errorf("kv-cache-dtype %q: expected auto, f32, f16, bf16 or q8_0", o.KVCacheDType)
}

func (o Options) quantize() (tensor.DType, error) {
	switch o.Quantize {
	case "":
		return tensor.Invalid, nil
	case "q8_0":
		return tensor.Q8_0, nil
	case "q4_0":
		return tensor.Q4_0, nil
	case "q4_1":
		return tensor.Q4_1, nil
	}
	return 0, fmt.Errorf("quantize %q: expected q8_0, q4_0 or q4_1", o.Quantize)
}

func (e *Engine) load(ctx context.Context, o Options, packing nn.Packing, cacheType tensor.DType) (err error) {
	// What a user can have got wrong is said before the weights are read.
	e.hashSeed, e.log = maphash.MakeSeed(), o.Log
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if err := e.sizes(o); err != nil {
		return err
	}
	if err := o.Speculation.check(); err != nil {
		return err
	}
	config, err := model.Check(e.checkpoint)
	if err != nil {
		return err
	}
	e.maxLen = config.Context
	if o.MaxModelLen < 0 || o.MaxModelLen > config.Context {
		return fmt.Errorf("max-model-len %d: expected 1 to %d, the model's own limit", o.MaxModelLen, config.Context)
	}
	if o.MaxModelLen > 0 {
		e.maxLen = o.MaxModelLen
	}
	if o.ExpertMemory < 0 {
		return fmt.Errorf("expert-memory %d: expected a positive number", o.ExpertMemory)
	}
	if o.ExpertMemory > 0 && config.MoE == nil {
		return fmt.Errorf("expert-memory: %s has no experts", config.Architecture)
	}
	if o.MLA == "expanded" && config.MLA == nil {
		return fmt.Errorf("mla expanded: %s has no latent attention", config.Architecture)
	}
	if e.model, err = model.Load(e.checkpoint, model.Options{
		Packing: packing, ExpertMemory: o.ExpertMemory, MLAExpanded: o.MLA == "expanded", RoundCache: o.RoundCache,
		MTP: o.Speculation.Method == mtp || o.Speculation.Method == auto && e.checkpoint.Metadata() == nil, // GGUF files have them in part
	}); err != nil {
		return err
	}
	g, err := e.checkpoint.Generation()
	if err != nil {
		return err
	}
	if err := config.CheckEOS(g.EOS); err != nil {
		return fmt.Errorf("generation_config.json: %w", err)
	}
	e.params, e.seeds = recommended(&g), newSeeds(o.Seed)
	if e.tokenizer, err = OpenTokenizer(e.checkpoint); errors.Is(err, fs.ErrNotExist) {
		e.noVocab = fmt.Errorf("%s: the model has no tokenizer; give token ids", e.checkpoint.Files()[0])
	} else if err != nil {
		return err
	}
	if err := e.openTemplates(o); err != nil {
		return err
	}
	if err := e.params.Validate(e.vocab()); err != nil {
		return fmt.Errorf("%s: recommended sampling: %w", e.checkpoint.Files()[0], err)
	}
	e.eog = e.endOfGeneration(g.EOS)
	if err := e.loadDraft(ctx, o, packing); err != nil {
		return err
	}
	if err := e.openCache(o, cacheType); err != nil {
		return err
	}
	e.runner = exec.NewRunner(e.model, e.pool, e.cache, 0)
	if err := e.openSpeculator(o.Speculation); err != nil {
		return err
	}
	if err := e.openScheduler(o); err != nil {
		return err
	}
	return e.restorePrefixes(o)
}

// Close ends all requests with ErrClosed and unmaps the model. Further calls
// return what the first did.
func (e *Engine) Close() error {
	e.close.Do(func() {
		e.stop()
		if e.saveTo != nil {
			e.closeErr = e.saveTo()
		}
		e.closeErr = errors.Join(e.closeErr, e.free())
	})
	return e.closeErr
}

// free gives back workers, weights and files.
func (e *Engine) free() error {
	e.pool.Close()
	err := errors.Join(e.arena.Free(), e.draftArena.Free(), e.checkpoint.Close())
	if c := e.drafting.checkpoint; c != nil {
		err = errors.Join(err, c.Close())
	}
	return err
}

// OpenTokenizer reads the tokenizer of a checkpoint: GGUF metadata or
// tokenizer.json. The error is fs.ErrNotExist if it has none.
func OpenTokenizer(c *checkpoint.Checkpoint) (*tokenizer.Tokenizer, error) {
	if m := c.Metadata(); m != nil {
		ggml, _ := m.String("tokenizer.ggml.model")
		// llama.cpp's name for a model that has token ids only.
		if _, hf := m.String("tokenizer.huggingface.json"); !hf && (ggml == "" || ggml == "no_vocab") {
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

// CacheBytesPerToken is what the cache keeps of one token.
func (e *Engine) CacheBytesPerToken() int {
	return kvcache.BytesPerToken(e.layers(), e.cache.DType())
}

// CachePageSize is the number of tokens by which the cache hands out memory.
func (e *Engine) CachePageSize() int { return e.cache.PageSize() }

// MaxModelLen is the longest sequence in tokens.
func (e *Engine) MaxModelLen() int { return e.maxLen }

// Machine says what the engine computes on: the kernels' instruction set, the
// number of workers and why it is that.
func (e *Engine) Machine() string {
	return fmt.Sprintf("%v, threads: %d (%s)", kernel.ThisCPU(), e.threads, e.why)
}
