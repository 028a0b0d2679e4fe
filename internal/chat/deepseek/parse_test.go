package deepseek

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/foretoken/foretoken/internal/chat"
)

// everyWay parses a text whole, byte by byte, and in two pieces cut anywhere.
func everyWay(t *testing.T, name, text string, thinking bool, want Output) {
	t.Helper()
	check := func(how string, got Output) {
		t.Helper()
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Call{}, "Text")); diff != "" {
			t.Fatalf("%s, %s: %s", name, how, diff)
		}
	}
	check("whole", Parse(text, thinking, true))
	cuts := make([]int, len(text))
	for i := range cuts {
		cuts[i] = i
	}
	check("byte by byte", inPieces(text, cuts, thinking, true))
	for cut := 1; cut < min(len(text), 2000); cut++ {
		check("in two", inPieces(text, []int{cut}, thinking, true))
	}
}

// inPieces parses a text that comes in pieces; cuts are sorted.
func inPieces(text string, cuts []int, thinking, tools bool) Output {
	p := NewParser(thinking, tools)
	var deltas []Delta
	at := 0
	for _, cut := range append(cuts, len(text)) {
		deltas = append(deltas, p.Write(text[at:cut])...)
		at = cut
	}
	return collect(append(deltas, p.Close()...))
}

