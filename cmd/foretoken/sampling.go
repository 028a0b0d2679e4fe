package main

import "github.com/foretoken/foretoken/internal/sample"

// samplingFlags say how tokens are chosen. A nil flag was not given: what the
// model's files recommend holds.
type samplingFlags struct {
	Temperature       *float32          `group:"sampling" placeholder:"T" help:"Divides the logits; 0 always takes the most likely token."`
	TopK              *int              `group:"sampling" placeholder:"K" help:"Keep the K most likely tokens; 0: all."`
	TopP              *float32          `group:"sampling" placeholder:"P" help:"Keep the fewest tokens whose probabilities sum to P; 1: all."`
	MinP              *float32          `group:"sampling" placeholder:"P" help:"Keep tokens at least P times as likely as the best; 0: all."`
	TypicalP          *float32          `group:"sampling" placeholder:"P" help:"Keep the tokens nearest to the expected surprise, of mass P; 1: all."`
	RepetitionPenalty *float32          `group:"sampling" placeholder:"X" help:"Scales down logits of tokens in prompt or output; 1: off."`
	PresencePenalty   *float32          `group:"sampling" placeholder:"X" help:"Subtracted once from logits of tokens in the output; 0: off."`
	FrequencyPenalty  *float32          `group:"sampling" placeholder:"X" help:"Subtracted for each occurrence in the output; 0: off."`
	LogitBias         map[int32]float32 `group:"sampling" placeholder:"ID=X" help:"Added to the logit of a token; may be repeated."`
	Seed              *uint64           `group:"sampling" placeholder:"N" help:"Same seed, same text. Random if not given."`
	MaxTokens         int               `group:"sampling" placeholder:"N" default:"0" help:"Longest answer in tokens. 0, the default: unlimited, up to the context's end."`
	MinTokens         int               `group:"sampling" placeholder:"N" default:"0" help:"No end before this many tokens."`
	Stop              []string          `group:"sampling" placeholder:"TEXT" sep:"none" help:"End the answer before this text; may be repeated."`
	StopID            []int32           `group:"sampling" name:"stop-id" placeholder:"ID" help:"End the answer at this token; may be repeated."`
	IgnoreEOS         bool              `group:"sampling" name:"ignore-eos" help:"Go on after the token that ends an answer."`
}

// params completes the engine's parameters with the flags.
func (f *samplingFlags) params(p sample.Params) sample.Params {
	set(&p.Temperature, f.Temperature)
	set(&p.TopK, f.TopK)
	set(&p.TopP, f.TopP)
	set(&p.MinP, f.MinP)
	set(&p.TypicalP, f.TypicalP)
	set(&p.RepetitionPenalty, f.RepetitionPenalty)
	set(&p.PresencePenalty, f.PresencePenalty)
	set(&p.FrequencyPenalty, f.FrequencyPenalty)
	set(&p.Seed, f.Seed)
	p.LogitBias = f.LogitBias
	p.MaxTokens, p.MinTokens = f.MaxTokens, f.MinTokens
	p.Stop, p.StopIDs, p.IgnoreEOS = f.Stop, f.StopID, f.IgnoreEOS
	return p
}

// set overrides a parameter by a flag that was given.
func set[T any](p, flag *T) {
	if flag != nil {
		*p = *flag
	}
}
