package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/foretoken/foretoken/internal/chat/value"
	"github.com/foretoken/foretoken/internal/engine"
)

// speculationConfig is the JSON object that vLLM takes, with keys of ours.
type speculationConfig struct{ settings []setting }

// speculationLimits are far beyond what a configuration has: it may come from a
// file or an environment that somebody else wrote.
var speculationLimits = value.Limits{Values: 256, Keys: 64, Digits: 20}

// UnmarshalText is called by kong.
func (c *speculationConfig) UnmarshalText(text []byte) error {
	v, err := value.DecodeUnique(text, speculationLimits)
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	o, ok := v.(*value.Object)
	if !ok {
		return fmt.Errorf("%s: expected a JSON object, such as {\"method\": \"auto\"}", shown(v))
	}
	c.settings = nil
	for k, v := range o.All() {
		name := k.(string) // decoded objects have no other keys
		s, err := settingOf(name, v)
		if err != nil {
			return err
		}
		if s.key == "" {
			continue
		}
		if err := speculationKeys[s.key](new(engine.Speculation), s.value); err != nil {
			return fmt.Errorf("%s is %s, %w", name, shown(v), err)
		}
		c.settings = append(c.settings, s)
	}
	return nil
}

// settingOf is what a key of the object says; without a key nothing: null, or
// what vLLM does by itself, asks for nothing.
func settingOf(name string, v value.Value) (setting, error) {
	s := setting{"--speculative-config " + name, name, v}
	if v == nil {
		return setting{}, nil
	}
	switch name {
	case "enable_adaptive_verification":
		s.key = "adaptive"
	case "rejection_sample_method":
		s.key = "verify"
		switch v {
		case "standard":
			s.value = "rejection"
		case "block":
		case "synthetic":
			return s, errors.New("rejection_sample_method is synthetic: what comes out would not be the model's text; expected standard or block")
		default:
			return s, fmt.Errorf("rejection_sample_method is %s, expected standard or block", shown(v))
		}
	}
	if _, known := speculationKeys[s.key]; known {
		return s, nil
	}
	if why, known := refusedKeys[name]; known {
		if v == false || name == "draft_tensor_parallel_size" && v == int64(1) {
			return setting{}, nil
		}
		return s, fmt.Errorf("%s: %s", name, why)
	}
	err := fmt.Errorf("unknown key %.40q", name)
	if near := nearest(name, slices.Sorted(maps.Keys(speculationKeys))); near != "" {
		err = fmt.Errorf("%w, did you mean %s?", err, near)
	}
	return s, err
}

// speculationKeys set what a key says, or tell what was expected. The first are
// vLLM's.
var speculationKeys = map[string]func(o *engine.Speculation, v any) error{
	"method": func(o *engine.Speculation, v any) error {
		method, ok := v.(string)
		switch {
		case ok && slices.Contains(engine.SpeculationMethods, method):
			o.Method = method
			return nil
		case slices.Contains(learnedMethods, method):
			return fmt.Errorf("%s; expected %s", learnedDrafters, strings.Join(engine.SpeculationMethods, ", "))
		case strings.HasSuffix(method, "_mtp"):
			return errors.New("expected mtp, whatever the model")
		}
		return fmt.Errorf("expected %s", strings.Join(engine.SpeculationMethods, ", "))
	},
	"model": func(o *engine.Speculation, v any) error {
		name, ok := v.(string)
		if !ok || name == "" {
			return errors.New("expected the path or name of a model, self:q4 or self:layers=0-5")
		}
		o.Model = name
		return nil
	},
	"num_speculative_tokens": tokenCount(func(o *engine.Speculation) *int { return &o.Tokens }),
	"prompt_lookup_min":      tokenCount(func(o *engine.Speculation) *int { return &o.LookupMin }),
	"prompt_lookup_max":      tokenCount(func(o *engine.Speculation) *int { return &o.LookupMax }),

	"topk":  tokenCount(func(o *engine.Speculation) *int { return &o.TopK }),
	"nodes": tokenCount(func(o *engine.Speculation) *int { return &o.Nodes }),
	"tree": func(o *engine.Speculation, v any) error {
		if v != "dynamic" && v != "static" {
			return errors.New("expected dynamic or static")
		}
		o.Tree = v.(string)
		return nil
	},
	"adaptive": func(o *engine.Speculation, v any) error {
		adaptive, ok := v.(bool)
		o.Fixed = !adaptive
		return expected(ok, "true or false")
	},
	"asynchronous": func(o *engine.Speculation, v any) (err error) {
		var ok bool
		o.Async, ok = v.(bool)
		return expected(ok, "true or false")
	},
	"floor": func(o *engine.Speculation, v any) error {
		f, ok := v.(float64)
		if whole, is := v.(int64); is {
			f, ok = float64(whole), true
		}
		o.Floor = f
		return expected(ok && f > 0 && f <= 1, "a number above 0, up to 1")
	},
	"verify": func(o *engine.Speculation, v any) error {
		rule, _ := v.(string)
		o.Verify = rule
		return expected(rule == "coupled" || rule == "rejection" || rule == "block", "coupled, rejection or block")
	},
}

