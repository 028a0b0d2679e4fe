package tools

import (
	"slices"
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		template, architecture string
		vocabulary             []string
		want                   Format
	}{
		{"", "", nil, Format{}},
		{"", "llama", []string{"<think>", "<tool_call>"}, Format{}},
		{"", "deepseek_v32", nil, Format{"deepseek_v32", "deepseek_v3"}},
		{"", "deepseek32", nil, Format{"deepseek_v32", "deepseek_v3"}},
		{"<tool_call>", "deepseek_v4", nil, Format{"deepseek_v4", "deepseek_v4"}},
		{"", "deepseek4", nil, Format{"deepseek_v4", "deepseek_v4"}},
		{"<｜DSML｜tool_calls> </think>", "", nil, Format{"deepseek_v4", "deepseek_v4"}},
		{"<｜DSML｜function_calls> </think>", "", nil, Format{"deepseek_v32", "deepseek_v3"}},
		{"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜> ```json", "deepseek_v3", nil, Format{"deepseek_v3", ""}},
		{"<｜tool▁call▁begin｜> ```json split('</think>')", "deepseek_v3", nil, Format{"deepseek_v3", "deepseek_r1"}},
		{"<｜tool▁call▁begin｜> </think>", "deepseek_v3", nil, Format{"deepseek_v31", "deepseek_v3"}},
		{"<tool_call>\n{\"name\": <function-name>}", "qwen2", nil, Format{"hermes", ""}},
		{"<tool_call>\n{\"name\": <function-name>} <think>", "qwen3", nil, Format{"hermes", "qwen3"}},
		{"<tool_call>\n<function=example>\n<parameter=p>", "qwen3moe", nil, Format{"qwen3_coder", ""}},
		{"<tool_call>\n<function=example>\n<parameter=p> <think>", "qwen3_5", nil, Format{"qwen3_coder", "qwen3"}},
		{"<seed:tool_call><function=f><parameter=p> <seed:think>", "seed_oss", nil, Format{"seed_oss", "seed_oss"}},
		{"<minimax:tool_call> <think>", "minimax_m2", nil, Format{"minimax_m2", "minimax_m2"}},
		{"<tool_call>{name}<arg_key> <think>", "glm4_moe", nil, Format{"glm45", "glm45"}},
		{"<|tool_calls_section_begin|> <think>", "kimi_k2", nil, Format{"kimi_k2", "kimi_k2"}},
		{"[AVAILABLE_TOOLS] [TOOL_CALLS]", "mistral", nil, Format{"mistral", ""}},
		{"[TOOL_CALLS]{{ name }}[ARGS] [THINK]", "mistral", nil, Format{"mistral", "mistral"}},
		{"[INST]", "llama", []string{"[TOOL_CALLS]", "[ARGS]", "[THINK]"}, Format{"mistral", "mistral"}},
		{"functools[", "phi3", nil, Format{"phi4_mini_json", ""}},
		{"<|tool_call|>", "granite", nil, Format{"granite", ""}},
		{"<|tool_call_start|>", "lfm2", nil, Format{"pythonic", ""}},
		{"<|header_start|> tools", "llama4", nil, Format{"llama4_pythonic", ""}},
		{"<|start_header_id|> <|python_tag|>", "llama", nil, Format{"llama3_json", ""}},
		{"<|start_header_id|> \"parameters\": ", "llama", nil, Format{"llama3_json", ""}},
		{"<|start_header_id|>", "llama", nil, Format{}},
		{"<think>", "qwq", nil, Format{"", "qwen3"}},
	} {
		got := Choose(c.template, c.architecture, func(token string) bool { return slices.Contains(c.vocabulary, token) })
		if got != c.want {
			t.Errorf("%q, %q, %q: got %v, want %v", c.template, c.architecture, c.vocabulary, got, c.want)
		}
		if err := got.Check(); err != nil {
			t.Error(err)
		}
	}
}

