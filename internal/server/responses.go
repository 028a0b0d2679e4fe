package server

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/foretoken/foretoken/internal/chat"
	"github.com/foretoken/foretoken/internal/chat/tools"
	"github.com/foretoken/foretoken/internal/chat/value"
)

// responseRequest is the body of POST /v1/responses.
type responseRequest struct {
	openAIFields
	samplingFields
	Input           inputField      `json:"input"`
	Instructions    string          `json:"instructions"`
	MaxOutputTokens *int            `json:"max_output_tokens"`
	Stream          bool            `json:"stream"`
	Text            textSettings    `json:"text"`
	Reasoning       reasoningField  `json:"reasoning"`
	Tools           []responseTool  `json:"tools"`
	ToolChoice      toolChoice      `json:"tool_choice"`
	ParallelCalls   *bool           `json:"parallel_tool_calls"`
	Truncation      truncationField `json:"truncation"`
	Include         includeField    `json:"include"`
	TopLogProbs     *int            `json:"top_logprobs"`
	Kwargs          *value.Object   `json:"chat_template_kwargs"`
}

func (q *responseRequest) check() error {
	if err := q.openAIFields.check(); err != nil {
		return err
	}
	switch {
	case len(q.Input.messages) == 0:
		return badRequest("input", "input is missing or empty")
	case q.MaxOutputTokens != nil && *q.MaxOutputTokens < 1:
		return badRequest("max_output_tokens", "max_output_tokens is %d, expected 1 or more", *q.MaxOutputTokens)
	case q.TopLogProbs != nil && *q.TopLogProbs > 0 && !bool(q.Include):
		return badRequest("top_logprobs", "top_logprobs without include: [%q]", includeLogProbs)
	}
	return checkTop("top_logprobs", q.TopLogProbs)
}

// includeField says whether the response is to have log-probabilities.
type includeField bool

const includeLogProbs = "message.output_text.logprobs"

func (f *includeField) read(path string, v value.Value) error {
	l, ok := v.(*value.List)
	if !ok {
		return badRequest(path, "%s is %s, expected a list", path, kindOf(v))
	}
	for i, item := range l.Items {
		if item != includeLogProbs {
			return badRequest(path, "%s[%d] is %s: of what this server answers there is nothing to include but %s", path, i, kindOf(item), includeLogProbs)
		}
		*f = true
	}
	return nil
}

// textSettings say in what form the text is to be.
type textSettings struct {
	Format    responseFormat `json:"format"`
	Verbosity string         `json:"verbosity"`
}

func (t *textSettings) check() error {
	if t.Verbosity != "" && t.Verbosity != "medium" {
		return badRequest("text.verbosity", "text.verbosity is %s: models here have no such setting; expected medium", quote(t.Verbosity))
	}
	return nil
}

// reasoningField says how much the model is to think.
type reasoningField struct {
	Effort  string `json:"effort"`
	Summary string `json:"summary"`
}

func (f *reasoningField) check() error {
	if f.Summary != "" {
		return badRequest("reasoning.summary", "reasoning.summary is %s: this server gives the reasoning itself, and no summary", quote(f.Summary))
	}
	return nil
}

// truncationField is disabled: no token of a prompt is dropped.
type truncationField string

func (f *truncationField) read(path string, v value.Value) error {
	if v != "disabled" {
		return badRequest(path, "%s is %s: no token of a prompt is dropped; expected disabled", path, kindOf(v))
	}
	*f = "disabled"
	return nil
}

// inputField is a conversation as /v1/responses has it: a text, or items.
type inputField struct {
	messages []messageField
	calls    map[string]bool // ids of the calls in it
}

func (f *inputField) read(path string, v value.Value) error {
	if text, ok := v.(string); ok {
		f.messages = []messageField{{Role: "user", Content: contentField{text}}}
		return nil
	}
	l, ok := v.(*value.List)
	if !ok {
		return badRequest(path, "%s is %s, expected a string or a list of items", path, kindOf(v))
	}
	reasoning := ""
	for i, item := range l.Items {
		at := fmt.Sprintf("%s[%d]", path, i)
		o, ok := item.(*value.Object)
		if !ok {
			return badRequest(at, "%s is %s, expected an object", at, kindOf(item))
		}
		switch kind, _ := o.Get("type"); kind {
		case "reasoning":
			text, err := inputText(at, "content", o, "reasoning_text")
			if err != nil {
				return err
			}
			reasoning = text
		case nil, "message":
			role, _ := o.Get("role")
			m := messageField{ReasoningContent: reasoning}
			m.Role, _ = role.(string)
			text, err := inputText(at, "content", o, "input_text", "output_text", "text")
			if err != nil {
				return err
			}
			m.Content.value = text
			if err := m.check(); err != nil {
				return badRequest(at, "%s: %v", at, err)
			}
			if m.Role == "tool" || reasoning != "" && m.Role != "assistant" {
				return badRequest(at, "%s is of the role %s: expected a message of the user, of the assistant, or instructions", at, m.Role)
			}
			reasoning = ""
			f.messages = append(f.messages, m)
		case "function_call":
			if err := f.addCall(at, o, reasoning); err != nil {
				return err
			}
			reasoning = ""
		case "function_call_output":
			if err := f.addResult(at, o); err != nil {
				return err
			}
		default:
			return badRequest(at, "%s is of type %s, expected message, reasoning, function_call or function_call_output", at, kindOf(kind))
		}
	}
	if reasoning != "" {
		return badRequest(path, "%s ends with reasoning, which belongs in front of a message or call of the assistant", path)
	}
	return nil
}

