package tools

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/foretoken/foretoken/internal/chat"
)

// formats are all that there are, each with one way to mark reasoning.
var formats = func() []Format {
	all := []Format{{}, {Reasoning: "qwen3"}, {Reasoning: "mistral"}}
	for _, calls := range slices.Sorted(maps.Keys(syntaxes)) {
		reasoning := "qwen3"
		if _, ok := thinks[calls]; ok {
			reasoning = calls
		}
		all = append(all, Format{calls, reasoning})
	}
	return all
}()

// pieces are what a format is made of, and what might be confused with it.
func pieces(f Format) []string {
	all := []string{
		"a", " ", "\n", "\n\n", "<", "</", "[", "]", "(", ")", "{", "}", ",", ";", ":", `"`, `\`, "'", "`", "|", ">", "ü", "🤔", "\x00", "\xff",
		"f", "g", "1.50", "null", `"name"`, `"f"`, `"arguments"`, `"parameters"`, `{"name": "f", "arguments": {"i": [1]}}`, `{"i": 1}`,
		"f(i=1)", "f(", "s='x'", "brave_search.call(", "```json\n", "function", "ns.get-it:0", "s", "<think>", "</think>",
	}
	if t := thinks[f.Reasoning]; t.end != "" {
		all = append(all, t.start, t.end)
	}
	if make := syntaxes[f.Calls]; make != nil {
		s := make()
		all = append(all, slices.Concat(s.starts, s.opening, s.again, s.ends)...)
	}
	switch f.Calls {
	case "qwen3_coder", "qwen3_xml", "seed_oss":
		all = append(all, "<function=f>", "<parameter=", "<parameter=s>", "<parameter=o>\n", "\n</parameter>\n")
	case "minimax_m2":
		all = append(all, `<invoke name="f">`, `<parameter name="`, `<parameter name="s">`, `<parameter name="o">`)
	case "glm45", "glm47":
		all = append(all, "<arg_key>", "</arg_key>", "<arg_value>", "<arg_key>s</arg_key><arg_value>", "<arg_key>o</arg_key>\n<arg_value>")
	case "mistral":
		all = append(all, mistralID, mistralArguments)
	case "deepseek_v3", "deepseek_v31":
		all = append(all, deepseekSep)
	case "deepseek_v32", "deepseek_v4":
		all = append(all, "<｜DSML｜tool_calls>", "<｜DSML｜invoke name=\"f\">", "<｜DSML｜parameter name=\"s\" string=\"true\">", "</｜DSML｜invoke>")
	case "kimi_k2":
		all = append(all, kimiArguments, "functions.f:1")
	}
	return all
}

// The result does not depend on how the text comes.
func TestSplits(t *testing.T) {
	for _, f := range formats {
		from := pieces(f)
		t.Run(f.Calls+"/"+f.Reasoning, rapid.MakeCheck(func(t *rapid.T) {
			text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(from), 0, 30).Draw(t, "text"), "")
			cuts := rapid.SliceOf(rapid.IntRange(0, len(text))).Draw(t, "cuts")
			turn := Turn{Reasoning: rapid.Bool().Draw(t, "reasoning")}
			if rapid.IntRange(0, 4).Draw(t, "tools") > 0 {
				turn.Tools = offered
			}
			checkSplit(t, f, turn, text, cuts)
		}))
	}
}

