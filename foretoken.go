// Package foretoken runs language models in a Go program: no cgo, no separate
// process.
//
//	path, err := foretoken.Pull(ctx, foretoken.DefaultModel, nil)
//	if err != nil {
//		return err
//	}
//	engine, err := foretoken.Open(path, foretoken.Options{})
//	if err != nil {
//		return err
//	}
//	defer engine.Close()
//	c := foretoken.Conversation{Messages: []foretoken.Message{foretoken.User("Hello!")}}
//	for token, err := range engine.Chat(ctx, c, engine.Sampling()) {
//		if err != nil {
//			return err
//		}
//		fmt.Print(token.Text)
//	}
//
// An Engine may be used from many goroutines; its requests share one batch.
package foretoken

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"strings"

	"github.com/foretoken/foretoken/internal/chat"
	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/tokenizer"
)

// Options say how a model runs. The zero value is a good choice.
//
//	Threads      int    // workers; 0: the processors that this process may use
//	MaxModelLen  int    // longest sequence in tokens; 0: the model's own limit
//	DType        string // activations: "auto" or "float32"
//	KVCacheDType string // "auto", "f32", "f16", "bf16" or "q8_0"
//	Quantize     string // round matrices of floats while loading, where rows are blocks of 32: "q8_0", "q4_0" or "q4_1"
//	ExpertMemory int64  // bytes for packed experts, which are packed as they are needed; 0: all are packed while loading
//	RoundCache   bool   // DeepSeek V3.2 and V4: round what is kept of tokens as training did, to fp8 and fp4
//	MLA          string // latent attention: "absorbed" or "expanded", the same but for rounding
//
// How requests share the engine:
//
//	MaxSeqs          int     // sequences that run at once; 0: 64
//	MaxQueued        int     // requests that wait; 0: no limit
//	MaxBatchedTokens int     // rows of a step; 0: 128
//	ChunkSize        int     // most rows of one prompt in a step; 0: MaxBatchedTokens
//	MaxPartial       int     // prompts that are computed in part at a time; 0: one
//	SeparatePrefill  bool    // prompts and decoding have steps of their own, turn about
//	Policy           string  // order of the queue: "fcfs", "lpm", "dfs-weight" or "priority"
//	Conservativeness float64 // of admission: what share of the tokens to come memory is kept for; 0: 1
//	ITLTarget        time.Duration // inter-token latency to keep while prompts are computed
//
// The cache, and the prefixes that requests share in it:
//
//	KVCacheMemory  int64  // bytes
//	PageSize       int    // tokens that share together; 0: the least the model allows
//	NoPrefixCache  bool   // share nothing
//	EvictionPolicy string // of shared prefixes: "lru", "lfu" or "fifo"
//	PrefixCacheDir string // where shared prefixes are kept between runs
//
// How tokens are drafted ahead of the model, and who is told:
//
//	Speculation     Speculation // the zero value drafts nothing
//	Seed            uint64 // of requests that say none; 0: drawn anew for each
//	ChatTemplate    string // source of a template, in place of the model's own
//	Progress        func(done, total int64) // bytes of the model prepared; may be nil
//	Log             *slog.Logger  // nil: nothing is logged
//	WatchdogTimeout time.Duration // a step or job that takes longer is logged; 0: 300 s
type Options = engine.Options

// A Speculation says how tokens are drafted ahead of the model, which verifies
// several in one pass. The zero value drafts nothing. Answers are the model's
// own: under coupled verification, the default, each is the very text that it is
// without drafts; docs/speculation.md says how that is.
//
//	Method    string // "ngram", "suffix", "draft_model", "mtp" or "auto"; "": nothing is drafted
//	Model     string // of draft_model and auto: a path or name as Open takes it, or "self:q4", "self:q4_1", "self:q8" or "self:layers=0-5,8": the model itself
//	Tokens    int    // most that are drafted one after another; 0: what suits the method
//	TopK      int    // above 1, drafts of a model are trees, whose likeliest paths go on with so many tokens each
//	Nodes     int    // most tokens of a tree; 0: Tokens times TopK
//	Tree      string // "dynamic" (with TopK), or "static", EAGLE's 25 tokens
//	Verify    string // "coupled", "rejection" or "block"; "": coupled
//	Fixed     bool   // draft and verify Tokens always, whether that pays or not
//	Async     bool   // bound what is verified by what was best two steps ago
//	LookupMin int    // fewest tokens of an n-gram that is looked up; both 0: 2 to 5
//	LookupMax int    // most
//	Floor     float64 // share of drafted tokens that a model gets accepted when the engine opens; below, that is logged. 0: 0.1
//
// To measure what speculation would gain, with an output that has no meaning:
//
//	Simulate     []float64 // acceptance of each position if those before it are accepted
//	SimulateCost float64   // of a drafting pass, in plain decoding steps
type Speculation = engine.Speculation