// inputText is a field of an item: a text, or parts of the given types.
func inputText(at, field string, item *value.Object, types ...string) (string, error) {
	path := at + "." + field
	content, _ := item.Get(field)
	switch c := content.(type) {
	case string:
		return c, nil
	case *value.List:
		texts := make([]string, len(c.Items))
		for i, part := range c.Items {
			if err := checkPart(fmt.Sprintf("%s[%d]", path, i), part, types...); err != nil {
				return "", err
			}
			text, _ := part.(*value.Object).Get("text")
			texts[i], _ = text.(string)
		}
		return strings.Join(texts, "\n"), nil
	}
	return "", badRequest(path, "%s is %s, expected a string or a list of parts", path, kindOf(content))
}

// responseBody is an answer. Fields that ask for what this server has not are what
// they are where nobody asked.
type responseBody struct {
	ID                string         `json:"id"`
	Object            string         `json:"object"` // response
	CreatedAt         int64          `json:"created_at"`
	Status            string         `json:"status"` // in_progress, completed, incomplete
	Error             *errorFields   `json:"error"`
	IncompleteDetails *incomplete    `json:"incomplete_details"`
	Instructions      *string        `json:"instructions"`
	MaxOutputTokens   *int           `json:"max_output_tokens"`
	Metadata          map[string]any `json:"metadata"`
	Model             string         `json:"model"`
	Output            []outputItem   `json:"output"`
	ParallelToolCalls bool           `json:"parallel_tool_calls"`
	Temperature       float32        `json:"temperature"`
	TopP              float32        `json:"top_p"`
	Store             bool           `json:"store"`
	ToolChoice        string         `json:"tool_choice"`
	Tools             []chat.Value   `json:"tools"`
	TopLogProbs       int            `json:"top_logprobs"`
	Truncation        string         `json:"truncation"`
	Usage             *responseUsage `json:"usage"`
}

type incomplete struct {
	Reason string `json:"reason"` // max_output_tokens
}

// outputItem is a message, reasoning, or a call of a function.
type outputItem struct {
	ID        string       `json:"id"`
	Type      string       `json:"type"`
	Status    string       `json:"status"`
	Role      string       `json:"role,omitempty"`
	Content   []outputPart `json:"content,omitzero"`    // of messages and reasoning: one part
	Summary   *[]string    `json:"summary,omitempty"`   // of reasoning: empty
	CallID    string       `json:"call_id,omitempty"`   // of calls, as are the next
	Name      string       `json:"name,omitempty"`      // the function's
	Arguments *string      `json:"arguments,omitempty"` // JSON, as the model wrote it
}

// outputPart is the text of an item.
type outputPart struct {
	Type        string         `json:"type"` // output_text or reasoning_text
	Text        string         `json:"text"`
	Annotations *[]string      `json:"annotations,omitempty"` // of output_text: empty
	LogProbs    *[]chatLogProb `json:"logprobs,omitempty"`    // of output_text, if they are included
}

type responseUsage struct {
	InputTokens   int               `json:"input_tokens"`
	InputDetails  promptDetails     `json:"input_tokens_details"`
	OutputTokens  int               `json:"output_tokens"`
	OutputDetails completionDetail  `json:"output_tokens_details"`
	TotalTokens   int               `json:"total_tokens"`
	Speculation   *speculationUsage `json:"speculation,omitempty"`
}

// responding is a request on its way.
type responding struct {
	*chatting
	responseBody
	request *responseRequest
	text    strings.Builder // of the last item, until write
}

// responses serves POST /v1/responses.
func (s *Server) responses(w http.ResponseWriter, r *http.Request) error {
	q := new(responseRequest)
	if err := readRequest(r, q); err != nil {
		return err
	}
	asked := &chatRequest{MaxTokens: q.MaxOutputTokens}
	asked.Model, asked.samplingFields = q.Model, q.samplingFields
	if q.Instructions != "" {
		asked.Messages = []messageField{{Role: "system", Content: contentField{q.Instructions}}}
	}
	asked.Messages = append(asked.Messages, q.Input.messages...)
	asked.Tools, _ = toolFields(q.Tools)
	asked.ToolChoice, asked.ParallelCalls = q.ToolChoice, q.ParallelCalls
	asked.LogProbs, asked.TopLogProbs = bool(q.Include), q.TopLogProbs
	var err error
	if asked.Kwargs, err = s.kwargs(q.Kwargs, "reasoning.effort", q.Reasoning.Effort, len(asked.offered()) > 0); err != nil {
		return err
	}
	c, err := s.chat(r, asked)
	if err != nil {
		return err
	}
	defer c.all.Close()
	if q.Include {
		c.answers[0].spells = new(speller)
	}
	a := &responding{chatting: c, request: q}
	a.responseBody = a.empty(requestID(r.Context()))
	if q.Stream {
		return a.stream(w, r)
	}
	if err := c.collect(r.Context()); err != nil {
		return err
	}
	for _, d := range c.answers[0].deltas {
		a.put(d)
	}
	a.end()
	return respond(w, &a.responseBody)
}