// learnedMethods are those of vLLM whose drafters were trained for one target.
var learnedMethods = []string{"eagle", "eagle3", "dflash", "dspark", "medusa", "mlp_speculator"}

const learnedDrafters = "drafters that were trained to read a model's states (EAGLE, DFlash, DSpark, Medusa) are not supported yet"

// mostCount is above what the engine takes of anything that is counted here: it
// says itself how far it goes.
const mostCount = 1 << 20

// tokenCount sets a number of tokens.
func tokenCount(field func(o *engine.Speculation) *int) func(o *engine.Speculation, v any) error {
	return func(o *engine.Speculation, v any) error {
		n, ok := v.(int64)
		if !ok || n < 1 || n > mostCount {
			return errors.New("expected a whole number, 1 or more")
		}
		*field(o) = int(n)
		return nil
	}
}

func expected(ok bool, what string) error {
	if ok {
		return nil
	}
	return fmt.Errorf("expected %s", what)
}

const (
	oneProcess   = "the draft model runs where the model does"
	bySteps      = "how much is drafted and verified is decided for every step by what that costs; adaptive false switches it off"
	suffixLimits = "the automaton of suffix bounds itself; num_speculative_tokens bounds what it drafts"
	synthetic    = "what comes out would not be the model's text"
	lossy        = "to accept what the model did not choose changes what it says"
	forGPUs      = "it is about GPUs"
)

// refusedKeys are those of vLLM that cannot be honoured here, and why.
var refusedKeys = map[string]string{
	"draft_tensor_parallel_size":            oneProcess,
	"tensor_parallel_size":                  oneProcess,
	"quantization":                          "a draft model is used as its files have it; model self:q4 is the model itself with rounded weights",
	"kv_cache_dtype":                        "the draft model's cache has the type of --kv-cache-dtype",
	"max_model_len":                         "the draft model goes as far as --max-model-len",
	"revision":                              "a model is pulled by its name, and used as it was pulled",
	"code_revision":                         "models here bring no code",
	"use_heterogeneous_vocab":               "vocabularies are compared when the draft model is loaded",
	"parallel_drafting":                     "draft models here draft one token after another",
	"draft_sample_method":                   "how drafts are drawn follows from --spec-verify",
	"num_speculative_tokens_per_batch_size": bySteps,
	"disable_by_batch_size":                 bySteps,
	"suffix_decoding_max_tree_depth":        suffixLimits,
	"suffix_decoding_max_cached_requests":   suffixLimits,
	"suffix_decoding_max_spec_factor":       suffixLimits,
	"suffix_decoding_min_token_prob":        suffixLimits,
	"synthetic_acceptance_rate":             synthetic,
	"synthetic_acceptance_rates":            synthetic,
	"synthetic_acceptance_length":           synthetic,
	"acceptance_method":                     lossy,
	"posterior_threshold":                   lossy,
	"posterior_alpha":                       lossy,
	"enforce_eager":                         forGPUs,
	"moe_backend":                           forGPUs,
	"attention_backend":                     forGPUs,
	"disable_padded_drafter_batch":          "nothing is padded here",
	"use_local_argmax_reduction":            forGPUs,
	"dspark_draft_topk":                     learnedDrafters,
	"disable_eagle_block_drop":              learnedDrafters,
	"index_share_for_mtp_iteration":         "modules of multi-token prediction run as their files say",
	"draft_load_config":                     "a draft model is loaded as the model is",
}

// shown is a value of a configuration as messages have it.
func shown(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("%.40q", v)
	case *value.List:
		return "a list"
	case *value.Object:
		return "an object"
	}
	return fmt.Sprint(v)
}
