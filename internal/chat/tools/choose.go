package tools

import (
	"strings"

	"github.com/foretoken/foretoken/internal/chat/deepseek"
)

// Choose returns the format of a model, as far as its chat template tells: what it shows the model is what
// the model writes. architecture is a model_type of config.json or a general.architecture of GGUF;
// vocabulary reports whether a text is one token of the model.
func Choose(template, architecture string, vocabulary func(token string) bool) Format {
	if e := deepseek.For(architecture); e != nil {
		if strings.Contains(architecture, "4") {
			return Format{"deepseek_v4", "deepseek_v4"}
		}
		return Format{"deepseek_v32", "deepseek_v3"}
	}
	calls := chooseCalls(template, vocabulary)
	return Format{calls, chooseReasoning(template, calls, vocabulary)}
}

// signs are texts in templates, all of which a format has; the first format that has them is it.
var signs = []struct {
	calls string
	texts []string
}{
	{"deepseek_v4", []string{"｜DSML｜", "tool_calls>"}},
	{"deepseek_v32", []string{"｜DSML｜"}},
	{"deepseek_v3", []string{deepseekCall, "```json"}},
	{"deepseek_v31", []string{deepseekCall}},
	{"kimi_k2", []string{kimiCalls}},
	{"minimax_m2", []string{"<minimax:tool_call>"}},
	{"seed_oss", []string{"<seed:tool_call>"}},
	{"glm45", []string{"<tool_call>", "<arg_key>"}},
	{"qwen3_coder", []string{"<function=", "<parameter="}},
	{"mistral", []string{mistralCalls}},
	{"phi4_mini_json", []string{"functools["}},
	{"granite", []string{"<|tool_call|>"}},
	{"hermes", []string{"<tool_call>"}},
	{"pythonic", []string{lfmStart}},
	{"llama4_pythonic", []string{"<|header_start|>", "tools"}},
	{"llama3_json", []string{pythonTag}},
	{"llama3_json", []string{"<|start_header_id|>", `"parameters": `}},
}

func chooseCalls(template string, vocabulary func(string) bool) string {
	for _, sign := range signs {
		found := true
		for _, text := range sign.texts {
			found = found && strings.Contains(template, text)
		}
		if found {
			return sign.calls
		}
	}
	// Templates for Mistral's models are often others' work, and leave tools out.
	if vocabulary(mistralCalls) || vocabulary(mistralArguments) {
		return "mistral"
	}
	return ""
}

func chooseReasoning(template, calls string, vocabulary func(string) bool) string {
	switch {
	case strings.Contains(template, "[THINK]") || calls == "mistral" && vocabulary("[THINK]"):
		return "mistral"
	case strings.Contains(template, "<seed:think>"):
		return "seed_oss"
	case !strings.Contains(template, "<think>") && !strings.Contains(template, "</think>"):
		return ""
	}
	switch calls {
	case "deepseek_v3":
		return "deepseek_r1"
	case "deepseek_v31", "deepseek_v32":
		return "deepseek_v3"
	case "deepseek_v4", "kimi_k2", "minimax_m2", "glm45":
		return calls
	}
	return "qwen3"
}
