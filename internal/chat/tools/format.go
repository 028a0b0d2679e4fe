package tools

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/foretoken/foretoken/internal/chat/deepseek"
)

// A Format says how a model marks calls of tools and reasoning, by the names that vLLM has for them
// (--tool-call-parser, --reasoning-parser). Where a name is empty, there is nothing to tell apart.
type Format struct {
	Calls     string
	Reasoning string
}

var syntaxes = map[string]func() syntax{
	"hermes":          func() syntax { return inTags("<tool_call>") },
	"granite":         func() syntax { return inTags("<|tool_call|>", "<tool_call>") },
	"phi4_mini_json":  phi4,
	"qwen3_coder":     func() syntax { return qwenCoder("tool_call").syntax() },
	"qwen3_xml":       func() syntax { return qwenCoder("tool_call").syntax() },
	"seed_oss":        func() syntax { return qwenCoder("seed:tool_call").syntax() },
	"minimax_m2":      minimax.syntax,
	"glm45":           glm.syntax,
	"glm47":           glm.syntax,
	"llama3_json":     llama,
	"llama4_json":     llama,
	"llama4_pythonic": llama,
	"pythonic":        llama,
	"mistral":         mistral,
	"deepseek_v3":     deepseekV3,
	"deepseek_v31":    deepseekV3,
	"deepseek_v32":    nil, // a parser of its own
	"deepseek_v4":     nil,
	"kimi_k2":         kimi,
}

var thinks = map[string]think{
	"deepseek_r1": {start: "<think>", end: "</think>", inside: true},
	"deepseek_v3": {start: "<think>", end: "</think>"},
	"deepseek_v4": {start: "<think>", end: "</think>"},
	"qwen3":       {start: "<think>", end: "</think>"},
	"glm45":       {start: "<think>", end: "</think>"},
	"minimax_m2":  {start: "<think>", end: "</think>"},
	"kimi_k2":     {start: "<think>", end: "</think>"},
	"seed_oss":    {start: "<seed:think>", end: "</seed:think>"},
	"mistral":     {start: "[THINK]", end: "[/THINK]"},
}

// inTags is what many models write that were trained as Hermes was: <tool_call> and an object. Granite
// writes a list of them, without an end.
func inTags(starts ...string) syntax {
	return syntax{starts: starts, ends: []string{"</tool_call>"}, again: []string{"{"}, junk: ",]}", read: readJSON(false)}
}

// phi4 is what Phi-4-mini writes: functools and a list of objects.
func phi4() syntax {
	return syntax{opening: []string{"functools["}, again: []string{"{"}, junk: ",]", read: readJSON(false)}
}

// Check says what is wrong with names that a person gave.
func (f Format) Check() error {
	if _, ok := syntaxes[f.Calls]; !ok && f.Calls != "" {
		return unknown("tool call parser", f.Calls, syntaxes)
	}
	if _, ok := thinks[f.Reasoning]; !ok && f.Reasoning != "" {
		return unknown("reasoning parser", f.Reasoning, thinks)
	}
	return nil
}

func unknown[V any](what, name string, names map[string]V) error {
	return fmt.Errorf("%s %q: expected one of %s", what, name, strings.Join(slices.Sorted(maps.Keys(names)), ", "))
}

// isDSML reports whether calls are in the tags of DeepSeek V3.2 and V4.
func (f Format) isDSML() bool { return f.Calls == "deepseek_v32" || f.Calls == "deepseek_v4" }

// NewParser returns a parser of one turn. Names that Check refuses count as empty.
func (f Format) NewParser(turn Turn) Parser {
	if f.isDSML() {
		return dsml{deepseek.NewParser(turn.Reasoning, len(turn.Tools) > 0)}
	}
	var s syntax
	if calls := syntaxes[f.Calls]; calls != nil {
		s = calls()
	}
	return newParser(thinks[f.Reasoning], s, turn)
}

// Special reports whether marks of the format are special tokens of a vocabulary: then a parser needs the
// text with special tokens in it. Without tools the marks of calls do not matter.
func (f Format) Special(tools bool, special func(token string) bool) bool {
	if f.isDSML() {
		return true
	}
	t := thinks[f.Reasoning]
	marks := []string{t.start, t.end}
	if calls := syntaxes[f.Calls]; calls != nil && tools {
		s := calls()
		marks = slices.Concat(marks, s.starts, s.opening, s.ends)
	}
	return slices.ContainsFunc(marks, special)
}

// Inside reports whether a prompt ends within reasoning. token returns the text of a token, and whether it
// is a special one. The last mark of reasoning decides. If there is none since the last special token, such
// as the one that begins the model's turn, it is for the family to say: marks in earlier messages, or in
// what a user writes about them, do not count.
func (f Format) Inside(prompt []int32, token func(id int32) (text string, special bool)) bool {
	t := thinks[f.Reasoning]
	if t.end == "" {
		return false
	}
	var tail []string
	for _, id := range slices.Backward(prompt) {
		text, special := token(id)
		mark := text == t.start || text == t.end
		if !mark && (special || isControl(text)) {
			break
		}
		if tail = append(tail, text); mark {
			break
		}
	}
	slices.Reverse(tail)
	text := strings.Join(tail, "") // marks may be spelled out in pieces
	start, end := strings.LastIndex(text, t.start), strings.LastIndex(text, t.end)
	if start < 0 && end < 0 {
		return t.inside
	}
	return start > end
}

// isControl reports whether a token looks like a control token. In DeepSeek's vocabularies <｜Assistant｜>
// is not marked as special.
func isControl(text string) bool {
	return strings.HasPrefix(text, "<|") && strings.HasSuffix(text, "|>") || strings.HasPrefix(text, "<｜") && strings.HasSuffix(text, "｜>")
}