func TestParse(t *testing.T) {
	const invoke = "<|DSML|invoke name=\"f\">\n<|DSML|parameter name=\"k\" string=\"true\">v</|DSML|parameter>\n</|DSML|invoke>\n"
	value := func(text string) string {
		return "<|DSML|tool_calls>\n<|DSML|invoke name=\"f\">\n<|DSML|parameter name=\"k\" string=" + text + "</|DSML|parameter>\n</|DSML|invoke>\n</|DSML|tool_calls>"
	}
	calls := func(arguments ...string) (calls []Call) {
		for _, a := range arguments {
			calls = append(calls, Call{Name: "f", Arguments: a, Complete: true})
		}
		return calls
	}
	f := calls(`{"k": "v"}`)
	for _, c := range []struct {
		name     string
		thinking bool
		text     string
		want     Output
	}{
		{"nothing", true, "", Output{}},
		{"content", false, "Hello.<EOS>", Output{Content: "Hello."}},
		{"reasoning and content are not trimmed", true, "\nr\n</think>\n\nA\n<EOS>", Output{Reasoning: "\nr\n", Content: "\n\nA\n"}},
		{"reasoning without an end", true, "r <thin", Output{Reasoning: "r <thin"}},
		{"marks outside reasoning are text", false, "</think>a<think>", Output{Content: "</think>a<think>"}},
		{"the turn ends", false, "A<EOS>B", Output{Content: "A"}},
		{"beginnings of marks are text in the end", false, "A\n\n<|DS", Output{Content: plain("A\n\n<|DS")}},
		{"less-than signs", true, "1<2\n\n<3</think>1<2\n\n<3", Output{Reasoning: "1<2\n\n<3", Content: "1<2\n\n<3"}},

		{"calls", true, "r</think>A\n\n<|DSML|tool_calls>\n" + invoke + invoke + "</|DSML|tool_calls><EOS>", Output{"r", "A", calls(`{"k": "v"}`, `{"k": "v"}`)}},
		{"the block of V3.2", false, "\n\n<|DSML|function_calls>\n" + invoke + "</|DSML|function_calls>", Output{Calls: f}},
		{"two line breaks belong to the block", false, "A\n\n\n<|DSML|tool_calls>\n" + invoke, Output{Content: "A\n", Calls: f}},
		{"one is enough", false, "A\n<|DSML|tool_calls>\n" + invoke, Output{Content: "A", Calls: f}},
		{"or none", false, "A<|DSML|tool_calls>" + invoke, Output{Content: "A", Calls: f}},
		{"a block ends reasoning", true, "r\n\n<|DSML|tool_calls>\n" + invoke + "</|DSML|tool_calls>\nA", Output{"r", "A", f}},
		{"other tags do not", true, "the tag <|DSML|invoke></think>", Output{Reasoning: plain("the tag <|DSML|invoke>")}},
		{"calls without a block", false, "A\n" + invoke + invoke + "B", Output{"", "AB", calls(`{"k": "v"}`, `{"k": "v"}`)}},
		{"calls that end with the next one", false, "<|DSML|tool_calls><|DSML|invoke name=\"f\"><|DSML|invoke name=\"f\"></|DSML|tool_calls>", Output{Calls: calls("{}", "{}")}},
		{"text within a block", false, "<|DSML|tool_calls>\nHm.\n" + invoke + "</|DSML|tool_calls>", Output{Content: "Hm.", Calls: f}},
		{"text within a call is not read", false, strings.ReplaceAll(invoke, "\n", " Hm <|DSML|x> "), Output{Content: "Hm x> ", Calls: f}},
		{"other tags", false, "a <|DSML|b> c </|DSML|d>", Output{Content: "a b> c d>"}},
		{"a tag in another one", false, "<|DSML|</|DSML|invoke>", Output{}},
		{"a tag that is cut off", false, "A\n<|DSML|tool_", Output{Content: "A"}},
		{"a name that is cut off", false, "A\n<|DSML|invoke name=\"f", Output{Content: "A"}},
		{"a name without an end", false, "<|DSML|invoke name=\"" + strings.Repeat("f", 2000), Output{Content: strings.Repeat("f", 2000)}},
		{"a parameter without an end", false, "<|DSML|invoke name=\"f\"><|DSML|parameter name=\"" + strings.Repeat("k", 2000) + "</|DSML|invoke>", Output{Calls: calls("{}")}},

		{"text", false, value(`"true">a "b"` + "\n\tc\\"), Output{Calls: calls(`{"k": "a \"b\"\n\tc\\"}`)}},
		{"text that looks like JSON", false, value(`"true">[1]`), Output{Calls: calls(`{"k": "[1]"}`)}},
		{"text that ends like a tag begins", false, value(`"true">2>&1 </｜DSML｜para<</&lt;`), Output{Calls: calls(`{"k": "2>&1 </｜DSML｜para<</&lt;"}`)}},
		{"numbers stay as they are", false, value(`"false">1.50`), Output{Calls: calls(`{"k": 1.50}`)}},
		{"JSON", false, value(`"false">{"a": ["<", null]}`), Output{Calls: calls(`{"k": {"a": ["<", null]}}`)}},
		{"no JSON", false, value(`"false">Köln "x"`), Output{Calls: calls(`{"k": "Köln \"x\""}`)}},
		{"a tag in a value", false, value(`"true">&lt;/｜DSML｜parameter&gt; &lt;b&gt;`), Output{Calls: calls(`{"k": "</｜DSML｜parameter> &lt;b&gt;"}`)}},
		{"a value that another tag ends", false, strings.Replace(invoke, "</|DSML|parameter>\n", "", 1), Output{Calls: f}},
		{"a value that says not what it is", false, strings.Replace(invoke, ` string="true"`, "", 1), Output{Calls: f}},
		{"a name with a quote", false, strings.Replace(invoke, `"k"`, `"k">" k"`, 1), Output{Calls: calls(`{"k": "\" k\" string=\"true\">v"}`)}},
		{
			"a call that is cut off", false, "A\n\n<|DSML|invoke name=\"f\">\n<|DSML|parameter name=\"k\" string=\"true\">2>&1 <",
			Output{Content: "A", Calls: []Call{{Name: "f", Arguments: `{"k": "2>&1 <`}}},
		},
	} {
		everyWay(t, c.name, plain(c.text), c.thinking, c.want)
	}
}

// The text of a call is what the model wrote, for the prompts that it will be part of.
func TestCallText(t *testing.T) {
	one := plain("<|DSML|invoke name=\"f\">\n<|DSML|parameter name=\"k\" string=\"false\">1.50</|DSML|parameter>\n</|DSML|invoke>")
	two := plain("<|DSML|invoke name=\"g\">\n\n</|DSML|invoke>")
	text := plain("<|DSML|tool_calls>\n") + one + "\n" + two + plain("\n</|DSML|tool_calls>")
	want := []Call{{"f", `{"k": 1.50}`, one, true}, {"g", "{}", two, true}}
	if diff := cmp.Diff(want, Parse(text, false, true).Calls); diff != "" {
		t.Error(diff)
	}
}

