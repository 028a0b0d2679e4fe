package deepseek

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/chat"
)

var (
	thinking = chat.NewObject("thinking", true)
	weather  = chat.NewObject("type", "function", "function", chat.NewObject("name", "weather", "description", "Höhe <b> & more"))
	schema   = `{"name": "weather", "description": "Höhe <b> & more"}`

	toolsV32 = "\n\n" + toolsBeforeV32 + schema + toolsAfterV32
	toolsV4  = "\n\n" + toolsBeforeV4 + schema + toolsAfterV4
)

func reasoned(reasoning, content string, calls ...chat.ToolCall) chat.Message {
	m := chat.Assistant(content, calls...)
	m.ReasoningContent = reasoning
	return m
}

func with(m chat.Message, fields ...chat.Value) chat.Message {
	m.Extra = chat.NewObject(fields...)
	return m
}

// plain is a prompt written with plain | in control tokens, and <BOS> and <EOS>.
func plain(s string) string {
	return strings.NewReplacer("<BOS>", bos, "<EOS>", eos, "|", "｜").Replace(s)
}

func TestPrompt(t *testing.T) {
	two := []chat.ToolCall{
		{ID: "a", Name: "weather", Arguments: `{"city": "Köln", "days": 3, "at": [1.0, null]}`},
		{ID: "b", Name: "now", Arguments: " "},
	}
	const invokes = `<|DSML|invoke name="weather">
<|DSML|parameter name="city" string="true">Köln</|DSML|parameter>
<|DSML|parameter name="days" string="false">3</|DSML|parameter>
<|DSML|parameter name="at" string="false">[1.0, null]</|DSML|parameter>
</|DSML|invoke>
<|DSML|invoke name="now">

</|DSML|invoke>
`
	const callsV32 = "\n\n<|DSML|function_calls>\n" + invokes + "</|DSML|function_calls>"
	const callsV4 = "\n\n<|DSML|tool_calls>\n" + invokes + "</|DSML|tool_calls>"
	ask := chat.User("Q")
	round := []chat.Message{ask, reasoned("r", "I look.", two...), chat.ToolResult("b", "now", "noon"), chat.ToolResult("a", "weather", "rain")}

	for _, c := range []struct {
		name string
		c    chat.Conversation
		v32  string
		v4   string
	}{
		{
			"by default the model does not think",
			chat.Conversation{Messages: []chat.Message{chat.System("S"), ask}, AddGenerationPrompt: true},
			"<BOS>S<|User|>Q<|Assistant|></think>",
			"<BOS>S<|User|>Q<|Assistant|></think>",
		},
		{
			"thinking, by any name",
			chat.Conversation{Messages: []chat.Message{ask}, Kwargs: chat.NewObject("enable_thinking", true, "thinking", nil)},
			"<BOS><|User|>Q<|Assistant|><think>",
			"<BOS><|User|>Q<|Assistant|><think>",
		},
		{
			"an effort means thinking",
			chat.Conversation{Messages: []chat.Message{ask}, Kwargs: chat.NewObject("reasoning_effort", "low")},
			"<BOS><|User|>Q<|Assistant|><think>",
			"<BOS><|User|>Q<|Assistant|><think>",
		},
		{
			"the greatest effort",
			chat.Conversation{Messages: []chat.Message{chat.System("S"), ask}, Kwargs: chat.NewObject("reasoning_effort", "max")},
			"<BOS>S<|User|>Q<|Assistant|><think>",
			"<BOS>" + effortMax + "S<|User|>Q<|Assistant|><think>",
		},
		{
			"no effort, or thinking switched off",
			chat.Conversation{Messages: []chat.Message{ask}, Kwargs: chat.NewObject("reasoning_effort", "max", "enable_thinking", false)},
			"<BOS><|User|>Q<|Assistant|></think>",
			"<BOS><|User|>Q<|Assistant|></think>",
		},
		{
			"no beginning of sentence",
			chat.Conversation{Messages: []chat.Message{ask}, Kwargs: chat.NewObject("add_default_bos_token", false)},
			"<|User|>Q<|Assistant|></think>",
			"<|User|>Q<|Assistant|></think>",
		},
		{
			"tools of the conversation go to the system message",
			chat.Conversation{Messages: []chat.Message{ask, chat.System("S")}, Tools: []chat.Value{weather}},
			"<BOS><|User|>Q<|Assistant|></think>S" + toolsV32,
			"<BOS><|User|>QS" + toolsV4,
		},
		{
			"or to one of their own",
			chat.Conversation{Messages: []chat.Message{ask}, Tools: []chat.Value{weather}},
			"<BOS>" + toolsV32 + "<|User|>Q<|Assistant|></think>",
			"<BOS>" + toolsV4 + "<|User|>Q<|Assistant|></think>",
		},
		{
			"a developer has tools and a format",
			chat.Conversation{Messages: []chat.Message{with(
				chat.Message{Role: "developer", Content: "Q"}, "tools", chat.NewList(weather), "response_format", chat.NewObject("type", "object"),
			)}, Kwargs: thinking},
			"<BOS><|User|>" + toolsV32 + "\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n" +
				`{"type": "object"}` + "\n\n# The user's message is: Q<|Assistant|><think>",
			"<BOS><|User|>Q" + toolsV4 + "\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n" +
				`{"type": "object"}` + "<|Assistant|><think>",
		},
		{
			"calls and results: V4 puts them in the order of the calls, and takes them for a message of the user",
			chat.Conversation{Messages: round, Kwargs: thinking, AddGenerationPrompt: true},
			"<BOS><|User|>Q<|Assistant|><think>r</think>I look." + callsV32 + "<EOS>\n\n<function_results>\n<result>noon</result>\n<result>rain</result>\n</function_results>\n\n<think>",
			"<BOS><|User|>Q<|Assistant|></think>I look." + callsV4 + "<EOS><|User|><tool_result>rain</tool_result>\n\n<tool_result>noon</tool_result><|Assistant|><think>",
		},
		{
			"results that are missing leave their group open",
			chat.Conversation{Messages: round[:3]},
			"<BOS><|User|>Q<|Assistant|></think>I look." + callsV32 + "<EOS>\n\n<function_results>\n<result>noon</result>",
			"<BOS><|User|>Q<|Assistant|></think>I look." + callsV4 + "<EOS><|User|><tool_result>noon</tool_result><|Assistant|></think>",
		},
		{
			"reasoning is forgotten with the next message of the user",
			chat.Conversation{Messages: []chat.Message{ask, reasoned("r", "A"), ask}, Kwargs: thinking},
			"<BOS><|User|>Q<|Assistant|></think>A<EOS><|User|>Q<|Assistant|><think>",
			"<BOS><|User|>Q<|Assistant|></think>A<EOS><|User|>Q<|Assistant|><think>",
		},
		{
			"V4 keeps it when told to",
			chat.Conversation{Messages: []chat.Message{ask, reasoned("r", "A"), ask}, Kwargs: chat.NewObject("thinking", true, "drop_thinking", false)},
			"<BOS><|User|>Q<|Assistant|></think>A<EOS><|User|>Q<|Assistant|><think>",
			"<BOS><|User|>Q<|Assistant|><think>r</think>A<EOS><|User|>Q<|Assistant|><think>",
		},
		{
			"and where there are tools",
			chat.Conversation{Messages: []chat.Message{with(chat.System(""), "tools", chat.NewList(weather)), ask, chat.Assistant("A"), ask}, Kwargs: thinking},
			"<BOS>" + toolsV32 + "<|User|>Q<|Assistant|></think>A<EOS><|User|>Q<|Assistant|><think>",
			"<BOS>" + toolsV4 + "<|User|>Q<|Assistant|><think></think>A<EOS><|User|>Q<|Assistant|><think>",
		},
		{
			"answered developer messages are forgotten",
			chat.Conversation{Messages: []chat.Message{{Role: "developer", Content: "D"}, chat.Assistant("A"), ask}, Kwargs: thinking},
			"<BOS>A<EOS><|User|>Q<|Assistant|><think>",
			"<BOS>A<EOS><|User|>Q<|Assistant|><think>",
		},
		{
			"but not without thinking",
			chat.Conversation{Messages: []chat.Message{{Role: "developer", Content: "D"}, chat.Assistant("A"), ask}},
			"<BOS><|User|>\n\n# The user's message is: D<|Assistant|></think>A<EOS><|User|>Q<|Assistant|></think>",
			"<BOS><|User|>D<|Assistant|></think>A<EOS><|User|>Q<|Assistant|></think>",
		},
		{
			"parts",
			chat.Conversation{Messages: []chat.Message{{Role: "user", Content: chat.TextParts("one", "two")}}},
			"<BOS><|User|>one\ntwo<|Assistant|></think>",
			"<BOS><|User|>one\ntwo<|Assistant|></think>",
		},
		{
			"the last message is continued",
			chat.Conversation{Messages: []chat.Message{ask, reasoned("r", "The answer is ")}, Kwargs: thinking, ContinueFinalMessage: true},
			"<BOS><|User|>Q<|Assistant|><think>r</think>The answer is ",
			"<BOS><|User|>Q<|Assistant|><think>r</think>The answer is ",
		},
		{
			"a message without its end",
			chat.Conversation{Messages: []chat.Message{ask, with(chat.Assistant("The"), "wo_eos", true)}, AddGenerationPrompt: true},
			"<BOS><|User|>Q<|Assistant|></think>The",
			"<BOS><|User|>Q<|Assistant|></think>The",
		},
		{
			"fields that others have",
			chat.Conversation{Messages: []chat.Message{with(ask, "mask", 1, "tools", nil)}},
			"<BOS><|User|>Q<|Assistant|></think>",
			"<BOS><|User|>Q<|Assistant|></think>",
		},
	} {
		for e, want := range map[*Encoding]string{v32: c.v32, v4: c.v4} {
			got, err := e.Prompt(c.c)
			if err != nil {
				t.Errorf("%s, %s: %v", c.name, e.block, err)
			} else if diff := cmp.Diff(plain(want), strings.ReplaceAll(got, "|", "｜")); diff != "" {
				t.Errorf("%s, %s: %s", c.name, e.block, diff)
			}
		}
	}
}

