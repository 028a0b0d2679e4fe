package tools

import (
	"strings"
	"testing"
)

func TestQwenCoder(t *testing.T) {
	in := func(parameters string) string {
		return "<tool_call>\n<function=f>\n" + parameters + "</function>\n</tool_call>"
	}
	const s = "<parameter=s>\nx\n</parameter>\n"
	const i = "<parameter=i>\n1\n</parameter>\n"
	qwen := Format{"qwen3_coder", "qwen3"}
	checkAll(t, qwen, Turn{}, []parsing{
		{"a call", in(s), answer("", "f", `{"s": "x"}`)},
		{"parameters", in(i + s), answer("", "f", `{"i": 1, "s": "x"}`)},
		{"none", in(""), answer("", "f", "{}")},
		{"two calls", "A\n" + in(s) + "\n" + in(i) + "\nB", answer("AB", "f", `{"s": "x"}`, "f", `{"i": 1}`)},
		{"in one line", "<tool_call><function=f><parameter=s>x</parameter></function></tool_call>", answer("", "f", `{"s": "x"}`)},
		{"two in a block", "<tool_call><function=f>" + s + "</function><function=g></function></tool_call>", answer("", "f", `{"s": "x"}`, "g", "{}")},
		{"lines", in("<parameter=s>\n\n  a\n\tb\\\n\n\n</parameter>"), answer("", "f", `{"s": "\n  a\n\tb\\\n\n"}`)},
		{"tags in a string", in("<parameter=s>\n<b>\"</b></para </parameters <tool_call>\n</parameter>"), answer("", "f", `{"s": "<b>\"</b></para </parameters <tool_call>"}`)},
		{"a string that ends like a tag begins, vllm#45877", in("<parameter=s>2>&1 <</parameter>"), answer("", "f", `{"s": "2>&1 <"}`)},
		{"an empty string", in("<parameter=s>\n\n</parameter>"), answer("", "f", `{"s": ""}`)},
		{"of one line break", in("<parameter=s>\n</parameter>"), answer("", "f", `{"s": ""}`)},
		{"the block's tag is missing", "A\n<function=f>\n" + s + "</function>\n</tool_call>", answer("A", "f", `{"s": "x"}`)},
		{"quotes around names", "<tool_call><function=\"f\">" + s + "</function></tool_call>", answer("", "f", `{"s": "x"}`)},
		{"in JSON", "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"n\": 1.50}}\n</tool_call>", answer("", "f", `{"n": 1.50}`)},
		{"a parameter twice", in(i + i), answer("", "f", `{"i": 1, "i": 1}`)},

		{"the last end of a parameter is missing, vllm#57699", in("<parameter=o>\n{\"a\": true}\n"), answer("", "f", `{"o": {"a": true}}`)},
		{"the end of another one", in("<parameter=s>\nx\n" + i), answer("", "f", `{"s": "x", "i": 1}`)},
		{"no end of the function", "<tool_call>\n<function=f>\n" + s + "</tool_call>B", answer("B", "f", `{"s": "x"}`)},
		{"nor of the parameter", "<tool_call>\n<function=f>\n<parameter=s>\nx\n</tool_call>B", answer("B", "f", `{"s": "x"}`)},
		{"no end of the block", "<tool_call>\n<function=f>\n" + s + "</function>", answer("", "f", `{"s": "x"}`)},
		{"another call instead of an end", "<tool_call>\n<function=f>\n" + s + in(i), answer("", "f", `{"s": "x"}`, "f", `{"i": 1}`)},
		{"text between parameters", in("Hm, " + s + "</b> so " + i), answer("", "f", `{"s": "x", "i": 1}`)},
		{"a parameter without a name, vllm#55497", in("<parameter=\necho > x\n</parameter>\n" + i), answer("", "f", `{"i": 1}`)},
		{"a name without an end, vllm#55497", in(s + "<parameter=ids: [1]\n</parameter>\n" + i), answer("", "f", `{"s": "x", "i": 1}`)},
		{"a name with a tag, vllm#55497", in("<parameter=note=</parameter>\n" + i), answer("", "f", `{"i": 1}`)},
		{"an endless name", in("<parameter=" + strings.Repeat("k", 2000) + ">x</parameter>" + i), answer("", "f", `{"i": 1}`)},

		{"a name without its end", "<function=f <function=f\n<parameter=", answer("<function=f <function=f\n<parameter=")},
		{"a mark in prose", "Write <tool_call> and <function=h>, or <function=", answer("Write <tool_call> and <function=h>, or <function=")},
		{"a function that is not offered", "<tool_call>\n<function=h>\n</function>\n</tool_call>", answer("<tool_call>\n<function=h>\n</function>\n</tool_call>")},
		{"cut off", "<tool_call>\n<function=f>\n" + s + "<parameter=s>\n2>&1 </", answer("<tool_call>\n<function=f>\n" + s + "<parameter=s>\n2>&1 </")},
		{"cut off between", "A\n<tool_call>\n<function=f>\n" + s, answer("A<tool_call>\n<function=f>\n" + s)},
	})
	checkAll(t, qwen, Turn{Reasoning: true}, []parsing{
		{"within reasoning, vllm#39056", "r\n" + in(s), thought("r", "", "f", `{"s": "x"}`)},
		{"and its end then", "r\n" + in(s) + "\n</think>\n\nA", thought("r", "A", "f", `{"s": "x"}`)},
		{"a mark in reasoning", "r <tool_call> r\n</think>\n\n" + in(s), thought("r <tool_call> r", "", "f", `{"s": "x"}`)},
	})
	checkAll(t, Format{"seed_oss", "seed_oss"}, Turn{}, []parsing{
		{"Seed", "<seed:think>r</seed:think><seed:tool_call>\n<function=f>\n<parameter=s>x</parameter>\n</function>\n</seed:tool_call>", thought("r", "", "f", `{"s": "x"}`)},
	})
	checkAll(t, Format{"minimax_m2", "minimax_m2"}, Turn{Reasoning: true}, []parsing{
		{
			"MiniMax", "r\n</think>\n\n<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"s\">x</parameter>\n<parameter name=\"i\">1</parameter>\n</invoke>\n<invoke name=\"g\">\n</invoke>\n</minimax:tool_call>",
			thought("r", "", "f", `{"s": "x", "i": 1}`, "g", "{}"),
		},
		{"a mark in prose", "</think>Use <invoke name=\"f\"> for it", answer("Use <invoke name=\"f\"> for it")},
	})
	checkAll(t, Format{"glm45", "glm45"}, Turn{Reasoning: true}, []parsing{
		{
			"GLM", "r</think>\n<tool_call>f\n<arg_key>s</arg_key>\n<arg_value>1</arg_value>\n<arg_key>l</arg_key>\n<arg_value>[1]</arg_value>\n</tool_call>\n<tool_call>g\n</tool_call>",
			thought("r", "", "f", `{"s": "1", "l": [1]}`, "g", "{}"),
		},
		{"in one line", "</think><tool_call>f<arg_key>any</arg_key><arg_value>{\"a\": 1}</arg_value><arg_key>x</arg_key><arg_value>{a}</arg_value></tool_call>", answer("", "f", `{"any": {"a": 1}, "x": "{a}"}`)},
		{"nothing", "</think><tool_call>g</tool_call>A", answer("A", "g", "{}")},
		{"a key without a value", "</think><tool_call>f<arg_key>s</arg_key><arg_key>i</arg_key><arg_value>1</arg_value></tool_call>", answer("", "f", `{"i": 1}`)},
		{"a mark in prose", "</think>The mark <tool_call> is text", answer("The mark <tool_call> is text")},
	})
}

