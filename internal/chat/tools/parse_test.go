package tools

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foretoken/foretoken/internal/chat"
)

// offered are the tools of these tests: f, whose parameters are of all types, g, and some with other names.
var offered = func() []chat.Value {
	parse := func(schema string) chat.Value {
		v, err := chat.DecodeJSON([]byte(schema))
		if err != nil {
			panic(err)
		}
		return v
	}
	tool := func(name, schema string) chat.Value {
		return chat.NewObject("type", "function", "function", chat.NewObject("name", name, "parameters", parse(schema)))
	}
	return []chat.Value{
		tool("f", `{
			"type": "object",
			"properties": {
				"s": {"type": "string"}, "i": {"type": "integer"}, "n": {"type": "number"}, "b": {"type": "boolean"},
				"l": {"type": "array", "items": {}}, "o": {"type": "object"}, "any": {"description": "?"},
				"is": {"type": ["integer", "string"]}, "ns": {"type": ["string", "null"]},
				"anyOf": {"anyOf": [{"type": "boolean"}, {"$ref": "#/$defs/item"}]}, "enum": {"enum": ["1", "2"]},
				"items": {"items": {"type": "string"}}, "properties": {"properties": {}}, "ref": {"$ref": "#/$defs/item"},
				"loop": {"$ref": "#/$defs/loop"}, "far": {"anyOf": [{"$ref": "x.json#/y"}, {"$ref": "#/type/z"}, {"$ref": 1}]}, "allOf": {"allOf": [{"$ref": "#/$defs/item"}]}
			},
			"$defs": {"item": {"type": "integer"}, "loop": {"anyOf": [{"$ref": "#/$defs/loop"}, {"$ref": "#/$defs/loop"}]}}
		}`),
		tool("g", `{"type": "object", "properties": {}}`),
		tool("brave_search", `{"type": "object", "properties": {"query": {"type": "string"}}}`),
		tool("ns.get-it", `{}`),
	}
}()

// A parsing is a text and what it has to become.
type parsing struct {
	name string
	text string
	want Output
}

// answer is an output without reasoning; calls are names and arguments in turn.
func answer(content string, calls ...string) Output {
	o := Output{Content: content}
	for i := 0; i < len(calls); i += 2 {
		o.Calls = append(o.Calls, Call{Name: calls[i], Arguments: calls[i+1]})
	}
	return o
}

func thought(reasoning, content string, calls ...string) Output {
	o := answer(content, calls...)
	o.Reasoning = reasoning
	return o
}

// checkAll parses each text whole, byte by byte, in two pieces cut anywhere, and in pieces as speculation
// gives them, of several tokens at once.
func checkAll(t *testing.T, f Format, turn Turn, table []parsing) {
	t.Helper()
	turn.Tools = offered
	for _, c := range table {
		check := func(how string, cuts ...int) bool {
			t.Helper()
			diff := cmp.Diff(c.want, inPieces(f, turn, c.text, cuts), cmpopts.IgnoreFields(Call{}, "Text"))
			if diff != "" {
				t.Errorf("%s: %s, %s: %q: %s", f.Calls, c.name, how, c.text, diff)
			}
			return diff == ""
		}
		ok := check("whole")
		for cut := 1; ok && cut < min(len(c.text), 1000); cut++ {
			ok = check("in two", cut)
		}
		for size := 1; ok && size < 24; size++ {
			var cuts []int
			for cut := size; cut < len(c.text); cut += size {
				cuts = append(cuts, cut)
			}
			ok = check("in pieces of a size", cuts...)
		}
	}
}

// inPieces parses a text that comes in pieces; cuts are sorted.
func inPieces(f Format, turn Turn, text string, cuts []int) Output {
	p := f.NewParser(turn)
	var deltas []Delta
	at := 0
	for _, cut := range append(cuts, len(text)) {
		deltas = append(deltas, p.Write(text[at:cut])...)
		at = cut
	}
	return Collect(append(deltas, p.Close()...))
}

