package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"github.com/foretoken/foretoken/internal/testmodel"
)

// said is what the scripted model writes: it thinks, speaks, and calls a
// function twice.
var said = []string{
	"<think>", "I should", " ask", ".", "</think>", "\n\nLet me see.\n",
	"<tool_call>", `{"name": "weather", "arguments": `, `{"city": "Köln"}`, "}\n", "</tool_call>", "\n<tool_call>\n",
	`{"name": "weather", "arguments":`, ` {"city": "Bonn"}`, "}\n</tool_call>",
}

// heard is how clients are to hear it; they have it as JSON.
type heard struct {
	Reasoning string   `json:"reasoning"`
	Content   string   `json:"content"`
	Function  string   `json:"function"`
	Arguments []string `json:"arguments"` // of each call
	Tagged    string   `json:"tagged"`    // the content where no function was offered
}

var hears = heard{
	Reasoning: "I should ask.", Content: "Let me see.", Function: "weather",
	Arguments: []string{`{"city": "Köln"}`, `{"city": "Bonn"}`},
	Tagged:    "Let me see.\n" + strings.Join(said[6:], ""),
}

// TestScript asks a server of a model that always says the same.
func TestScript(t *testing.T) {
	s := serve(t, testmodel.Scripted(t, said...), "script",
		"--reasoning-parser", "qwen3", "--tool-call-parser", "hermes", "--chat-template", filepath.Join("testdata", "tools.jinja"))
	for _, tc := range []struct {
		name string
		run  func(*testing.T, *server)
	}{
		{"tools", testTools},
		{"tools/stream", testToolsStream},
		{"tools/none", testNoTools},
		{"tools/result", testToolResult},
		{"responses/reasoning", testResponsesReasoning},
		{"embeddings", testEmbeddings},
		{"node", testNodeScript},
		{"python", testPythonScript},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.run(t, s) })
	}
}

// offer is a question with a function that the model may call.
func offer(s *server) openai.ChatCompletionNewParams {
	q := chat(s, openai.UserMessage("How is the weather?"))
	q.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name: "weather", Description: openai.String("of a city"),
		Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}},
	})}
	return q
}

func checkHeard(t *testing.T, m openai.ChatCompletionMessage, reasoning, finish string) {
	t.Helper()
	if m.Content != hears.Content || reasoning != hears.Reasoning || finish != "tool_calls" {
		t.Errorf("reasoning %q, content %q, finished by %q", reasoning, m.Content, finish)
	}
	if len(m.ToolCalls) != len(hears.Arguments) {
		t.Fatalf("%d calls, want %d", len(m.ToolCalls), len(hears.Arguments))
	}
	ids := map[string]bool{}
	for i, call := range m.ToolCalls {
		ids[call.ID] = true
		if call.Type != "function" || call.ID == "" || call.Function.Name != hears.Function || call.Function.Arguments != hears.Arguments[i] || !json.Valid([]byte(call.Function.Arguments)) {
			t.Errorf("call %d is %+v", i, call)
		}
	}
	if len(ids) != len(m.ToolCalls) {
		t.Errorf("calls have the ids %v", ids)
	}
}

func testTools(t *testing.T, s *server) {
	got, err := s.client().Chat.Completions.New(within(t), offer(s))
	succeeded(t, err)
	c := got.Choices[0]
	checkHeard(t, c.Message, extra[string](t, c.Message.JSON.ExtraFields["reasoning_content"].Raw()), c.FinishReason)
	if n, of := got.Usage.CompletionTokensDetails.ReasoningTokens, got.Usage.CompletionTokens; n != 5 || of != int64(len(said)+1) {
		t.Errorf("%d of %d tokens are reasoning", n, of)
	}

	q := offer(s)
	q.ParallelToolCalls = openai.Bool(false)
	got, err = s.client().Chat.Completions.New(within(t), q)
	succeeded(t, err)
	if m := got.Choices[0].Message; len(m.ToolCalls) != 1 || m.ToolCalls[0].Function.Arguments != hears.Arguments[0] {
		t.Errorf("%s, want one call", m.RawJSON())
	}
}

