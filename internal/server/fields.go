package server

import (
	"github.com/foretoken/foretoken/internal/chat/value"
)

const noGrammar = "this server does not constrain what the model writes yet; ask for the form in the prompt"

// unsupported are fields of OpenAI's API, vLLM's and SGLang's that are refused,
// wherever they stand, and why.
var unsupported = map[string]string{
	"suffix": "models here continue a prompt, they do not fill in before a suffix",

	"structured_outputs":         noGrammar,
	"guided_json":                noGrammar,
	"guided_regex":               noGrammar,
	"guided_choice":              noGrammar,
	"guided_grammar":             noGrammar,
	"guided_decoding_backend":    noGrammar,
	"guided_whitespace_pattern":  noGrammar,
	"structural_tag":             noGrammar,
	"grammar":                    noGrammar,
	"json_schema":                noGrammar,
	"regex":                      noGrammar,
	"ebnf":                       noGrammar,
	"logits_processors":          "requests bring no code; logit_bias and penalties are fields",
	"custom_logit_processor":     "requests bring no code; logit_bias and penalties are fields",
	"bad_words":                  "forbid tokens with a logit_bias of -100",
	"allowed_token_ids":          noGrammar,
	"use_beam_search":            "there is no beam search; best_of draws several and takes the best",
	"length_penalty":             "there is no beam search",
	"early_stopping":             "there is no beam search",
	"truncate_prompt_tokens":     "no token of a prompt is dropped; send the part that is to be read",
	"lora_path":                  "this server has no adapters",
	"kv_transfer_params":         "this server computes prompts itself",
	"mm_processor_kwargs":        "models here read text only",
	"images":                     "models here read text only",
	"audio":                      "models here write text only",
	"modalities":                 `models here write text only, modalities ["text"]`,
	"prediction":                 "predicted outputs are not used; leave it out, the answer is the same",
	"web_search_options":         "this server has no tools of its own; offer the model functions in tools",
	"functions":                  "it was replaced by tools",
	"function_call":              "it was replaced by tool_choice and tool_calls",
	"chat_template":              "the server's operator chooses the template (--chat-template); chat_template_kwargs sets its variables",
	"documents":                  "templates that read documents take them in chat_template_kwargs",
	"verbosity":                  "templates that know such a setting take it in chat_template_kwargs",
	"previous_response_id":       "this server keeps no responses; send the conversation as input",
	"conversation":               "this server keeps no conversations; send the conversation as input",
	"background":                 "this server keeps no responses; leave the request open, or stream",
	"context_management":         "no token of a prompt is dropped",
	"max_tool_calls":             "this server has no tools of its own",
	"top_logprobs":               "log-probabilities are given by top_logprobs of /v1/chat/completions and /v1/responses, and logprobs of /v1/completions",
	"logprobs":                   "log-probabilities are given by /v1/chat/completions, /v1/completions, and /v1/responses with include: [\"" + includeLogProbs + "\"]",
	"stream_options":             "the last event of a stream has the usage, on this route",
	"include":                    "there is nothing to include of what this server answers on this route",
	"moderation":                 "this server does not moderate",
	"thinking_token_budget":      "the model's reasoning has no limit of its own; max_tokens bounds all of the answer",
	"top_n_sigma":                "min_p cuts off the tail relative to the best token",
	"mirostat":                   "temperature, top_p, min_p and typical_p are the settings",
	"dry_multiplier":             "repetition_penalty, presence_penalty and frequency_penalty are the settings",
	"logprob_token_ids":          "log-probabilities are given of the most likely tokens",
	"return_tokens_as_token_ids": "return_token_ids gives the ids",
	"session_id":                 "requests do not know of each other",
}

// openAIFields are those fields of OpenAI's API that have no effect here and
// promise none: labels, and settings of OpenAI's own platform.
type openAIFields struct {
	Model            string        `json:"model"`
	User             string        `json:"user"`
	SafetyIdentifier string        `json:"safety_identifier"`
	Metadata         *value.Object `json:"metadata"`
	Store            bool          `json:"store"`
	ServiceTier      string        `json:"service_tier"`
	PromptCacheKey   string        `json:"prompt_cache_key"`
	CacheRetention   string        `json:"prompt_cache_retention"`
}

func (f *openAIFields) check() error {
	switch {
	case f.Store:
		return badRequest("store", "store is true: this server keeps no answers; expected false")
	case f.ServiceTier != "" && f.ServiceTier != "auto" && f.ServiceTier != "default":
		return badRequest("service_tier", "service_tier is %.40q: this server has one tier; expected auto or default", f.ServiceTier)
	}
	return nil
}