// A RequestSpeculation changes for one request what Options.Speculation says.
//
//	Off    bool
//	Method string // one of those that the engine drafts with; "": any
//	Tokens int    // most that are drafted one after another; 0: as the engine does
type RequestSpeculation = engine.RequestSpeculation

// SpeculationStats count drafts. A round is a step in which at least one drafted
// token of a sequence was verified; it gives the accepted ones and one of the
// model's own, unless the text ends before. Tokens / Rounds is known as τ.
//
//	Rounds   uint64
//	Drafted  uint64   // tokens that were verified
//	Accepted uint64   // of them
//	Tokens   uint64   // that rounds have given
//	Drafts   []uint64 // rounds whose draft had at least 1, 2, 3, … tokens one after another
//	Accepts  []uint64 // of them, those in which so many were accepted
type SpeculationStats = engine.SpeculationStats

// Sampling says how tokens are chosen and when generation ends. Start from
// Engine.Sampling or DefaultSampling; the zero value stands for what
// Engine.Sampling returns.
//
//	Temperature         float32  // 0: always the most likely token
//	TopK                int      // 0: off
//	TopP, MinP, TypicalP float32 // 1, 0, 1: off
//	RepetitionPenalty   float32  // 1: off
//	PresencePenalty     float32  // 0: off
//	FrequencyPenalty    float32  // 0: off
//	LogitBias           map[int32]float32
//	MinTokens           int
//	MaxTokens           int      // 0: as many as the context holds
//	Stop                []string // end before one of these texts
//	StopIDs             []int32  // end at one of these tokens
//	IncludeStop         bool     // leave the stop string in the text
//	IgnoreEOS           bool
//	Seed                uint64   // same seed, same tokens
//	LogProbs            int      // -1: none; n: of the token and the n most likely
//	ProcessedLogProbs   bool     // of the distribution drawn from, not the model's own
type Sampling = sample.Params

// DefaultSampling draws from the model's own distribution, without limits.
func DefaultSampling() Sampling { return sample.Default() }

// A Token is one generated token.
//
//	Choice  int            // which continuation, from 0
//	ID      int32
//	Text    string         // what became certain with this token; may be empty
//	Finish  FinishReason   // empty but for the last token
//	Drafted bool           // it was drafted ahead of the model
//	LogProb float64        // if the request asked for it
//	Top     []TokenLogProb // the most likely tokens, likewise
type Token = engine.Token

// A TokenLogProb is a Token id with the natural logarithm LogProb of its
// probability.
type TokenLogProb = sample.TokenLogProb

// A FinishReason says why generation ended.
type FinishReason = engine.FinishReason

// Why generation ended.
const (
	FinishStop   = engine.Stop   // an end token or a stop string
	FinishLength = engine.Length // MaxTokens or the model's limit
)

// A Conversation is what the model's chat template renders.
//
//	Messages             []Message
//	Tools                []any             // functions as the OpenAI API lists them, from ParseJSON
//	AddGenerationPrompt  bool              // end where the answer begins; Chat does unless the next is set
//	ContinueFinalMessage bool              // end inside the last message, to write on
//	Kwargs               *Object           // more variables for the template, from ParseJSON
//	SpecialTokens        map[string]string // set from the tokenizer
//	Now                  time.Time         // for templates that print the date
type Conversation = chat.Conversation

// A Message is one turn of a conversation. System, User, Assistant and
// ToolResult make the usual ones.
//
//	Role             string
//	Content          any     // a string, nil, or a list of parts from ParseJSON
//	ReasoningContent string  // what the model thought before it answered
//	Name             string
//	ToolCalls        []ToolCall
//	ToolCallID       string  // of a tool's result
//	Extra            *Object // further fields, for templates that know them
type Message = chat.Message

// A ToolCall is a call of a function by the model: ID, Name and Arguments,
// the text of a JSON object.
type ToolCall = chat.ToolCall

// An Object is a JSON object that keeps the order of its keys.
type Object = chat.Object

// ParseJSON reads a JSON value, keeping the order of keys, for the fields of
// conversations that hold JSON.
func ParseJSON(data []byte) (any, error) { return chat.DecodeJSON(data) }

// System is a message that tells the model how to behave.
func System(text string) Message { return chat.System(text) }

// User is a message of the user.
func User(text string) Message { return chat.User(text) }

// Assistant is a message of the model.
func Assistant(text string, calls ...ToolCall) Message { return chat.Assistant(text, calls...) }

// ToolResult is the result of a tool call.
func ToolResult(callID, name, text string) Message { return chat.ToolResult(callID, name, text) }

// A Pooling says how the states of a text's tokens become one vector.
type Pooling = engine.Pooling

// The poolings. Embedding models say which they were trained for.
const (
	MeanPooling = engine.MeanPooling
	LastPooling = engine.LastPooling
)