func TestReasoning(t *testing.T) {
	qwen := Format{"hermes", "qwen3"}
	const call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>"
	checkAll(t, qwen, Turn{}, []parsing{
		{"none", "Hello.", answer("Hello.")},
		{"nothing", "", Output{}},
		{"and an answer", "<think>\nr\n</think>\n\nA", thought("r", "A")},
		{"empty", "<think>\n\n</think>\n\nA", thought("", "A")},
		{"one line break belongs to the mark", "<think>\n\nr\n\n\n</think>\n\n\nA", thought("\nr", "\nA")},
		{"other whitespace does not", "\n <think> r \n</think> A ", thought(" r ", " A ")},
		{"without an end", "<think>\nr\n</thin", thought("r\n</thin", "")},
		{"a start within", "<think>a<think>b</think>c", thought("a<think>b", "c")},
		{"an end outside", "a</think>b", answer("a</think>b")},
		{"a start later", "The mark <think> is text.</think>", answer("The mark <think> is text.</think>")},
		{"twice", "<think>a</think><think>b</think>", thought("a", "<think>b</think>")},
		{"calls within are text", "<think>" + call + "</think>A", thought(call, "A")},
		{"then a call", "<think>\nr\n</think>\n\n" + call, thought("r", "", "f", "{}")},
		{"then an answer and a call", "<think>r</think>\n\nA\n\n" + call, thought("r", "A", "f", "{}")},
	})
	checkAll(t, qwen, Turn{Reasoning: true}, []parsing{
		{"nothing", "", Output{}},
		{"goes on", "\nr\n</think>\n\nA", thought("r", "A")},
		{"and a mark again", "<think>\nr</think>A", thought("<think>\nr", "A")},
		{"cut off", "r\n", thought("r\n", "")},
		{"nothing but the end", "</think>A", thought("", "A")},
	})
	checkAll(t, Format{"", "mistral"}, Turn{}, []parsing{
		{"Magistral", "[THINK]r[1][/THIS][/THINK]A [THINK]", thought("r[1][/THIS]", "A [THINK]")},
	})
	checkAll(t, Format{"hermes", ""}, Turn{}, []parsing{
		{"not told apart", "<think>r</think>A", answer("<think>r</think>A")},
	})
}

