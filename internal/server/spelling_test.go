package server

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/chat"
	"github.com/foretoken/foretoken/internal/chat/tools"
	"github.com/foretoken/foretoken/internal/chat/value"
)

// Each token of content is told once, with the first content that it is part of,
// and no token of anything else is.
func TestSpelling(t *testing.T) {
	for _, tc := range []struct {
		name   string
		tokens [][2]string // its name, and the text that comes with it; names of hidden ones begin with -
		want   []string    // of each content: its text, and the tokens told with it
	}{
		{"words", [][2]string{{"a", "Hello"}, {"b", " there"}}, []string{"Hello: a", " there: b"}},
		{"parts of a character, a stop string that is none", [][2]string{{"a", ""}, {"b", "ö"}, {"c", ""}, {"d", "xy"}}, []string{"ö: a b", "xy: c d"}},
		{"whitespace comes with what follows", [][2]string{{"a", "x \n"}, {"b", "\n"}, {"c", "y"}}, []string{"x: a", " \n\ny: b c"}},
		{"the end of a turn", [][2]string{{"a", "x"}, {"b", ""}, {"-eos", "y"}}, []string{"x: a", "y: b"}},
		{"a stop string", [][2]string{{"a", "x"}, {"b", ""}, {"c", ""}}, []string{"x: a"}},
		{"reasoning", [][2]string{
			{"a", "<think>"}, {"b", "hm"}, {"c", "</think>"}, {"d", "\n\nhm"}, {"e", "."},
		}, []string{"hm: d", ".: e"}},
		{"reasoning and content in one token", [][2]string{{"a", "<think>hm</think>so"}, {"b", "."}}, []string{"so: a", ".: b"}},
		{"a mark that is none", [][2]string{{"a", "x <to"}, {"b", "ol>"}}, []string{"x: a", " <tool>: b"}},
		{"calls", [][2]string{
			{"a", "x"}, {"b", "\n<tool_call>"}, {"c", `{"name": "f", "arguments": `}, {"d", `{}}`}, {"e", "</tool_call>"}, {"f", "\n"}, {"g", "y"},
		}, []string{"x: a", "y: g"}},
		{"a call and content in one token", [][2]string{{"a", `<tool_call>{"name": "f", "arguments": {}}`}, {"b", "</tool_call>y"}}, []string{"y: b"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := tools.Format{Calls: "hermes", Reasoning: "qwen3"}.NewParser(tools.Turn{Tools: []chat.Value{
				value.NewObject("type", "function", "function", value.NewObject("name", "f")),
			}})
			s := new(speller)
			var got []string
			tell := func(deltas []tools.Delta) {
				for _, d := range deltas {
					scores := s.tell(d)
					if d.Kind != tools.Content {
						if len(scores) > 0 {
							t.Errorf("%+v has scores %+v", d, scores)
						}
						continue
					}
					line := d.Text + ":"
					for _, score := range scores {
						line += " " + score.Token
					}
					got = append(got, line)
				}
			}
			for _, token := range tc.tokens {
				s.add(token[1], chatLogProb{Token: token[0]}, strings.HasPrefix(token[0], "-"))
				tell(p.Write(token[1]))
			}
			tell(p.Close())
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("contents and their tokens (-want +got):\n%s", diff)
			}
		})
	}
}

// What becomes certain at once may be several contents, of tokens of their own.
func TestSpellingOfSeveralContents(t *testing.T) {
	s := new(speller)
	s.add("ab", chatLogProb{Token: "first"}, false)
	s.add("cd e", chatLogProb{Token: "second"}, false)
	for _, tc := range []struct{ text, want string }{{"ab", "first"}, {"c", "second"}, {"d", ""}, {" e", ""}} {
		got := ""
		for _, score := range s.tell(tools.Delta{Kind: tools.Content, Text: tc.text}) {
			got += score.Token
		}
		if got != tc.want {
			t.Errorf("%q has the tokens %q, want %q", tc.text, got, tc.want)
		}
	}
}
