// Package sample turns a row of logits into a token: logit processors,
// truncations, keyed noise and log-probabilities, and the matcher for stop
// strings.
//
// A draw is a pure function of the row, the parameters, the tokens before it
// and the key (seed, choice, position). It depends neither on the batch nor on
// earlier draws, so a draft position is sampled exactly as it would have been
// one token at a time.
package sample

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"
)

// Params say how the tokens of one request are chosen and when they end.
// Start from Default: the zero value is not valid.
type Params struct {
	Temperature float32 // divides the logits; below 1e-5: greedy
	TopK        int     // keep the k most likely tokens; 0 or -1: off
	TopP        float32 // keep the fewest tokens whose probabilities sum to p; 1: off
	MinP        float32 // keep tokens at least this likely relative to the best; 0: off
	TypicalP    float32 // keep the tokens nearest to the expected surprise, of this mass; 1: off

	RepetitionPenalty float32           // scales logits of tokens in prompt or output; 1: off
	PresencePenalty   float32           // subtracted once for tokens in the output; 0: off
	FrequencyPenalty  float32           // subtracted for each occurrence in the output; 0: off
	LogitBias         map[int32]float32 // added to the logits

	MinTokens   int      // no end-of-generation or stop token before this many
	MaxTokens   int      // 0: as many as the context holds
	Stop        []string // end the text when one of them appears
	StopIDs     []int32  // end the text when one of them is drawn
	IncludeStop bool     // leave the stop string in the text
	IgnoreEOS   bool     // do not end at end-of-generation tokens

	Seed     uint64
	LogProbs int // report the log-probability of the token and of this many best; -1: none
	// ProcessedLogProbs reports log-probabilities of the distribution that is
	// drawn from instead of the model's own.
	ProcessedLogProbs bool
}

// Default returns parameters that draw from the model's own distribution.
func Default() Params {
	return Params{Temperature: 1, TopP: 1, TypicalP: 1, RepetitionPenalty: 1, LogProbs: -1}
}

// Greedy reports whether the most likely token is always taken.
func (p *Params) Greedy() bool { return p.Temperature < 1e-5 }

// Penalized reports whether penalties are on, and with them the need for a History.
func (p *Params) Penalized() bool {
	return p.RepetitionPenalty != 1 || p.PresencePenalty != 0 || p.FrequencyPenalty != 0
}

// Ends reports whether token ends the output: a stop id, or one of the model's
// end-of-generation tokens eog unless they are ignored.
func (p *Params) Ends(token int32, eog []int32) bool {
	return slices.Contains(p.StopIDs, token) || !p.IgnoreEOS && slices.Contains(eog, token)
}

// maxStopBytes bounds the automaton of the stop strings, which has 24 bytes for
// each of theirs.
const maxStopBytes = 1 << 20

// Validate checks every field against its range, for a vocabulary of that many
// tokens. The error names the field as the HTTP API does. NaN is in no range.
func (p *Params) Validate(vocab int) error {
	inf := float32(math.Inf(1))
	for _, f := range []struct {
		name   string
		value  float32
		ok     bool
		expect string
	}{
		{"temperature", p.Temperature, p.Temperature >= 0 && p.Temperature < inf, "0 or more"},
		{"top_p", p.TopP, p.TopP > 0 && p.TopP <= 1, "more than 0, at most 1"},
		{"min_p", p.MinP, p.MinP >= 0 && p.MinP <= 1, "0 to 1"},
		{"typical_p", p.TypicalP, p.TypicalP > 0 && p.TypicalP <= 1, "more than 0, at most 1"},
		{"repetition_penalty", p.RepetitionPenalty, p.RepetitionPenalty >= 1e-3 && p.RepetitionPenalty <= 1e3, "0.001 to 1000"}, // logits stay finite
		{"presence_penalty", p.PresencePenalty, p.PresencePenalty >= -2 && p.PresencePenalty <= 2, "-2 to 2"},
		{"frequency_penalty", p.FrequencyPenalty, p.FrequencyPenalty >= -2 && p.FrequencyPenalty <= 2, "-2 to 2"},
	} {
		if !f.ok {
			return fmt.Errorf("%s is %v, expected %s", f.name, f.value, f.expect)
		}
	}
	switch {
	case p.TopK < -1:
		return fmt.Errorf("top_k is %d, expected 1 or more, or 0 or -1 for no limit", p.TopK)
	case p.MaxTokens < 0:
		return fmt.Errorf("max_tokens is %d, expected 1 or more, or 0 for no limit", p.MaxTokens)
	case p.MinTokens < 0:
		return fmt.Errorf("min_tokens is %d, expected 0 or more", p.MinTokens)
	case p.MaxTokens > 0 && p.MinTokens > p.MaxTokens:
		return fmt.Errorf("min_tokens is %d, expected at most max_tokens, %d", p.MinTokens, p.MaxTokens)
	case p.LogProbs < -1 || p.LogProbs > vocab:
		return fmt.Errorf("logprobs is %d, expected 0 to %d, or -1 for none", p.LogProbs, vocab)
	}
	for _, id := range slices.Sorted(maps.Keys(p.LogitBias)) {
		if id < 0 || int(id) >= vocab {
			return fmt.Errorf("logit_bias of token %d, expected ids from 0 to %d", id, vocab-1)
		}
		if b := p.LogitBias[id]; !(b >= -100 && b <= 100) {
			return fmt.Errorf("logit_bias of token %d is %v, expected -100 to 100", id, b)
		}
	}
	for _, id := range p.StopIDs {
		if id < 0 || int(id) >= vocab {
			return fmt.Errorf("stop_token_ids has %d, expected ids from 0 to %d", id, vocab-1)
		}
	}
	stops := 0
	for i, s := range p.Stop {
		if s == "" || !utf8.ValidString(s) {
			return fmt.Errorf("stop string %d is %q, expected UTF-8 text that is not empty", i, s)
		}
		stops += len(s)
	}
	if stops > maxStopBytes {
		return fmt.Errorf("stop strings have %d bytes together, expected at most %d", stops, maxStopBytes)
	}
	return nil
}