// ErrClosed ends the requests of an engine that is closed.
var ErrClosed = engine.ErrClosed

// An Engine runs one model.
type Engine struct {
	engine *engine.Engine
}

// Open loads a model: a directory with safetensors or GGUF files, a .gguf
// file, a .safetensors file beside its config.json, or the name of a model
// that Pull has fetched.
func Open(model string, o Options) (*Engine, error) {
	return OpenContext(context.Background(), model, o)
}

// OpenContext is Open that ends with ctx's error if ctx ends while weights are
// loaded. ctx means nothing to the engine that it returns.
func OpenContext(ctx context.Context, model string, o Options) (*Engine, error) {
	path, err := find(model)
	if err != nil {
		return nil, err
	}
	if draft := o.Speculation.Model; draft != "" && !strings.HasPrefix(draft, "self:") {
		if o.Speculation.Model, err = find(draft); err != nil {
			return nil, fmt.Errorf("draft model: %w", err)
		}
	}
	e, err := engine.Open(ctx, path, o)
	if err != nil {
		return nil, err
	}
	return &Engine{e}, nil
}

// Close ends all requests with ErrClosed and frees the model.
func (e *Engine) Close() error { return e.engine.Close() }

// Sampling returns the parameters that the model's files recommend, or
// temperature 0.8, top-k 40, top-p 0.95 where they recommend none, with a seed
// drawn anew at every call.
func (e *Engine) Sampling() Sampling { return e.engine.Sampling() }

// ContextLength is the longest sequence in tokens, prompt and answer together.
func (e *Engine) ContextLength() int { return e.engine.MaxModelLen() }

// Speculation counts what was drafted since Open, by method; nil if nothing is.
func (e *Engine) Speculation() map[string]SpeculationStats { return e.engine.Stats().Speculation }

// A Request asks for the continuation of a text or of tokens.
type Request struct {
	Prompt   string  // encoded with the model's beginning-of-sequence token
	Tokens   []int32 // in place of Prompt; used as they are
	Sampling Sampling
	// KeepSpecial leaves special tokens in the text.
	KeepSpecial bool
	// Speculation changes how tokens are drafted; nil: as Options says.
	Speculation *RequestSpeculation
}

// Generate yields the tokens of a continuation as they come. The last has a
// FinishReason. Leaving the loop or cancelling ctx aborts the request.
func (e *Engine) Generate(ctx context.Context, r Request) iter.Seq2[Token, error] {
	tokens := r.Tokens
	if tokens == nil {
		var err error
		if tokens, err = e.encode(r.Prompt, true); err != nil {
			return fails(err)
		}
	}
	return e.engine.Generate(ctx, engine.Request{Prompt: tokens, Params: e.sampling(r.Sampling), KeepSpecial: r.KeepSpecial, Speculation: r.Speculation})
}

// Chat yields the tokens of the model's answer to a conversation, rendered
// with the model's own template.
func (e *Engine) Chat(ctx context.Context, c Conversation, s Sampling) iter.Seq2[Token, error] {
	c.AddGenerationPrompt = !c.ContinueFinalMessage
	prompt, err := e.engine.Prompt(ctx, c)
	if err != nil {
		return fails(err)
	}
	tokens, err := e.encode(prompt, false)
	if err != nil {
		return fails(err)
	}
	return e.engine.Generate(ctx, engine.Request{Prompt: tokens, Params: e.sampling(s)})
}

// Embed returns the pooled final states of a text, scaled to length 1.
func (e *Engine) Embed(ctx context.Context, text string, p Pooling) ([]float32, error) {
	tokens, err := e.encode(text, true)
	if err != nil {
		return nil, err
	}
	return e.engine.Embed(ctx, tokens, p)
}

// Tokenize returns the tokens of a text, without those that mark its
// beginning and end. Special tokens in the text are recognised.
func (e *Engine) Tokenize(text string) ([]int32, error) { return e.encode(text, false) }

// Detokenize returns the text of tokens, special ones included.
func (e *Engine) Detokenize(tokens []int32) (string, error) {
	t, err := e.engine.Tokenizer()
	if err != nil {
		return "", err
	}
	for i, id := range tokens {
		if id < 0 || int(id) >= t.Size() {
			return "", fmt.Errorf("token %d is %d, expected 0 to %d", i, id, t.Size()-1)
		}
	}
	return t.Decode(tokens, false), nil
}

func (e *Engine) sampling(s Sampling) Sampling {
	if reflect.ValueOf(s).IsZero() {
		return e.Sampling()
	}
	return s
}

func (e *Engine) encode(text string, special bool) ([]int32, error) {
	t, err := e.engine.Tokenizer()
	if err != nil {
		return nil, err
	}
	return t.Encode(text, tokenizer.Options{Special: special})
}

func fails(err error) iter.Seq2[Token, error] {
	return func(yield func(Token, error) bool) { yield(Token{}, err) }
}
