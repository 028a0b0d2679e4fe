package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
)

// respond asks greedily.
func respond(s *server, input string) responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: s.model, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(input)}, Temperature: openai.Float(0),
	}
}

func testResponses(t *testing.T, s *server, w *want) {
	input := []responses.ResponseInputItemUnionParam{
		responses.ResponseInputItemParamOfMessage(w.Question, "user"),
		responses.ResponseInputItemParamOfMessage(w.Answer, "assistant"),
		responses.ResponseInputItemParamOfMessage(w.Followup, "user"),
	}
	instructed, followup := respond(s, w.Question), respond(s, "")
	instructed.Instructions = openai.String(systemMessage)
	followup.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: input}
	for name, tc := range map[string]struct {
		q    responses.ResponseNewParams
		want string
	}{
		"text": {respond(s, w.Question), w.Answer}, "instructions": {instructed, w.Instructed}, "items": {followup, w.FollowupAnswer},
	} {
		got, err := s.client().Responses.New(within(t), tc.q)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.OutputText() != tc.want || got.Status != "completed" || got.Object != "response" || got.Model != s.model || !strings.HasPrefix(got.ID, "resp_") || got.CreatedAt == 0 {
			t.Errorf("%s: %s, want %q", name, got.RawJSON(), tc.want)
		}
		if len(got.Output) != 1 || got.Output[0].Type != "message" || got.Output[0].Role != "assistant" || got.Output[0].ID == "" {
			t.Errorf("%s: %s", name, got.RawJSON())
		}
		if u := got.Usage; name == "text" && (u.InputTokens != int64(len(w.QuestionIDs)) || u.OutputTokens != int64(len(w.AnswerIDs)) || u.TotalTokens != u.InputTokens+u.OutputTokens) {
			t.Errorf("%s", u.RawJSON())
		}
	}

	q := respond(s, w.Question)
	q.MaxOutputTokens = openai.Int(4)
	got, err := s.client().Responses.New(within(t), q)
	succeeded(t, err)
	if got.Status != "incomplete" || got.IncompleteDetails.Reason != "max_output_tokens" || !strings.HasPrefix(w.Answer, got.OutputText()) || got.Usage.OutputTokens != 4 {
		t.Errorf("%s", got.RawJSON())
	}

	q = respond(s, w.Question)
	q.PreviousResponseID = openai.String(got.ID)
	_, err = s.client().Responses.New(within(t), q)
	refused(t, err, 400, "previous_response_id", "")
}

// events reads a stream: its events' types, deltas as one, and the text that
// they make.
func events(t *testing.T, s *server, q responses.ResponseNewParams) (types []string, text string, last responses.Response) {
	t.Helper()
	stream := s.client().Responses.NewStreaming(within(t), q)
	defer stream.Close()
	for n := int64(0); stream.Next(); n++ {
		e := stream.Current()
		if e.SequenceNumber != n {
			t.Errorf("event %d has the number %d", n, e.SequenceNumber)
		}
		if len(types) == 0 || types[len(types)-1] != e.Type {
			types = append(types, e.Type)
		}
		switch e.Type {
		case "response.output_text.delta":
			text += e.Delta
		case "response.output_text.done":
			if e.Text != text {
				t.Errorf("the text is %q, its deltas were %q", e.Text, text)
			}
		}
		last = e.Response
	}
	succeeded(t, stream.Err())
	return types, text, last
}

func testResponsesStream(t *testing.T, s *server, w *want) {
	types, text, last := events(t, s, respond(s, w.Question))
	want := []string{
		"response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
		"response.output_text.delta", "response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed",
	}
	if !slices.Equal(types, want) {
		t.Errorf("events %q, want %q", types, want)
	}
	if text != w.Answer || last.OutputText() != w.Answer || last.Status != "completed" || last.Usage.OutputTokens != int64(len(w.AnswerIDs)) {
		t.Errorf("%q, then %s; want %q", text, last.RawJSON(), w.Answer)
	}
}

// Reasoning is an item of its own, before the message.
func testResponsesReasoning(t *testing.T, s *server) {
	got, err := s.client().Responses.New(within(t), respond(s, "How is the weather?"))
	succeeded(t, err)
	if len(got.Output) != 2 || got.Output[0].Type != "reasoning" || got.Output[1].Type != "message" {
		t.Fatalf("%s", got.RawJSON())
	}
	if r := got.Output[0].AsReasoning(); len(r.Content) != 1 || r.Content[0].Text != hears.Reasoning {
		t.Errorf("%s", r.RawJSON())
	}
	if got.OutputText() != hears.Tagged || got.Usage.OutputTokensDetails.ReasoningTokens != 5 {
		t.Errorf("%s", got.RawJSON())
	}
	types, text, last := events(t, s, respond(s, "How is the weather?"))
	if text != hears.Tagged || last.OutputText() != hears.Tagged || !slices.Contains(types, "response.reasoning_text.delta") {
		t.Errorf("%q, %q, %s", types, text, last.RawJSON())
	}
}