func TestHermes(t *testing.T) {
	block := func(s string) string { return "<tool_call>\n" + s + "\n</tool_call>" }
	checkAll(t, Format{Calls: "hermes"}, Turn{}, []parsing{
		{"a call", block(`{"name": "f", "arguments": {"s": "x"}}`), answer("", "f", `{"s": "x"}`)},
		{"two", block(`{"name": "f", "arguments": {}}`) + "\n" + block(`{"name": "g", "arguments": {"a": 1}}`), answer("", "f", "{}", "g", `{"a": 1}`)},
		{"behind an answer", "A\n\n" + block(`{"name": "g"}`), answer("A", "g", "{}")},
		{"in front of one", block(`{"name": "g"}`) + "\n\nA\n", answer("A\n", "g", "{}")},
		{"no whitespace", `<tool_call>{"name":"f","arguments":{"i":1}}</tool_call>`, answer("", "f", `{"i":1}`)},
		{"much whitespace", "<tool_call>\n\n  {\t\"name\"\n:\r\"f\" , \"arguments\" : { \"i\" : 1 } }\n\n</tool_call>\n", answer("", "f", `{ "i" : 1 }`)},
		{"bytes are kept", block(`{"name": "f", "arguments": {"n": 1.50, "i": 1e3,"é":"\u00e9\/"}}`), answer("", "f", `{"n": 1.50, "i": 1e3,"é":"\u00e9\/"}`)},
		{"arguments before the name", block(`{"arguments": {"i": [1, {"a": "}"}]}, "name": "f"}`), answer("", "f", `{"i": [1, {"a": "}"}]}`)},
		{"other fields", block(`{"type": "function", "x": {"name": "g"}, "name": "f", "y": 1, "arguments": {}, "z": [null]}`), answer("", "f", "{}")},
		{"an id", block(`{"id": "abc", "name": "f", "arguments": {}}`), Output{Calls: []Call{{ID: "abc", Name: "f", Arguments: "{}"}}}},
		{"parameters", block(`{"name": "f", "parameters": {"i": 1}}`), answer("", "f", `{"i": 1}`)},
		{"marks in a string", block(`{"name": "f", "arguments": {"s": "</tool_call>\n<tool_call>{\"}"}}`), answer("", "f", `{"s": "</tool_call>\n<tool_call>{\"}"}`)},
		{"a backslash at the end", block(`{"name": "f", "arguments": {"s": "C:\\"}}`), answer("", "f", `{"s": "C:\\"}`)},
		{"numbers at the end, vllm#32152", block(`{"name": "f", "arguments": {"i": 42}}`), answer("", "f", `{"i": 42}`)},
		{"nested at the end, vllm#32152", block(`{"name": "f", "arguments": {"o": {"l": [{}]}}}`), answer("", "f", `{"o": {"l": [{}]}}`)},
		{"booleans and null, vllm#10395", block(`{"name": "f", "arguments": {"b": false, "o": null}}`), answer("", "f", `{"b": false, "o": null}`)},
		{"repeated values, vllm#19056", block(`{"name": "f", "arguments": {"s": "f", "o": {"s": "f"}}}`), answer("", "f", `{"s": "f", "o": {"s": "f"}}`)},
		{"empty arguments, vllm#21544", block(`{"name": "g", "arguments": {}}`), answer("", "g", "{}")},
		{"a list, vllm#21360", `<tool_call>[{"name": "f", "arguments": {}}, {"name": "g", "arguments": {"l": [{"a": 1}]}}]</tool_call>`, answer("", "f", "{}", "g", `{"l": [{"a": 1}]}`)},
		{"two objects", block(`{"name": "f", "arguments": {}}` + "\n" + `{"name": "g", "arguments": {}}`), answer("", "f", "{}", "g", "{}")},
		{"a stray mark, vllm#53638", "<tool_call>\nLet me see <tool_call>\n" + `{"name": "f", "arguments": {"i": 1}}` + "\n</tool_call>", answer("<tool_call>\nLet me see", "f", `{"i": 1}`)},

		{"no mark, llama.cpp#18183", `{"name": "f", "arguments": {}}`, answer(`{"name": "f", "arguments": {}}`)},
		{"a mark in prose", "The mark <tool_call> begins a call, </tool_call> ends it.", answer("The mark <tool_call> begins a call, </tool_call> ends it.")},
		{"beginnings of marks", "a < b <tool <tool_call", answer("a < b <tool <tool_call")},
		{"a function that is not offered", "A\n" + block(`{"name": "h", "arguments": {}}`) + "\n", answer("A\n" + block(`{"name": "h", "arguments": {}}`) + "\n")},
		{"no name", block(`{"arguments": {"s": "<tool_call>"}}`), answer(block(`{"arguments": {"s": "<tool_call>"}}`))},
		{"a name that is no string", block(`{"name": ["f"]}`), answer(block(`{"name": ["f"]}`))},
		{"no object", block(`f`), answer(block(`f`))},
		{"no JSON", block(`{f: 1}`), answer(block(`{f: 1}`))},
		{"a long name", block(`{"name": "` + strings.Repeat("f", 2000) + `"}`), answer(block(`{"name": "` + strings.Repeat("f", 2000) + `"}`))},

		{"the last brace is missing", "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"i\": 1}\n</tool_call>A", answer("A", "f", `{"i": 1}`)},
		{"one too many", block(`{"name": "f", "arguments": {"i": 1}}}`) + "A", answer("A", "f", `{"i": 1}`)},
		{"no end", `<tool_call>{"name": "f", "arguments": {"i": 1}}`, answer("", "f", `{"i": 1}`)},
		{"no end in front of the next", `<tool_call>{"name": "f", "arguments": {}}<tool_call>{"name": "g"}`, answer("", "f", "{}", "g", "{}")},
		{"text in front of the end", `<tool_call>{"name": "f", "arguments": {}} Done.</tool_call> A`, answer("Done. A", "f", "{}")},
		{"arguments that are no JSON", block(`{"name": "f", "arguments": {"b": True, 'i': }}`), answer("", "f", `{"b": True, 'i': }`)},
		{"arguments that the end cuts off", block(`{"name": "f", "arguments": {"i": 1`) + "A", answer("A", "f", "{\"i\": 1\n")},
		{"something behind the arguments", block(`{"name": "f", "arguments": {} x}`), answer("x}\n", "f", "{}")},

		{"arguments that are no object", block(`{"name": "f", "arguments": "a"}`) + block(`{"name": "f", "arguments": 1}`) + block(`{"name": "f", "arguments": 1{}}`), answer("{}}\n", "f", `"a"`, "f", "1", "f", "1")},
		{"a string behind them", block(`{"name": "f", "arguments": 1"a"}`), answer("", "f", "1")},
		{"escapes in a name", block(`{"n\u0061me": "\u0066"}`) + block(`{"name": "g\x"}`), answer("<tool_call>\n{\"name\": \"g\\x\"}\n", "f", "{}")},
		{"cut off in the name", `A <tool_call>{"name": "f`, answer(`A <tool_call>{"name": "f`)},
		{"cut off behind the name", `A <tool_call>{"name": "f", `, answer(`A<tool_call>{"name": "f", `)},
		{"cut off in the arguments", `<tool_call>{"name": "g"}</tool_call><tool_call>{"name": "f", "arguments": {"s": "x`, answer(`<tool_call>{"name": "f", "arguments": {"s": "x`, "g", "{}")},
		{"cut off behind them", `<tool_call>{"name": "f", "arguments": {"s": "x"}`, answer("", "f", `{"s": "x"}`)},
	})
	checkAll(t, Format{Calls: "granite"}, Turn{}, []parsing{
		{"a list", `<|tool_call|>[{"name": "f", "arguments": {"i": 1}}, {"name": "g", "arguments": {}}]`, answer("", "f", `{"i": 1}`, "g", "{}")},
		{"of another generation", `<tool_call>[{"name": "f", "arguments": {"i": 1}}]`, answer("", "f", `{"i": 1}`)},
	})
	checkAll(t, Format{Calls: "phi4_mini_json"}, Turn{}, []parsing{
		{"a list", `functools[{"name": "f", "arguments": {"i": 1}}, {"name": "g", "arguments": {}}]`, answer("", "f", `{"i": 1}`, "g", "{}")},
		{"in prose", `Use functools[{"name": "f"}]`, answer(`Use functools[{"name": "f"}]`)},
	})
}

