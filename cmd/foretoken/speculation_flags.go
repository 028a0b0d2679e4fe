package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/foretoken/foretoken/internal/engine"
)

// speculationFlags say how tokens are drafted ahead of the model: in vLLM's form, by
// SGLang's names, or by llama.cpp's. A nil flag was not given.
type speculationFlags struct {
	SpeculativeConfig speculationConfig `group:"speculation" placeholder:"JSON" help:"Draft tokens ahead of the model, such as '{\"method\": \"auto\"}' or '{\"method\": \"draft_model\", \"model\": \"smollm2:135m\", \"num_speculative_tokens\": 5}'. Methods: ngram, suffix, draft_model, mtp and auto."`
	SpecVerify        string            `group:"speculation" placeholder:"RULE" default:"" enum:",coupled,rejection,block" help:"How drafts are verified: coupled, the default, which leaves every text as it is without drafts; rejection or block, which accept more above temperature 0 and leave its law as it is."`
	Algorithm         string            `name:"speculative-algorithm" group:"speculation" placeholder:"NAME" help:"The method by SGLang's name: NGRAM, STANDALONE (draft_model) or NEXTN (mtp)."`
	DraftModel        string            `name:"speculative-draft-model-path" aliases:"speculative-draft-model,model-draft" group:"speculation" placeholder:"MODEL" help:"Model that drafts, a path or a name, or self:q4 or self:layers=0-5,8: the model itself, with rounded weights or with some of its layers. -md as in llama.cpp means the same."`
	NumSteps          *int              `name:"speculative-num-steps" aliases:"draft-max,draft-n,spec-draft-n-max" group:"speculation" placeholder:"N" help:"Most tokens that are drafted one after another, as num_speculative_tokens of --speculative-config. By default what suits the method."`
	EagleTopK         *int              `name:"speculative-eagle-topk" group:"speculation" placeholder:"K" help:"Above 1, drafts of a draft model are trees: its likeliest paths go on with so many tokens each."`
	NumDraftTokens    *int              `name:"speculative-num-draft-tokens" group:"speculation" placeholder:"N" help:"Most tokens of a draft, and one for the root, as SGLang counts."`
	AcceptSingle      *float64          `name:"speculative-accept-threshold-single" group:"speculation" hidden:"" help:"1: what is accepted is the model's own."`
	AcceptAcc         *float64          `name:"speculative-accept-threshold-acc" group:"speculation" hidden:"" help:"1: what is accepted is the model's own."`
}

// Validate is called by kong.
func (f *speculationFlags) Validate() error {
	_, err := f.speculation()
	return err
}

// A setting is a part of engine.Speculation that somebody says.
type setting struct {
	by    string // the flag, or the key of one
	key   string // of speculationKeys
	value any    // a string, int64, float64 or bool
}

// speculation is what all flags say together, with a method if they say anything.
func (f *speculationFlags) speculation() (engine.Speculation, error) {
	o, settings, err := f.said()
	if err == nil && o.Method == "" && len(settings) > 0 {
		err = fmt.Errorf("%s, and nothing names a method: expected --speculative-config '{\"method\": \"auto\"}' or another beside it", settings[0].by)
	}
	return o, err
}

// said is what all flags say together, and one by one.
func (f *speculationFlags) said() (o engine.Speculation, settings []setting, err error) {
	if settings, err = f.settings(); err != nil {
		return o, nil, err
	}
	said := map[string]setting{}
	for _, s := range settings {
		if other, twice := said[s.key]; twice && other.value != s.value {
			return o, nil, fmt.Errorf("%s says %v and %s says %v: one will do", other.by, other.value, s.by, s.value)
		}
		if err := speculationKeys[s.key](&o, s.value); err != nil {
			return o, nil, fmt.Errorf("%s is %s, %w", s.by, shown(s.value), err)
		}
		said[s.key] = s
	}
	if o.LookupMin > o.LookupMax && o.LookupMax > 0 {
		return o, nil, fmt.Errorf("prompt_lookup_min is %d and prompt_lookup_max %d: expected the first to be no more", o.LookupMin, o.LookupMax)
	}
	if o.Method == "" && o.Model != "" {
		o.Method = "draft_model"
	}
	return o, settings, nil
}