// Calls come in deltas: first who is called, then the arguments, and each before
// the next.
func testToolsStream(t *testing.T, s *server) {
	stream := s.client().Chat.Completions.NewStreaming(within(t), offer(s))
	defer stream.Close()
	var all openai.ChatCompletionAccumulator
	var order []string
	var finished []openai.FinishedChatCompletionToolCall
	var reasoning string
	see := func(kind string) {
		if len(order) == 0 || order[len(order)-1] != kind {
			order = append(order, kind)
		}
	}
	for stream.Next() {
		chunk := stream.Current()
		if !all.AddChunk(chunk) {
			t.Fatalf("the client cannot add %s", chunk.RawJSON())
		}
		if call, ok := all.JustFinishedToolCall(); ok {
			finished = append(finished, call)
		}
		for _, c := range chunk.Choices {
			if f := c.Delta.JSON.ExtraFields["reasoning_content"]; f.Raw() != "" {
				reasoning += extra[string](t, f.Raw())
				see("reasoning")
			}
			if c.Delta.Content != "" {
				see("content")
			}
			for _, call := range c.Delta.ToolCalls {
				switch named := call.ID != ""; {
				case named != (call.Function.Name != "") || named != (call.Type != ""):
					t.Errorf("%s", chunk.RawJSON())
				case named:
					see("call " + string('0'+rune(call.Index)))
				default:
					see("arguments " + string('0'+rune(call.Index)))
				}
			}
		}
	}
	succeeded(t, stream.Err())
	checkHeard(t, all.Choices[0].Message, reasoning, all.Choices[0].FinishReason)
	if got, want := strings.Join(order, ", "), "reasoning, content, call 0, arguments 0, call 1, arguments 1"; got != want {
		t.Errorf("the stream has %s; want %s", got, want)
	}
	if len(finished) != 2 || finished[0].Arguments != hears.Arguments[0] || finished[1].Arguments != hears.Arguments[1] {
		t.Errorf("the client saw the end of %+v", finished)
	}
}

// Without functions, or when none may be called, the marks are text.
func testNoTools(t *testing.T, s *server) {
	q := offer(s)
	q.ToolChoice.OfAuto = openai.String("none")
	for _, q := range []openai.ChatCompletionNewParams{q, chat(s, openai.UserMessage("How is the weather?"))} {
		got, err := s.client().Chat.Completions.New(within(t), q)
		succeeded(t, err)
		if c := got.Choices[0]; c.Message.Content != hears.Tagged || c.FinishReason != "stop" || c.Message.ToolCalls != nil {
			t.Errorf("%s, want %q", c.RawJSON(), hears.Tagged)
		}
	}
	q = offer(s)
	q.ToolChoice.OfAuto = openai.String("required")
	_, err := s.client().Chat.Completions.New(within(t), q)
	refused(t, err, 400, "tool_choice", "")
}

// What the client heard goes back with the results of the calls, and the model
// is shown it.
func testToolResult(t *testing.T, s *server) {
	got, err := s.client().Chat.Completions.New(within(t), offer(s))
	succeeded(t, err)
	q := offer(s)
	m := got.Choices[0].Message
	q.Messages = append(q.Messages, m.ToParam())
	for _, call := range m.ToolCalls {
		q.Messages = append(q.Messages, openai.ToolMessage("rain", call.ID))
	}
	again, err := s.client().Chat.Completions.New(within(t), q, withIDs)
	succeeded(t, err)
	text := s.detokenize(t, extra[[]int64](t, again.JSON.ExtraFields["prompt_token_ids"].Raw()))
	want := `<|im_start|>user
How is the weather?<|im_end|>
<|im_start|>assistant
Let me see.<tool_call>
{"name": "weather", "arguments": {"city": "Köln"}}
</tool_call><tool_call>
{"name": "weather", "arguments": {"city": "Bonn"}}
</tool_call><|im_end|>
<|im_start|>tool
rain<|im_end|>
<|im_start|>tool
rain<|im_end|>
<|im_start|>assistant
`
	if !strings.HasSuffix(text, want) {
		t.Errorf("the model is shown %s\nwant %s", text, want)
	}
}
