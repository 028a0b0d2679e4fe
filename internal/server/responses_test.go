package server

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foretoken/foretoken/internal/testmodel"
)

const responsesPath = "/v1/responses"

func TestResponses(t *testing.T) {
	a := serveAt(t, testmodel.Scripted(t, "<think>", "I should", " greet", ".", "</think>", "\n\nHello", " there"), Options{})
	reasoning := outputItem{Type: "reasoning", Status: "completed", Summary: &[]string{}, Content: []outputPart{{Type: "reasoning_text", Text: "I should greet."}}}
	message := func(text, status string) outputItem {
		return outputItem{Type: "message", Role: "assistant", Status: status, Content: []outputPart{{Type: "output_text", Text: text, Annotations: &[]string{}}}}
	}
	for _, tc := range []struct {
		name   string
		q      object
		want   []outputItem
		status string
	}{
		{"a text", object{"input": "hello"}, []outputItem{reasoning, message("Hello there", "completed")}, "completed"},
		{"items", object{"instructions": "be brief", "input": []object{
			{"role": "user", "content": "hello"},
			{"type": "reasoning", "id": "rs_1", "summary": []int{}, "content": []object{{"type": "reasoning_text", "text": "hm"}}},
			{"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": []object{{"type": "output_text", "text": "yes", "annotations": []int{}}}},
			{"role": "user", "content": []object{{"type": "input_text", "text": "hello"}}},
		}}, []outputItem{reasoning, message("Hello there", "completed")}, "completed"},
		{"cut", object{"input": "hello", "max_output_tokens": 6}, []outputItem{reasoning, message("Hello", "incomplete")}, "incomplete"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := merge(object{"model": "tiny", "temperature": 0, "metadata": object{"a": "b"}, "store": false, "truncation": "disabled"}, tc.q)
			got := ask[responseBody](t, a, responsesPath, q)
			noID := cmpopts.IgnoreFields(outputItem{}, "ID")
			if diff := cmp.Diff(tc.want, got.Output, noID); diff != "" || got.Status != tc.status || (got.IncompleteDetails != nil) != (tc.status == "incomplete") {
				t.Errorf("%s: %s", got.Status, diff)
			}
			if u := got.Usage; u.TotalTokens != u.InputTokens+u.OutputTokens || u.OutputDetails.ReasoningTokens != 5 || got.Metadata["a"] != "b" {
				t.Errorf("%+v", got)
			}

			var types []string
			var last responseBody
			texts := map[string]string{}
			for i, data := range a.events(t, responsesPath, merge(q, object{"stream": true})) {
				var e responseEvent
				decodeAnswer(t, data, &e)
				if e.SequenceNumber != i {
					t.Errorf("event %d has the number %d", i, e.SequenceNumber)
				}
				if types = append(types, e.Type); strings.HasSuffix(e.Type, ".delta") {
					texts[e.Type] += e.Delta
				} else if e.Text != nil && *e.Text != texts[strings.TrimSuffix(e.Type, "done")+"delta"] {
					t.Errorf("%s: %q, its deltas %q", e.Type, *e.Text, texts)
				}
				if e.Response != nil {
					last = *e.Response
				}
			}
			item := func(kind string) []string {
				return []string{"response.output_item.added", "response.content_part.added", kind + ".delta", kind + ".done", "response.content_part.done", "response.output_item.done"}
			}
			want := slices.Concat([]string{"response.created", "response.in_progress"}, item("response.reasoning_text"), item("response.output_text"), []string{"response." + tc.status})
			if diff := cmp.Diff(want, slices.Compact(types)); diff != "" {
				t.Errorf("events: %s", diff)
			}
			changing := cmpopts.IgnoreFields(responseBody{}, "ID", "CreatedAt")
			if diff := cmp.Diff(got, last, noID, changing, cmpopts.IgnoreFields(promptDetails{}, "CachedTokens")); diff != "" {
				t.Errorf("the last event's response: %s", diff)
			}
		})
	}
}

func TestResponseRefusals(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	for _, tc := range []struct {
		fields       object
		param, words string
	}{
		{object{"input": nil}, "input", "missing"},
		{object{"input": []object{}}, "input", "empty"},
		{object{"input": 5}, "input", "expected a string or a list"},
		{object{"input": []object{{"type": "function_call_output"}}}, "input[0]", "expected message or reasoning"},
		{object{"input": []object{{"role": "user", "content": []object{{"type": "input_image"}}}}}, "input[0].content[0]", "text only"},
		{object{"input": []object{{"role": "tool", "content": "x"}}}, "input[0]", "role tool"},
		{object{"previous_response_id": "resp_1"}, "previous_response_id", "keeps no responses"},
		{object{"store": true}, "store", "keeps no answers"},
		{object{"background": true}, "background", "keeps no responses"},
		{object{"truncation": "auto"}, "truncation", "no token of a prompt is dropped"},
		{object{"tools": []object{{"type": "web_search"}}}, "tools", "not supported here"},
		{object{"text": object{"format": object{"type": "json_schema"}}}, "text.format", "does not constrain"},
		{object{"text": object{"verbosity": "low"}}, "text.verbosity", "no such setting"},
		{object{"reasoning": object{"summary": "auto"}}, "reasoning.summary", "no summary"},
		{object{"max_output_tokens": 0}, "max_output_tokens", "expected 1 or more"},
		{object{"max_tokens": 5}, "max_tokens", "unknown field"},
	} {
		status, text := a.post(t, responsesPath, merge(object{"input": "hello", "max_output_tokens": 1}, tc.fields))
		var got struct{ Error errorFields }
		decodeAnswer(t, text, &got)
		if status != http.StatusBadRequest || got.Error.Param == nil || *got.Error.Param != tc.param || !strings.Contains(got.Error.Message, tc.words) {
			t.Errorf("%v: %d %s; want the parameter %s and %q", tc.fields, status, text, tc.param, tc.words)
		}
	}
}
