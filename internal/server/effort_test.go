package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/chat/tools"
	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// An effort reaches the template by the variables that it reads. Nothing that a
// client asks of a template is left out without a word.
func TestReasoningEffort(t *testing.T) {
	path := testmodel.Safetensors(t, testmodel.Family("llama"))
	const (
		plain   = "{{ messages[0].content }}"
		efforts = plain + "{{ reasoning_effort }}"
		toggle  = plain + "{{ 'off' if enable_thinking is false else 'on' }}"
		ibm     = plain + "{{ 'off' if thinking is false else 'on' }}"
	)
	kwargs := func(o object) object { return object{"chat_template_kwargs": o} }
	for name, tc := range map[string]struct {
		template string
		thinks   bool
		q        object
		prompt   string // or
		param    string
		words    string
	}{
		"read":                     {efforts, true, object{"reasoning_effort": "low"}, "hellolow", "", ""},
		"none is read":             {efforts, true, object{"reasoning_effort": "none"}, "hellonone", "", ""},
		"in kwargs":                {efforts, true, kwargs(object{"reasoning_effort": "low"}), "hellolow", "", ""},
		"the same twice":           {efforts, true, merge(kwargs(object{"reasoning_effort": "low"}), object{"reasoning_effort": "low"}), "hellolow", "", ""},
		"two":                      {efforts, true, merge(kwargs(object{"reasoning_effort": "low"}), object{"reasoning_effort": "high"}), "", "reasoning_effort", "one will do"},
		"none of a switch":         {toggle, true, object{"reasoning_effort": "none"}, "hellooff", "", ""},
		"none of another switch":   {ibm, true, object{"reasoning_effort": "none"}, "hellooff", "", ""},
		"none, and on":             {toggle, true, merge(kwargs(object{"enable_thinking": true}), object{"reasoning_effort": "none"}), "", "reasoning_effort", "one will do"},
		"an effort of a switch":    {toggle, true, object{"reasoning_effort": "high"}, "", "reasoning_effort", "it can be none, and enable_thinking in chat_template_kwargs"},
		"not read":                 {plain, false, object{"reasoning_effort": "low"}, "", "reasoning_effort", `"low": this model's chat template has no such setting`},
		"none, without reasoning":  {plain, false, object{"reasoning_effort": "none"}, "hello", "", ""},
		"none, and it must reason": {plain, true, object{"reasoning_effort": "none"}, "", "reasoning_effort", "no such setting"},
		"kwargs that are not read": {plain, false, kwargs(object{"enable_thinking": false}), "", "chat_template_kwargs", "enable_thinking: this model's chat template does not read it"},
		"kwargs without a value":   {plain, false, kwargs(object{"enable_thinking": nil}), "hello", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			format := tools.Format{Calls: "hermes"}
			if tc.thinks {
				format.Reasoning = "qwen3"
			}
			a := serveEngine(t, openEngine(t, path, engine.Options{ChatTemplate: tc.template}), Options{Format: format})
			q := merge(sayHello, object{"max_tokens": 1, "return_token_ids": true}, tc.q)
			if tc.param == "" {
				ids := ask[chatCompletion](t, a, chatPath, q).PromptTokenIDs
				if got := ask[detokenized](t, a, "/detokenize", object{"tokens": ids}).Prompt; got != tc.prompt {
					t.Errorf("the prompt is %q, want %q", got, tc.prompt)
				}
				return
			}
			status, text := a.post(t, chatPath, q)
			var got struct{ Error errorFields }
			decodeAnswer(t, text, &got)
			if status != http.StatusBadRequest || got.Error.Param == nil || *got.Error.Param != tc.param || !strings.Contains(got.Error.Message, tc.words) {
				t.Errorf("%d %s; want the parameter %s and %q", status, text, tc.param, tc.words)
			}
		})
	}
}

func TestResponseEffort(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	status, text := a.post(t, responsesPath, object{"input": "hello", "reasoning": object{"effort": "high"}})
	if status != http.StatusBadRequest || !strings.Contains(text, `"param":"reasoning.effort"`) {
		t.Errorf("%d %s", status, text)
	}
}