// A conversation goes on from what the model said to the end.
func TestMessage(t *testing.T) {
	o := Output{Reasoning: "r", Calls: []Call{{Name: "f", Arguments: "{}", Complete: true}, {Name: "g", Arguments: `{"k": "`}}}
	want := reasoned("r", "", chat.ToolCall{Name: "f", Arguments: "{}"})
	if diff := cmp.Diff(want, o.Message()); diff != "" {
		t.Error(diff)
	}
}

// Without tools there are no calls.
func TestParseWithoutTools(t *testing.T) {
	text := plain("r<|DSML|tool_calls></think>A\n\n<|DSML|tool_calls><EOS>")
	want := Output{Reasoning: plain("r<|DSML|tool_calls>"), Content: plain("A\n\n<|DSML|tool_calls>")}
	if diff := cmp.Diff(want, Parse(text, true, false)); diff != "" {
		t.Error(diff)
	}
}

// What can be certain is not held back.
func TestHoldBack(t *testing.T) {
	p := NewParser(true, true)
	for _, c := range []struct{ text, want string }{
		{"r <", "[{1 0 r }]"},
		{"b</think", "[{1 0 <b}]"},
		{">A\n\n", "[{2 0 A}]"},
		{"B\n\n<｜DSML", "[{2 0 \n\nB}]"},
		{"｜invoke name=\"f", "[]"},
		{"\">", "[{3 0 f}]"},
		{"<｜DSML｜parameter name=\"k\" string=\"true", "[]"},
		{"\">v", `[{4 0 {"k": "} {4 0 v}]`},
		{"w<", `[{4 0 w}]`},
		{"x\n", `[{4 0 <x\n}]`},
		{"</｜DSML｜parameter>", `[{4 0 "}]`},
		{"<｜DSML｜parameter name=\"n\" string=\"false\">[1", `[{4 0 , "n": }]`},
		{"]</｜DSML｜invoke", "[]"},
	} {
		if got := fmt.Sprint(p.Write(c.text)); got != c.want {
			t.Errorf("%q: got %s, want %s", c.text, got, c.want)
		}
	}
}

func TestThinking(t *testing.T) {
	for _, c := range []struct {
		prompt string
		want   bool
	}{
		{"Q<｜Assistant｜><think>", true},
		{"Q<｜Assistant｜></think>", false},
		{"<think>x<｜Assistant｜></think>", false},
		{"Q<｜Assistant｜><think>as far as I", true},
		{"Q<｜Assistant｜><think>r</think>The answer", false},
		{"Q<｜Assistant｜><think><｜action｜>", false},
		{"", false},
	} {
		if got := Thinking(c.prompt); got != c.want {
			t.Errorf("%s: got %v", c.prompt, got)
		}
	}
}

// drawText makes texts of what could be confused.
func drawText(t *rapid.T, label string, from ...string) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(from), 0, 8).Draw(t, label), "")
}