// What V4 alone has.
func TestPromptV4(t *testing.T) {
	call := chat.ToolCall{ID: "a", Name: "f", Arguments: "{no JSON"}
	task := func(m chat.Message, name string) chat.Message { return with(m, "task", name) }
	for _, c := range []struct {
		name     string
		kwargs   *chat.Object
		messages []chat.Message
		want     string
	}{
		{"messages in a row are one", nil, []chat.Message{chat.User("1"), chat.User("2")}, "<BOS><|User|>1\n\n2<|Assistant|></think>"},
		{
			"so are results and what the user adds", nil,
			[]chat.Message{chat.User("Q"), chat.Assistant("", chat.ToolCall{ID: "a", Name: "f"}), chat.ToolResult("a", "f", "1"), chat.User("2")},
			"<BOS><|User|>Q<|Assistant|></think>\n\n<|DSML|tool_calls>\n<|DSML|invoke name=\"f\">\n\n</|DSML|invoke>\n</|DSML|tool_calls><EOS>" +
				"<|User|><tool_result>1</tool_result>\n\n2<|Assistant|></think>",
		},
		{
			"texts keep their places among results, which unknown ids begin", nil,
			[]chat.Message{
				chat.Assistant("", chat.ToolCall{ID: "a", Name: "f"}, chat.ToolCall{ID: "b", Name: "f"}),
				chat.ToolResult("b", "", "B"), chat.User("and"), chat.ToolResult("x", "", "X"), chat.ToolResult("a", "", "A"),
			},
			"<BOS>\n\n<|DSML|tool_calls>\n<|DSML|invoke name=\"f\">\n\n</|DSML|invoke>\n<|DSML|invoke name=\"f\">\n\n</|DSML|invoke>\n</|DSML|tool_calls><EOS>" +
				"<|User|><tool_result>X</tool_result>\n\nand\n\n<tool_result>A</tool_result>\n\n<tool_result>B</tool_result><|Assistant|></think>",
		},
		{
			"arguments that are no object", nil,
			[]chat.Message{chat.Assistant("", call)},
			"<BOS>\n\n<|DSML|tool_calls>\n<|DSML|invoke name=\"f\">\n<|DSML|parameter name=\"arguments\" string=\"true\">{no JSON</|DSML|parameter>\n" +
				"</|DSML|invoke>\n</|DSML|tool_calls><EOS>",
		},
		{
			"a result in parts", nil,
			[]chat.Message{{Role: "tool", Content: chat.NewList(chat.NewObject("type", "text", "text", "1"), chat.NewObject("type", "image_url"))}},
			"<BOS><|User|><tool_result>1\n\n[Unsupported image_url]</tool_result><|Assistant|></think>",
		},
		{
			"a reminder", nil,
			[]chat.Message{chat.System("S"), {Role: "latest_reminder", Content: "today"}, chat.User("Q")},
			"<BOS>S<|latest_reminder|>today<|User|>Q<|Assistant|></think>",
		},
		{
			"a reminder after the user", nil,
			[]chat.Message{chat.User("Q"), {Role: "latest_reminder", Content: "today"}, chat.User("Q")},
			"<BOS><|User|>Q<|Assistant|></think><|latest_reminder|>today<|User|>Q<|Assistant|></think>",
		},
		{
			"a result after a task", nil,
			[]chat.Message{task(chat.User("Q"), "query"), chat.ToolResult("a", "f", "1"), chat.User("2")},
			"<BOS><|User|>Q\n\n<tool_result>1</tool_result><|User|>2<|Assistant|></think>",
		},
		{"a task", thinking, []chat.Message{task(chat.User("Q"), "query")}, "<BOS><|User|>Q<|query|>"},
		{
			"what answers a task has no reasoning", thinking,
			[]chat.Message{chat.User("Q"), task(chat.User("and"), "query"), reasoned("r", "A")},
			"<BOS><|User|>Q\n\nand<|query|>A<EOS>",
		},
		{"the task of an action", thinking, []chat.Message{task(chat.User("Q"), "action")}, "<BOS><|User|>Q<|Assistant|><think><|action|>"},
		{
			"a title", nil,
			[]chat.Message{chat.User("Q"), task(chat.Assistant("A"), "title")},
			"<BOS><|User|>Q<|Assistant|></think>A<EOS><|title|>",
		},
	} {
		got, err := v4.Prompt(chat.Conversation{Messages: c.messages, Kwargs: c.kwargs})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if diff := cmp.Diff(plain(c.want), got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// Results that do not say which call they answer are of the first one. Those of one call stay in order.
func TestManyResults(t *testing.T) {
	c := chat.Conversation{Messages: []chat.Message{chat.Assistant("", chat.ToolCall{ID: "a", Name: "f"}, chat.ToolCall{Name: "f"}, chat.ToolCall{ID: "b", Name: "f"})}}
	var first, second string
	for i := range 60 {
		id := []string{"b", "", "a", "b", "x"}[i%5]
		c.Messages = append(c.Messages, chat.ToolResult(id, "f", strconv.Itoa(i)))
		result := fmt.Sprintf("<tool_result>%d</tool_result>\n\n", i)
		if id == "b" {
			second += result
		} else {
			first += result
		}
	}
	got, err := v4.Prompt(c)
	_, results, _ := strings.Cut(got, userMark)
	results, _, _ = strings.Cut(results, assistantMark)
	if diff := cmp.Diff(first+second, results+"\n\n"); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
}

func TestPromptRefuses(t *testing.T) {
	ask := chat.User("Q")
	one := func(m chat.Message) chat.Conversation { return chat.Conversation{Messages: []chat.Message{m}} }
	option := func(name string, v chat.Value) chat.Conversation {
		return chat.Conversation{Messages: []chat.Message{ask}, Kwargs: chat.NewObject(name, v)}
	}
	image := chat.NewList(chat.NewObject("type", "image_url"))
	call := chat.ToolCall{ID: "a", Name: "f", Arguments: "{}"}
	const both, only32 = "both", "V3.2"
	for _, c := range []struct {
		c     chat.Conversation
		which string
		want  string
	}{
		{chat.Conversation{}, both, "the conversation has no messages"},
		{chat.Conversation{Messages: []chat.Message{ask}, AddGenerationPrompt: true, ContinueFinalMessage: true}, both, "add_generation_prompt and continue_final_message exclude each other"},
		{option("thinking", "yes"), both, "template variable thinking: expected true or false"},
		{option("reasoning_effort", "huge"), both, "template variable reasoning_effort: expected none, minimal, low, medium, high, xhigh or max"},
		{option("reasoning_effort", 1), both, "template variable reasoning_effort: expected none, minimal, low, medium, high, xhigh or max"},
		{option("drop_thinking", 1), both, "template variable drop_thinking: expected true or false"},
		{option("documents", image), both, "template variable documents: this model has no chat template; it knows thinking, enable_thinking, reasoning_effort, drop_thinking, add_default_bos_token"},
		{
			chat.Conversation{Messages: []chat.Message{ask}, Kwargs: chat.NewObject("thinking", true, "enable_thinking", false)},
			both,
			"template variable enable_thinking: it contradicts thinking",
		},
		{one(chat.Message{Role: "critic", Content: "x"}), both, "message 1 (critic): this model knows no such role"},
		{one(chat.Message{Role: "latest_reminder", Content: "x"}), only32, "message 1 (latest_reminder): this model knows no such role"},
		{one(chat.Message{Role: "developer", Content: ""}), both, "message 1 (developer): content is empty"},
		{one(chat.Message{Role: "user"}), both, "message 1 (user): content is missing"},
		{one(chat.Message{Role: "user", Content: 1}), both, "message 1 (user): content: expected a string, null or a list of parts, not int"},
		{one(chat.Message{Role: "user", Content: image}), both, `message 1 (user): content part 1: expected type "text", not "image_url": this model takes no other input`},
		{one(chat.Message{Role: "user", Content: "x", ReasoningContent: "r"}), both, "message 1 (user): only the assistant reasons and calls tools"},
		{one(with(ask, "tools", chat.NewList(weather))), both, "message 1 (user): tools: only system and developer messages have it"},
		{one(with(chat.System("S"), "tools", weather)), both, "message 1 (system): tools: expected a list"},
		{one(with(chat.System("S"), "tools", chat.NewList(1))), both, "message 1 (system): tools: tool 1: expected an object with a function, an object itself"},
		{one(with(ask, "task", "cook")), both, "message 1 (user): task: this model knows no such task"},
		{one(with(ask, "task", "query")), only32, "message 1 (user): task: this model knows no such task"},
		{one(with(ask, "wo_eos", "yes")), both, "message 1 (user): wo_eos: expected true or false"},
		{chat.Conversation{Messages: []chat.Message{ask}, Tools: []chat.Value{1}}, both, "tool 1: expected an object with a function, an object itself"},
		{
			chat.Conversation{Messages: []chat.Message{ask, with(chat.System("S"), "tools", chat.NewList(weather))}, Tools: []chat.Value{weather}},
			both,
			"message 2 (system): both it and the conversation have tools",
		},
		{
			chat.Conversation{Messages: []chat.Message{ask, chat.Assistant("", chat.ToolCall{Name: "f", Arguments: "{x"})}},
			only32,
			"message 2 (assistant): tool call 1 (f): arguments: json: offset 1: expected a key",
		},
		{
			chat.Conversation{Messages: []chat.Message{ask, chat.Assistant("", chat.ToolCall{Name: "f", Arguments: "[1]"})}},
			only32,
			"message 2 (assistant): tool call 1 (f): arguments: expected a JSON object",
		},
		{
			chat.Conversation{Messages: []chat.Message{ask, chat.Assistant("A")}, Kwargs: thinking},
			only32,
			"message 2 (assistant): expected reasoning_content or tool_calls: in thinking mode every answer since the last message of the user has them",
		},
		{
			chat.Conversation{Messages: []chat.Message{ask, chat.Assistant("", call), chat.ToolResult("a", "f", "1"), chat.ToolResult("a", "f", "2")}},
			only32,
			"message 4 (tool): it answers none of the 1 calls before it",
		},
		{
			chat.Conversation{Messages: []chat.Message{chat.Assistant("", call), ask, chat.ToolResult("a", "f", "1")}},
			only32,
			"message 3 (tool): it answers none of the 0 calls before it",
		},
		{
			chat.Conversation{Messages: []chat.Message{chat.Assistant("", call, call), chat.ToolResult("a", "f", "1")}, AddGenerationPrompt: true},
			only32,
			"message 2 (tool) is the last one, and leaves nothing for the model to say",
		},
		{
			chat.Conversation{Messages: []chat.Message{ask, chat.Assistant("A")}, AddGenerationPrompt: true},
			both,
			"message 2 (assistant) is the last one, and leaves nothing for the model to say",
		},
		{chat.Conversation{Messages: []chat.Message{ask}, ContinueFinalMessage: true}, both, "continue_final_message: the last message has no text to continue"},
		{
			chat.Conversation{Messages: []chat.Message{ask, chat.Assistant("A", call)}, ContinueFinalMessage: true},
			both,
			"continue_final_message: the last message has no text to continue",
		},
	} {
		for _, e := range []*Encoding{v32, v4} {
			got, err := e.Prompt(c.c)
			switch {
			case c.which == only32 && e == v4:
				if err != nil {
					t.Errorf("V4: %v", err)
				}
			case err == nil || err.Error() != c.want:
				t.Errorf("%s: got %q, %v\nwant %s", e.block, got, err, c.want)
			}
		}
	}
}

func TestFor(t *testing.T) {
	for name, want := range map[string]*Encoding{
		"deepseek_v32": v32, "deepseek32": v32, "deepseek_v4": v4, "deepseek4": v4, "deepseek_v3": nil, "deepseek2": nil, "llama": nil,
	} {
		if got := For(name); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