func TestCheck(t *testing.T) {
	for f, want := range map[Format]string{
		{}:                          "",
		{"hermes", "qwen3"}:         "",
		{"deepseek_v4", "mistral"}:  "",
		{"herms", ""}:               `tool call parser "herms": expected one of deepseek_v3, `,
		{"hermes", "hermes"}:        `reasoning parser "hermes": expected one of deepseek_r1, `,
		{"llama3_json", "qwen2"}:    `reasoning parser "qwen2"`,
		{"Hermes", "also unknown!"}: `tool call parser "Hermes"`,
	} {
		err := f.Check()
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: got %v, want %s", f, err, want)
		}
	}
}

// The prompt's last mark since the model's turn began says whether the model is within reasoning.
func TestInside(t *testing.T) {
	r1, qwen, none := Format{Reasoning: "deepseek_r1"}, Format{"hermes", "qwen3"}, Format{"hermes", ""}
	for _, c := range []struct {
		format Format
		prompt string // tokens, separated by bars; the special ones begin with *
		want   bool
	}{
		{qwen, "*<im_start>|assistant|\n|<think>|\n", true},
		{qwen, "*<im_start>|assistant|\n|<think>|\n\n|</think>|\n\n", false},
		{qwen, "*<im_start>|assistant|\n", false},
		{qwen, "*<im_start>|user|\n|What| is| |<think>|?|*<im_end>|*<im_start>|assistant|\n", false},
		{qwen, "*<im_start>|assistant|\n|<think>|as| far| as| I", true},
		{qwen, "*<im_start>|assistant|\n|<think>|r|</think>|The| answer", false},
		{qwen, "*<im_start>|assistant|\n|<|th|ink|>|\n", true},
		{qwen, "*<im_start>|assistant|\n|<think>|r|</|think|>|A", false},
		{qwen, "<think>", true},
		{qwen, "", false},
		{none, "*<im_start>|<think>", false},
		{r1, "<｜User｜>|Q|<｜Assistant｜>|<think>|\n", true},
		{r1, "<｜User｜>|Q|<｜Assistant｜>", true},
		{r1, "<｜User｜>|</think>|<｜Assistant｜>", true},
		{r1, "<｜User｜>|Q|<｜Assistant｜>|</think>", false},
		{Format{Reasoning: "deepseek_v3"}, "<｜User｜>|<think>|<｜Assistant｜>", false},
		{Format{Reasoning: "mistral"}, "*[INST]|Q|*[/INST]|*[THINK]", true},
	} {
		var tokens []string
		var ids []int32
		if c.prompt != "" {
			tokens = strings.Split(c.prompt, "|")
		}
		for i := range tokens {
			ids = append(ids, int32(i))
		}
		got := c.format.Inside(ids, func(id int32) (string, bool) { return strings.CutPrefix(tokens[id], "*") })
		if got != c.want {
			t.Errorf("%v: %s: got %v", c.format, c.prompt, got)
		}
	}
}

// Marks that are special tokens would be missing from a text without these.
func TestSpecial(t *testing.T) {
	for _, tc := range []struct {
		format  Format
		tools   bool
		special string
		want    bool
	}{
		{Format{}, true, "<think>", false},
		{Format{"hermes", "qwen3"}, true, "<|im_end|>", false},
		{Format{"hermes", "qwen3"}, true, "</think>", true},
		{Format{"hermes", "qwen3"}, true, "<tool_call>", true},
		{Format{"hermes", "qwen3"}, false, "<tool_call>", false},
		{Format{"mistral", ""}, true, "[TOOL_CALLS]", true},
		{Format{"llama3_json", ""}, true, "<|python_tag|>", true},
		{Format{"deepseek_v4", "deepseek_v4"}, false, "", true},
	} {
		if got := tc.format.Special(tc.tools, func(token string) bool { return token == tc.special && token != "" }); got != tc.want {
			t.Errorf("%v, tools %v, %s: %v", tc.format, tc.tools, tc.special, got)
		}
	}
}