// One target for all parsers: which of them it is, is a part of the input.
func FuzzParsers(f *testing.F) {
	for i, format := range formats {
		from := pieces(format)
		for j := range from {
			f.Add(uint8(i), strings.Join(slices.Concat(from[j:], from[:j]), ""), 3, 40, j%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, format uint8, text string, cut, another int, reasoning bool) {
		cuts := []int{min(max(cut, 0), len(text)), min(max(another, 0), len(text))}
		checkSplit(t, formats[int(format)%len(formats)], Turn{reasoning, offered}, text, cuts)
	})
}

func checkSplit(t interface{ Fatalf(string, ...any) }, f Format, turn Turn, text string, cuts []int) {
	cuts = slices.Sorted(slices.Values(cuts))
	whole := Parse(f, turn, text)
	if diff := cmp.Diff(whole, inPieces(f, turn, text, cuts)); diff != "" {
		t.Fatalf("%v: %q cut at %v: %s", f, text, cuts, diff)
	}
	p := f.NewParser(turn)
	checkOrder(t, f, text, append(p.Write(text), p.Close()...))
	for _, call := range whole.Calls {
		if !strings.Contains(text, call.Text) {
			t.Fatalf("%v: %q: %q was not said", f, text, call.Text)
		}
	}
	if len(turn.Tools) == 0 && len(whole.Calls) > 0 {
		t.Fatalf("%v: %q: calls without tools: %v", f, text, whole.Calls)
	}
	if len(turn.Tools) == 0 && f.Reasoning == "" && whole.Content != text {
		t.Fatalf("%v: %q became %q", f, text, whole.Content)
	}
}

// checkOrder says that calls come one after the other, and whole.
func checkOrder(t interface{ Fatalf(string, ...any) }, f Format, text string, deltas []Delta) {
	open, calls := false, 0
	var arguments strings.Builder
	for _, d := range deltas {
		ok := !open
		switch d.Kind {
		case Reasoning:
			ok = ok && calls == 0
		case CallName:
			ok = ok && d.Call == calls
			open, calls = true, calls+1
			arguments.Reset()
		case CallArguments:
			ok = open && d.Call == calls-1
			arguments.WriteString(d.Text)
		case CallEnd, CallCut:
			ok = open && d.Call == calls-1
			open = false
			checkArguments(t, f, text, d, arguments.String())
		}
		if !ok || d.Text == "" && !f.isDSML() { // in DSML a name may be empty
			t.Fatalf("%v: %q: %v is out of place in %v", f, text, d, deltas)
		}
	}
	if open {
		t.Fatalf("%v: %q: a call is left open: %v", f, text, deltas)
	}
}

// checkArguments says that arguments which are not the model's own JSON are an object.
func checkArguments(t interface{ Fatalf(string, ...any) }, f Format, text string, end Delta, arguments string) {
	ours := strings.HasPrefix(end.Text, "<function=") || strings.HasPrefix(end.Text, "<invoke") || strings.HasSuffix(end.Text, ")")
	if end.Kind != CallEnd || !ours || !utf8.ValidString(text) {
		return
	}
	v, err := chat.DecodeJSON([]byte(arguments))
	if _, ok := v.(*chat.Object); !ok {
		t.Fatalf("%v: %q: arguments %q: %v", f, text, arguments, err)
	}
}

// Every byte is looked at a bounded number of times: if what is held back or ahead were looked at anew with
// each piece or mark, this would take many minutes.
func TestParsersAreLinear(t *testing.T) {
	begun := map[string]string{
		"hermes": `<tool_call>{"name": "f", "arguments": `, "qwen3_coder": "<function=f><parameter=s>", "glm45": "<tool_call>f\n<arg_key>o</arg_key><arg_value>",
		"minimax_m2": `<minimax:tool_call><invoke name="f">`, "llama3_json": "[f(s=", "mistral": "[TOOL_CALLS]f[ARGS]", "deepseek_v3": deepseekCall + "f" + deepseekSep,
		"kimi_k2": kimiCall + "f:0" + kimiArguments, "deepseek_v4": "<｜DSML｜invoke name=\"f\">",
	}
	for calls, start := range begun {
		f := Format{calls, "qwen3"}
		for _, piece := range pieces(f) {
			text := start + strings.Repeat(piece, 1<<16/len(piece))
			Parse(f, Turn{Tools: offered}, text[len(start):])
			Parse(f, Turn{Tools: offered}, start+`{"`+text[len(start):])
			p := f.NewParser(Turn{Tools: offered, Reasoning: len(piece)%2 == 0})
			for at := 0; at < len(text); at += 3 {
				p.Write(text[at:min(at+3, len(text))])
			}
			p.Close()
		}
	}
}

// What is certain is not held back.
func TestHoldBack(t *testing.T) {
	for _, c := range []struct {
		format Format
		steps  [][2]string // written, and what comes of it
	}{
		{Format{"hermes", "qwen3"}, [][2]string{
			{"\n<thi", "[]"},
			{"nk>\n", "[]"},
			{"r ", "[{1 0  r}]"},
			{"s\n</think", "[{1 0   s}]"},
			{">\n", "[]"},
			{"\n", "[]"},
			{"A <", "[{2 0  A}]"},
			{"b>\n", "[{2 0   <b>}]"},
			{"<tool_call>\n{", "[]"},
			{`"name": "f`, "[]"},
			{`"`, "[{3 0  f}]"},
			{`, "arguments": {`, "[{4 0  {}]"},
			{`"s": "<`, `[{4 0  "s": "<}]`},
			{`/tool_call>"}`, `[{4 0  /tool_call>"}}]`},
			{"}", `[{5 0  {"name": "f", "arguments": {"s": "</tool_call>"}}}]`},
			{"\n</tool_", "[]"},
			{"call> B", "[{2 0  B}]"},
		}},
		{Format{Calls: "qwen3_coder"}, [][2]string{
			{"<tool_call>\n<function=f", "[]"},
			{">", "[{3 0  f}]"},
			{"\n<parameter=s>", `[{4 0  {"s": "}]`},
			{"\n", "[]"},
			{`a "`, `[{4 0  a \"}]`},
			{"\n<", "[]"},
			{"b>\n</parameter", `[{4 0  \n<b>}]`},
			{">", `[{4 0  "}]`},
			{"<parameter=i>1", `[{4 0  , "i": }]`},
			{"2", "[]"},
			{"</parameter>", "[{4 0  12}]"},
			{"</function", "[]"},
			{">", "[{4 0  }} {5 0  <function=f>\n<parameter=s>\na \"\n<b>\n</parameter><parameter=i>12</parameter></function>}]"},
		}},
		{Format{Calls: "mistral"}, [][2]string{
			{"A[", "[{2 0  A}]"},
			{"TOOL_CALLS]f[CALL_ID]12", "[]"},
			{"3[ARGS]{", "[{3 0 123 f} {4 0  {}]"},
			{"}", "[{4 0  }} {5 0  f[CALL_ID]123[ARGS]{}}]"},
		}},
		{Format{Calls: "llama3_json"}, [][2]string{
			{`{"name": "f", `, "[]"},
			{`"age": 1`, "[]"},
			{"}", `[{2 0  {"name": "f", "age": 1}}]`},
			{`{`, "[{2 0  {}]"},
		}},
		{Format{Calls: "pythonic"}, [][2]string{
			{"[f(s=')'", "[]"},
			{")", `[{3 0  f} {4 0  {"s": ")"}} {5 0  f(s=')')}]`},
			{", g", "[]"},
			{"()", "[{3 1  g} {4 1  {}} {5 1  g()}]"},
		}},
		{Format{Calls: "pythonic"}, [][2]string{{"[", "[]"}, {"1", "[]"}, {",", "[{2 0  [} {2 0  1,}]"}}},
	} {
		p := c.format.NewParser(Turn{Tools: offered})
		for _, step := range c.steps {
			if got := fmt.Sprint(p.Write(step[0])); got != step[1] {
				t.Errorf("%v: %q: got %s, want %s", c.format, step[0], got, step[1])
			}
		}
	}
}