var words = []string{"a", " ", "\n", "<", "</", "&lt;", "｜", "<｜", "ü", `"`, `\`, "1", "{", "think>", "\x00", "🤔"}

// A message of the assistant is read from a prompt as it was put into it.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.SampledFrom([]*Encoding{v32, v4}).Draw(t, "encoding")
		thinks := rapid.Bool().Draw(t, "thinking")
		want := Output{Content: drawText(t, "content", words...)}
		if thinks {
			want.Reasoning = "r" + strings.ReplaceAll(drawText(t, "reasoning", words...), thinkEnd, "")
		}
		m := reasoned(want.Reasoning, want.Content)
		for range rapid.IntRange(0, 3).Draw(t, "calls") {
			arguments := new(chat.Object)
			for range rapid.IntRange(0, 3).Draw(t, "parameters") {
				arguments.Set(rapid.StringMatching(`[a-zü_ <>]{1,5}`).Draw(t, "key"), rapid.SampledFrom([]chat.Value{
					nil, true, 7, 1.5, chat.NewList("<", 1), chat.NewObject("k", "</"), drawText(t, "value", words...),
				}).Draw(t, "argument"))
			}
			text, err := chat.EncodeJSON(arguments)
			if err != nil {
				t.Fatal(err)
			}
			call := chat.ToolCall{Name: rapid.StringMatching(`[a-z_.-]{1,8}`).Draw(t, "name"), Arguments: text}
			m.ToolCalls = append(m.ToolCalls, call)
			want.Calls = append(want.Calls, Call{Name: call.Name, Arguments: text, Complete: true})
		}
		c := chat.Conversation{Messages: []chat.Message{chat.User("Q")}, Kwargs: chat.NewObject("thinking", thinks), AddGenerationPrompt: true}
		before, err := e.Prompt(c)
		if err != nil {
			t.Fatal(err)
		}
		c.Messages, c.AddGenerationPrompt = append(c.Messages, m), false
		prompt, err := e.Prompt(c)
		if err != nil {
			t.Fatal(err)
		}
		turn, ok := strings.CutPrefix(prompt, before)
		if !ok {
			t.Fatalf("%q does not go on from %q", prompt, before)
		}
		got := Parse(turn, Thinking(before), true)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Call{}, "Text")); diff != "" {
			t.Fatalf("%q: %s", turn, diff)
		}
		if message := got.Message(); message.ReasoningContent != m.ReasoningContent || !cmp.Equal(message.ToolCalls, m.ToolCalls) {
			t.Fatalf("got %+v, want %+v", message, m)
		}
	})
}

// pieces are what the format is made of, whole and broken.
var pieces = append([]string{
	"a", " ", "\n", "\n\n", "<", "</", "｜DSML｜", thinkStart, thinkEnd, eos, `name="`, nameEnd, stringEnd, otherEnd, "f", "1.50", `"`, "{", "&lt;/｜DSML｜parameter&gt;",
	invokeTag + "f" + nameEnd, parameterTag + "k" + stringEnd, parameterTag + "k" + otherEnd,
}, tags...)

// The result does not depend on how the text comes; no tag is content, and arguments are objects.
func TestSplits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 25).Draw(t, "text"), "")
		cuts := rapid.SliceOf(rapid.IntRange(0, len(text))).Draw(t, "cuts")
		checkSplit(t, text, cuts, rapid.Bool().Draw(t, "thinking"), rapid.Bool().Draw(t, "tools"))
	})
}

// Every byte is looked at a bounded number of times: if what is ahead were searched anew for each tag, this
// would take minutes.
func TestParseIsLinear(t *testing.T) {
	call := invokeTag + "f" + nameEnd
	for _, start := range []string{"", call, call + parameterTag + "k" + stringEnd, call + parameterTag + "k" + otherEnd} {
		for _, piece := range append([]string{call + "x<", parameterTag + "k" + stringEnd, "<" + dsml, "</" + dsml + "x"}, tags...) {
			if piece == eos {
				continue
			}
			Parse(start+strings.Repeat(piece, 1<<20/len(piece)), true, true)
			Parse(start+strings.Repeat(piece, 1<<20/len(piece)), false, true)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, piece := range pieces {
		f.Add("r</think>A\n\n"+invokeTag+"f"+nameEnd+piece+parameterTag+"k"+stringEnd+piece+invokeEnd+piece, 3, 40, true, true)
	}
	f.Fuzz(func(t *testing.T, text string, cut, another int, thinking, tools bool) {
		checkSplit(t, text, []int{min(max(cut, 0), len(text)), min(max(another, 0), len(text))}, thinking, tools)
	})
}

func checkSplit(t interface{ Fatalf(string, ...any) }, text string, cuts []int, thinking, tools bool) {
	cuts = slices.Sorted(slices.Values(cuts))
	whole := Parse(text, thinking, tools)
	if diff := cmp.Diff(whole, inPieces(text, cuts, thinking, tools)); diff != "" {
		t.Fatalf("%q cut at %v: %s", text, cuts, diff)
	}
	for _, d := range NewParser(thinking, tools).Write(text) {
		if d.Kind == Content && tools && strings.Contains(d.Text, "<"+dsml) {
			t.Fatalf("%q: content %q", text, d.Text)
		}
	}
	for _, call := range whole.Calls {
		v, err := chat.DecodeJSON([]byte(call.Arguments))
		if _, ok := v.(*chat.Object); call.Complete && !ok && utf8.ValidString(text) {
			t.Fatalf("%q: arguments %q: %v", text, call.Arguments, err)
		}
	}
}