// The function's schema says what a value is; sglang#15135, QwenLM/Qwen3-Coder#480.
func TestValues(t *testing.T) {
	var table []parsing
	for _, c := range []struct{ key, text, want string }{
		{"s", "1", `"1"`},
		{"s", "null", `"null"`},
		{"s", "{\"a\": 1}", `"{\"a\": 1}"`},
		{"s", "tab\tü😀", `"tab\tü😀"`},
		{"i", "12345678901234567890123", "12345678901234567890123"},
		{"i", " -5 ", "-5"},
		{"i", "5.0", "5.0"},
		{"i", "5.5", `"5.5"`},
		{"i", "five", `"five"`},
		{"i", "null", "null"},
		{"n", "1.50", "1.50"},
		{"n", "1e400", `"1e400"`},
		{"n", "1e300", "1e300"},
		{"n", "NaN", `"NaN"`},
		{"b", "True", "true"},
		{"b", "FALSE", "false"},
		{"b", "1", `"1"`},
		{"l", "[1, 2.0]", "[1, 2.0]"},
		{"l", "[1, 2", `"[1, 2"`},
		{"l", "{}", `"{}"`},
		{"o", "{\n\"a\": 1}", "{\n\"a\": 1}"},
		{"o", "None", `"None"`},
		{"o", "NULL", "null"},
		{"any", "1", `"1"`},
		{"any", "null", `"null"`},
		{"unknown", "[1]", `"[1]"`},
		{"is", "7", "7"},
		{"is", "seven", `"seven"`},
		{"ns", "null", "null"},
		{"ns", "1", `"1"`},
		{"anyOf", "true", "true"},
		{"anyOf", "3", "3"},
		{"anyOf", "x", `"x"`},
		{"allOf", "3", "3"},
		{"enum", "1", `"1"`},
		{"items", `["a"]`, `["a"]`},
		{"properties", "{}", "{}"},
		{"ref", "3", "3"},
		{"loop", "3", `"3"`},
		{"far", "3", `"3"`},
		{"i", "true", `"true"`},
	} {
		text := "<tool_call>\n<function=f>\n<parameter=" + c.key + ">\n" + c.text + "\n</parameter>\n</function>\n</tool_call>"
		table = append(table, parsing{c.key, text, answer("", "f", `{"`+c.key+`": `+c.want+"}")})
	}
	checkAll(t, Format{Calls: "qwen3_xml"}, Turn{}, table)
}