// settings are what the flags say, one by one.
func (f *speculationFlags) settings() ([]setting, error) {
	all := slices.Clone(f.SpeculativeConfig.settings)
	if f.SpecVerify != "" {
		all = append(all, setting{"--spec-verify", "verify", f.SpecVerify})
	}
	if f.Algorithm != "" {
		method, err := methodOf(f.Algorithm)
		if err != nil {
			return nil, err
		}
		all = append(all, setting{"--speculative-algorithm", "method", method})
	}
	if f.DraftModel != "" {
		all = append(all, setting{"--speculative-draft-model-path", "model", f.DraftModel})
	}
	if f.NumSteps != nil {
		all = append(all, setting{"--speculative-num-steps", "num_speculative_tokens", int64(*f.NumSteps)})
	}
	if f.EagleTopK != nil {
		all = append(all, setting{"--speculative-eagle-topk", "topk", int64(*f.EagleTopK)})
	}
	if n := f.NumDraftTokens; n != nil {
		// SGLang counts the root, the token that is committed already. Without
		// branches a draft is as long as it has tokens.
		if *n < 2 {
			return nil, fmt.Errorf("--speculative-num-draft-tokens is %d, expected 2 or more: it counts the root, too", *n)
		}
		key := "num_speculative_tokens"
		if slices.ContainsFunc(all, setting.branches) {
			key = "nodes"
		}
		all = append(all, setting{"--speculative-num-draft-tokens, less the root,", key, int64(*n - 1)})
	}
	for _, lossy := range []struct {
		name  string
		value *float64
	}{{"single", f.AcceptSingle}, {"acc", f.AcceptAcc}} {
		if lossy.value != nil && *lossy.value != 1 {
			return nil, fmt.Errorf("--speculative-accept-threshold-%s is %v: to accept what the model did not choose changes what it says; expected 1", lossy.name, *lossy.value)
		}
	}
	return all, nil
}

// branches reports whether drafts are trees by s.
func (s setting) branches() bool {
	n, _ := s.value.(int64)
	return s.key == "tree" || s.key == "topk" && n > 1
}

// methodOf is the method that SGLang has another name for.
func methodOf(algorithm string) (string, error) {
	switch strings.ToUpper(algorithm) {
	case "NGRAM":
		return "ngram", nil
	case "STANDALONE":
		return "draft_model", nil
	case "NEXTN":
		return "mtp", nil
	case "EAGLE", "EAGLE3", "DFLASH", "DSPARK":
		return "", fmt.Errorf("--speculative-algorithm %s: %s; expected NGRAM, STANDALONE or NEXTN, which are the model's own modules", algorithm, learnedDrafters)
	}
	return "", fmt.Errorf("--speculative-algorithm %.40q: expected NGRAM, STANDALONE or NEXTN", algorithm)
}

// checkDraft says early that a draft model cannot be had.
func checkDraft(o engine.Speculation) error {
	if !separate(o.Model) {
		return nil
	}
	if _, missing, err := find(o.Model); err != nil && !missing {
		return fmt.Errorf("draft model %w", err)
	}
	return nil
}

// fetchDraft makes the name of a draft model its path, and pulls it if it has to
// be.
func fetchDraft(ctx context.Context, o *engine.Speculation) (err error) {
	if separate(o.Model) {
		o.Model, err = fetch(ctx, o.Model)
	}
	return err
}

// separate reports whether a draft model has files of its own.
func separate(model string) bool { return model != "" && !strings.HasPrefix(model, "self:") }

// spellOut writes llama.cpp's -md as the parser can read it, who takes letters
// behind one dash for flags of one letter each. What is the value of another flag
// stays as it is.
func spellOut(k *kong.Kong, args []string) []string {
	takesValue := map[string]bool{}
	for _, verb := range k.Model.Leaves(false) {
		for _, flag := range verb.Flags {
			for _, name := range append([]string{flag.Name}, flag.Aliases...) {
				takesValue["--"+name] = !flag.IsBool()
			}
			if flag.Short != 0 {
				takesValue["-"+string(flag.Short)] = !flag.IsBool()
			}
		}
	}
	out := slices.Clone(args)
	for i, arg := range args {
		switch {
		case arg == "--":
			return out
		case arg == "-md" && (i == 0 || !takesValue[args[i-1]]):
			out[i] = "--model-draft"
		}
	}
	return out
}