func TestLlama(t *testing.T) {
	checkAll(t, Format{Calls: "llama3_json"}, Turn{}, []parsing{
		{"a call", `{"name": "f", "parameters": {"s": "x"}}`, answer("", "f", `{"s": "x"}`)},
		{"behind the tag", `<|python_tag|>{"name": "f", "parameters": {"s": "x"}}`, answer("", "f", `{"s": "x"}`)},
		{"several", `{"name": "f", "parameters": {"s": "; {"}}; {"name": "g", "parameters": {}}`, answer("", "f", `{"s": "; {"}`, "g", "{}")},
		{"arguments", ` {"name": "f", "arguments": {"i": 1}}`, answer("", "f", `{"i": 1}`)},
		{"with a type, vllm#46863", `{"type": "function", "name": "f", "parameters": {"s": "echo", "i": 12000}}`, answer("", "f", `{"s": "echo", "i": 12000}`)},
		{"between Llama 4's marks, vllm#16214", `<|python_start|>{"name": "f", "parameters": {"s": "x"}}<|python_end|>`, answer("", "f", `{"s": "x"}`)},
		{"in a list", `[{"name": "f", "parameters": {}}, {"name": "g", "parameters": {}}]`, answer("", "f", "{}", "g", "{}")},

		{"an answer in JSON", `{"name": "Ada", "age": 36}`, answer(`{"name": "Ada", "age": 36}`)},
		{"without arguments", `{"name": "f", "age": 36}`, answer(`{"name": "f", "age": 36}`)},
		{"arguments first", `{"parameters": {}, "name": "f"}`, answer("", "f", "{}")},
		{"behind text, vllm#9991", `Sure: {"name": "f", "parameters": {}}`, answer(`Sure: {"name": "f", "parameters": {}}`)},
		{"code behind the tag", `<|python_tag|>print(1)`, answer(`<|python_tag|>print(1)`)},
		{"text behind a call", `{"name": "f", "parameters": {}} Done.`, answer("Done.", "f", "{}")},
		{"another object behind a call", `{"name": "f", "parameters": {}}; {"a": 1}`, answer(`{"a": 1}`, "f", "{}")},

		{"a built-in tool", `<|python_tag|>brave_search.call(query="a \"b\" (c)")`, answer("", "brave_search", `{"query": "a \"b\" (c)"}`)},
		{"one that is not offered", `<|python_tag|>wolfram_alpha.call(query="a")`, answer(`<|python_tag|>wolfram_alpha.call(query="a")`)},
	})
	checkAll(t, Format{Calls: "pythonic"}, Turn{}, []parsing{
		{"a call", `[f(s="x", i=1)]`, answer("", "f", `{"s": "x", "i": 1}`)},
		{"several", "[f(s='x'),\n g( ) ]", answer("", "f", `{"s": "x"}`, "g", "{}")},
		{"a name with marks", `[ns.get-it(a=1)]`, answer("", "ns.get-it", `{"a": 1}`)},
		{"constants", `[f(b=True, o=None, any=False, x=true)]`, answer("", "f", `{"b": true, "o": null, "any": false, "x": true}`)},
		{"numbers", `[f(a=-1.50, b=1e5, c=1_000, d=.5, e=-3., f=+2)]`, answer("", "f", `{"a": -1.50, "b": 1e5, "c": 1000, "d": 0.5, "e": -3.0, "f": 2}`)},
		{"nested", `[f(l=[1, (2, 'a'), []], o={'k': {"b": [True,]}, "l": {}},)]`, answer("", "f", `{"l": [1, [2, "a"], []], "o": {"k": {"b": [true]}, "l": {}}}`)},
		{"strings", `[f(s='it\'s "a" \n\x41\u00e9\U0001F600\ud83d\ude00\d', i="")]`, answer("", "f", `{"s": "it's \"a\" \nAé😀😀\\d", "i": ""}`)},
		{"long strings", `[f(s="""a "b" ")]""", i='')]`, answer("", "f", `{"s": "a \"b\" \")]", "i": ""}`)},
		{"brackets in strings", `[f(s=")]}'", l=["("])]`, answer("", "f", `{"s": ")]}'", "l": ["("]}`)},
		{"in JSON", `{"name": "f", "parameters": {"i": 1}}`, answer("", "f", `{"i": 1}`)},
		{"between LFM2's marks", `A<|tool_call_start|>[f(i=1)]<|tool_call_end|>B`, answer("AB", "f", `{"i": 1}`)},
		{"between Llama 4's marks", `<|python_start|>[f(i=1)]<|python_end|>`, answer("", "f", `{"i": 1}`)},
		{"no brackets", `f(i=1)`, answer(`f(i=1)`)},

		{"half a surrogate pair", `[f(s="\ud83d", i="\ud83d\u0041", x="\x4")]`, answer("", "f", "{\"s\": \"\ufffd\", \"i\": \"\ufffd\", \"x\": \"\\\\x4\"}")},
		{"no dict", `[f(o={1: 2})]`, answer(`[f(o={1: 2})]`)},
		{"no comma", `[f(l=[1 2])]`, answer(`[f(l=[1 2])]`)},
		{"a string without an end", `[f(s="\`, answer(`[f(s="\`)},
		{"a list", `[1, 2]`, answer(`[1, 2]`)},
		{"a link", `[f](http://x)`, answer(`[f](http://x)`)},
		{"a function that is not offered", `[h(a=1)]`, answer(`[h(a=1)]`)},
		{"no literal", `[f(a=b)] [`, answer(`[f(a=b)] [`)},
		{"no keywords", `[f(1)]`, answer(`[f(1)]`)},
		{"the second is none", `[f(i=1), g(2)]`, answer(`g(2)]`, "f", `{"i": 1}`)},
		{"cut off", `[f(i=1), g(a="x`, answer(`g(a="x`, "f", `{"i": 1}`)},
		{"deep", `[f(l=` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `)]`, answer(`[f(l=` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `)]`)},
	})
}

func TestMistral(t *testing.T) {
	withID := func(id, name, arguments string) Output {
		return Output{Calls: []Call{{ID: id, Name: name, Arguments: arguments}}}
	}
	checkAll(t, Format{Calls: "mistral"}, Turn{}, []parsing{
		{"a list", `[TOOL_CALLS] [{"name": "f", "arguments": {"i": 1}}, {"name": "g", "arguments": {}}]`, answer("", "f", `{"i": 1}`, "g", "{}")},
		{"with ids", `[TOOL_CALLS][{"name": "f", "arguments": {"i": 1}, "id": "123456789"}]`, answer("", "f", `{"i": 1}`)},
		{"an id in front", `[TOOL_CALLS][{"id": "123456789", "name": "f", "arguments": {}}]`, withID("123456789", "f", "{}")},
		{"arguments in front, vllm#13622", `[TOOL_CALLS][{"arguments": {"s": "}]"}, "name": "f"}]`, answer("", "f", `{"s": "}]"}`)},
		{"behind text with braces, vllm#30724", `{"a": [1]}[TOOL_CALLS][{"name": "f", "arguments": {}}]`, answer(`{"a": [1]}`, "f", "{}")},
		{"v11", `[TOOL_CALLS]f[CALL_ID]123456789[ARGS]{"i": 1}`, withID("123456789", "f", `{"i": 1}`)},
		{"v13", `A[TOOL_CALLS]f[ARGS]{"i": 1}[TOOL_CALLS]g[ARGS]{}`, answer("A", "f", `{"i": 1}`, "g", "{}")},
		{"one value, mlx-lm#1448", `[TOOL_CALLS]f[ARGS]{"o": {"s": "}"}, "l": ["[TOOL_CALLS]"]}[TOOL_CALLS]g[ARGS]{"a": {}}`, answer("", "f", `{"o": {"s": "}"}, "l": ["[TOOL_CALLS]"]}`, "g", `{"a": {}}`)},
		{"no mark in front of the arguments, vllm#30651", `[TOOL_CALLS]f{"s": "/x/y.txt", "any": "test"}`, answer("", "f", `{"s": "/x/y.txt", "any": "test"}`)},
		{"no arguments", `[TOOL_CALLS]g[ARGS][TOOL_CALLS]f[ARGS]{}`, answer("", "g", "{}", "f", "{}")},
		{"text behind a call", `[TOOL_CALLS]f[ARGS]{} Done.`, answer("Done.", "f", "{}")},

		{"a function that is not offered", `[TOOL_CALLS]h[ARGS]{}`, answer(`[TOOL_CALLS]h[ARGS]{}`)},
		{"a mark in prose", "The mark [TOOL_CALLS] is text.[TOOL_CALLS]", answer("The mark [TOOL_CALLS] is text.[TOOL_CALLS]")},
		{"a long name", "[TOOL_CALLS]" + strings.Repeat("f", 2000) + "[ARGS]{}", answer("[TOOL_CALLS]" + strings.Repeat("f", 2000) + "[ARGS]{}")},
		{"cut off in the name", "A [TOOL_CALLS]f[AR", answer("A [TOOL_CALLS]f[AR")},
		{"cut off in the arguments", `[TOOL_CALLS]f[ARGS]{"a": [`, answer(`[TOOL_CALLS]f[ARGS]{"a": [`)},
	})
	checkAll(t, Format{"mistral", "mistral"}, Turn{}, []parsing{
		{"Magistral", `[THINK]r[/THINK]A[TOOL_CALLS]f[ARGS]{}`, thought("r", "A", "f", "{}")},
	})
}

// deepseekPlain writes the marks' characters for |, _ and V3's long names.
var deepseekPlain = strings.NewReplacer(
	"<calls>", deepseekCalls, "</calls>", deepseekCallsEnd, "<call>", deepseekCall, "</call>", deepseekCallEnd, "<sep>", deepseekSep, "|", "｜").Replace

func TestDeepseek(t *testing.T) {
	table := func(table []parsing) []parsing {
		for i := range table {
			table[i].text, table[i].want.Content = deepseekPlain(table[i].text), deepseekPlain(table[i].want.Content)
		}
		return table
	}
	const v3 = "<call>function<sep>f\n```json\n{\"s\": \"```\", \"n\": 1.50}\n```</call>"
	checkAll(t, Format{"deepseek_v3", "deepseek_r1"}, Turn{Reasoning: true}, table([]parsing{
		{"a call", "r</think>A<calls>" + v3 + "</calls>", thought("r", "A", "f", "{\"s\": \"```\", \"n\": 1.50}")},
		{"two", "r</think>\n\n<calls>" + v3 + "\n<call>function<sep>g\n```json\n{}\n```</call></calls>", thought("r", "", "f", "{\"s\": \"```\", \"n\": 1.50}", "g", "{}")},
		{"within reasoning, vllm#35687", "r\n<calls>" + v3 + "</calls>", thought("r", "", "f", "{\"s\": \"```\", \"n\": 1.50}")},
		{"and its end then", "r<calls>" + v3 + "</calls></think>A", thought("r", "A", "f", "{\"s\": \"```\", \"n\": 1.50}")},
		{"the mark in reasoning", "the mark <calls> is text <call></think>A", Output{Reasoning: deepseekPlain("the mark <calls> is text <call>"), Content: "A"}},
		{"no fence", "</think><calls><call>function<sep>f\n{\"i\": 1}</call></calls>", answer("", "f", `{"i": 1}`)},
		{"another fence", "</think><calls><call>function<sep>f\n```\n{\"i\": 1}\n```\n</call></calls>", answer("", "f", `{"i": 1}`)},
	}))
	checkAll(t, Format{"deepseek_v31", "deepseek_v3"}, Turn{}, table([]parsing{
		{"calls", "A\n\n<calls><call>f<sep>{\"i\": 1}</call><call>g<sep>{}</call></calls>", answer("A", "f", `{"i": 1}`, "g", "{}")},
		{"no block", "<call>f<sep>{\"i\": 1}</call> B", answer("B", "f", `{"i": 1}`)},
		{"no arguments", "<calls><call>g<sep></call></calls>", answer("", "g", "{}")},
		{"no ends", "<calls><call>f<sep>{\"i\": 1}<call>g<sep>{}", answer("", "f", `{"i": 1}`, "g", "{}")},
		{"marks in a string", "<calls><call>f<sep>{\"s\": \"</call></calls>\"}</call></calls>", answer("", "f", deepseekPlain(`{"s": "</call></calls>"}`))},
		{"a mark in prose", "<calls> is a mark", answer("<calls> is a mark")},
		{"a function that is not offered", "<calls><call>h<sep>{}</call></calls>", answer("<calls><call>h<sep>{}</call></calls>")},
		{"text between calls", "<calls><call>f<sep>{}</call> and </calls>then", answer("and then", "f", "{}")},
		{"cut off", "<calls><call>f<sep>{\"i", answer("<calls><call>f<sep>{\"i")},
		{"cut off in front of the arguments", "<calls><call>function<sep>f\n``", answer("<calls><call>function<sep>f\n``")},
	}))
	const dsml = "<|DSML|tool_calls>\n<|DSML|invoke name=\"f\">\n<|DSML|parameter name=\"n\" string=\"false\">1.50</|DSML|parameter>\n"
	checkAll(t, Format{"deepseek_v4", "deepseek_v4"}, Turn{Reasoning: true}, table([]parsing{
		{"DSML", "r</think>A\n\n" + dsml + "</|DSML|invoke>\n</|DSML|tool_calls>", thought("r", "A", "f", `{"n": 1.50}`)},
		{"DSML that is cut off", "r</think>A\n\n" + dsml, thought("r", "A"+strings.TrimPrefix(dsml, "<|DSML|tool_calls>\n"))},
	}))
	checkAll(t, Format{Calls: "kimi_k2"}, Turn{}, []parsing{
		{
			"Kimi", "A<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"i\": 1}<|tool_call_end|>" +
				"<|tool_call_begin|>functions.ns.get-it:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
			Output{Content: "A", Calls: []Call{{ID: "functions.f:0", Name: "f", Arguments: `{"i": 1}`}, {ID: "functions.ns.get-it:1", Name: "ns.get-it", Arguments: "{}"}}},
		},
	})
}

// Tools are named as the OpenAI API lists them, or without the object around them. Others are none.
func TestFunctions(t *testing.T) {
	named := func(name chat.Value) *chat.Object { return chat.NewObject("name", name) }
	got := newFunctions([]chat.Value{
		chat.NewObject("type", "function", "function", named("f")), named("g"), named(""), named(1), chat.NewObject(), "h", nil,
	})
	if len(got) != 2 || got["f"] == nil || got["g"] == nil {
		t.Errorf("got %v", got)
	}
}

// The text of a call is what the model wrote, without the marks around it.
func TestCallText(t *testing.T) {
	for _, c := range []struct {
		format     Format
		text, want string
	}{
		{Format{Calls: "hermes"}, "A\n<tool_call>\n{\"name\": \"g\", \"arguments\":{ }}\n</tool_call>", "{\"name\": \"g\", \"arguments\":{ }}"},
		{Format{Calls: "qwen3_coder"}, "<tool_call>\n<function=g>\n</function>\n</tool_call>", "<function=g>\n</function>"},
		{Format{Calls: "qwen3_coder"}, "<function=g>\n</function>", "<function=g>\n</function>"},
		{Format{Calls: "glm45"}, "<tool_call>g\n</tool_call>", "g\n"},
		{Format{Calls: "llama3_json"}, `<|python_tag|> {"name": "g", "parameters": {}}`, `{"name": "g", "parameters": {}}`},
		{Format{Calls: "llama3_json"}, `<|python_tag|>brave_search.call(query="x")`, `brave_search.call(query="x")`},
		{Format{Calls: "pythonic"}, `[g( )]`, `g( )`},
		{Format{Calls: "mistral"}, `[TOOL_CALLS] [{"name": "g", "arguments": {}}]`, `{"name": "g", "arguments": {}}`},
		{Format{Calls: "mistral"}, `[TOOL_CALLS]g[CALL_ID]1[ARGS]{}`, `g[CALL_ID]1[ARGS]{}`},
		{Format{Calls: "deepseek_v31"}, deepseekPlain("<calls><call>g<sep>{}</call></calls>"), deepseekPlain("g<sep>{}")},
		{Format{Calls: "kimi_k2"}, kimiCall + "functions.g:0" + kimiArguments + "{}" + kimiCallEnd, "functions.g:0" + kimiArguments + "{}"},
	} {
		if o := Parse(c.format, Turn{Tools: offered}, c.text); len(o.Calls) != 1 || o.Calls[0].Text != c.want {
			t.Errorf("%v: %q: got %+v, want %q", c.format, c.text, o, c.want)
		}
	}
}

// A conversation goes on from what the model said.
func TestMessage(t *testing.T) {
	got := Output{Reasoning: "r", Calls: []Call{{ID: "1", Name: "f", Arguments: "{}", Text: "f()"}}}.Message()
	want := chat.Assistant("", chat.ToolCall{ID: "1", Name: "f", Arguments: "{}"})
	want.ReasoningContent = "r"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