// empty is the response before the model has said anything.
func (a *responding) empty(id string) responseBody {
	q := a.request
	p := a.engine.Sampling()
	set(&p.Temperature, q.Temperature)
	set(&p.TopP, q.TopP)
	r := responseBody{
		ID: "resp_" + id, Object: "response", CreatedAt: time.Now().Unix(), Status: "in_progress", Model: a.Models[0],
		MaxOutputTokens: q.MaxOutputTokens, Metadata: map[string]any{}, Output: []outputItem{}, ParallelToolCalls: true,
		Temperature: p.Temperature, TopP: p.TopP, ToolChoice: cmp.Or(string(q.ToolChoice), "auto"), Truncation: "disabled",
	}
	_, r.Tools = toolFields(q.Tools)
	set(&r.ParallelToolCalls, q.ParallelCalls)
	set(&r.TopLogProbs, q.TopLogProbs)
	if q.Instructions != "" {
		r.Instructions = &q.Instructions
	}
	for k, v := range q.Metadata.All() {
		r.Metadata[k.(string)] = v
	}
	return r
}

// begins reports whether an item begins with what the model says.
func (a *responding) begins(d tools.Delta) bool {
	last := ""
	if n := len(a.Output); n > 0 {
		last = a.Output[n-1].Type
	}
	switch d.Kind {
	case tools.Reasoning:
		return last != "reasoning"
	case tools.Content:
		return last != "message"
	}
	return d.Kind == tools.CallName
}

// put adds what the model says to the last item, or to the one that it begins.
func (a *responding) put(d answerDelta) {
	if a.begins(d.Delta) {
		a.write()
		item, prefix := outputItem{Type: "message", Role: "assistant", Content: []outputPart{{Type: "output_text", Annotations: &[]string{}}}}, "msg_"
		switch d.Kind {
		case tools.Reasoning:
			item, prefix = outputItem{Type: "reasoning", Summary: &[]string{}, Content: []outputPart{{Type: "reasoning_text"}}}, "rs_"
		case tools.CallName:
			item, prefix = outputItem{Type: "function_call", CallID: d.ID, Name: d.Text, Arguments: new("")}, "fc_"
		case tools.Content:
			if a.request.Include {
				item.Content[0].LogProbs = &[]chatLogProb{}
			}
		}
		item.ID = fmt.Sprintf("%s%s_%d", prefix, strings.TrimPrefix(a.ID, "resp_"), len(a.Output))
		item.Status = "in_progress"
		a.Output = append(a.Output, item)
	}
	switch d.Kind {
	case tools.Reasoning, tools.Content, tools.CallArguments:
		a.text.WriteString(d.Text)
		if len(d.scores) > 0 {
			all := a.last().Content[0].LogProbs
			*all = append(*all, d.scores...)
		}
	case tools.CallEnd:
		a.last().Status = "completed"
	}
}

func (a *responding) last() *outputItem { return &a.Output[len(a.Output)-1] }

// write gives the last item the text that has come for it.
func (a *responding) write() {
	if a.text.Len() == 0 {
		return
	}
	text := a.text.String()
	a.text.Reset()
	if item := a.last(); item.Content != nil {
		item.Content[0].Text = text
	} else {
		item.Arguments = &text
	}
}

// outcome is the status of a response that has ended, and of its last item.
func (a *responding) outcome() string {
	if a.answers[0].finish == "length" {
		return "incomplete"
	}
	return "completed"
}

// end completes the response.
func (a *responding) end() {
	a.write()
	if a.Status = a.outcome(); a.Status == "incomplete" {
		a.IncompleteDetails = &incomplete{"max_output_tokens"}
	}
	for i := range a.Output {
		switch item := &a.Output[i]; {
		case item.Status != "in_progress": // a call that has ended
		case i == len(a.Output)-1:
			item.Status = a.Status
		default:
			item.Status = "completed"
		}
	}
	u := a.usage()
	a.Usage = &responseUsage{
		InputTokens: u.PromptTokens, InputDetails: u.PromptDetails, OutputTokens: u.CompletionTokens, OutputDetails: *u.Details, TotalTokens: u.TotalTokens,
		Speculation: u.Speculation,
	}
}
