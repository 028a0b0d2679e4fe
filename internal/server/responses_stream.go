package server

import (
	"net/http"

	"github.com/foretoken/foretoken/internal/chat/tools"
)

// responseEvent is an event of a streamed response; which fields it has depends
// on its type.
type responseEvent struct {
	Type           string         `json:"type"`
	SequenceNumber int            `json:"sequence_number"` // from 0
	Response       *responseBody  `json:"response,omitempty"`
	OutputIndex    *int           `json:"output_index,omitempty"`
	ContentIndex   *int           `json:"content_index,omitempty"`
	ItemID         string         `json:"item_id,omitempty"`
	Item           *outputItem    `json:"item,omitempty"`
	Part           *outputPart    `json:"part,omitempty"`
	Delta          string         `json:"delta,omitempty"`
	Text           *string        `json:"text,omitempty"`
	LogProbs       *[]chatLogProb `json:"logprobs,omitempty"` // of output_text: empty, unless they are included
	Name           string         `json:"name,omitempty"`     // of function_call_arguments.done, as are
	Arguments      *string        `json:"arguments,omitempty"`
	Message        string         `json:"message,omitempty"` // of error
	Code           *string        `json:"code,omitempty"`
}

// A responseStream numbers events.
type responseStream struct {
	*responding
	eventStream
	sent int
	err  error // of the first event that could not be sent
}

func (s *responseStream) send(e responseEvent) {
	if s.err != nil {
		return
	}
	e.SequenceNumber = s.sent
	s.sent++
	s.err = s.event(e.Type, &e)
}

// stream sends what comes as it comes.
func (a *responding) stream(w http.ResponseWriter, r *http.Request) error {
	s := &responseStream{responding: a, eventStream: eventStream{w: w}}
	for b, err := range a.all.batches(r.Context(), a.Limits.Ping) {
		switch {
		case err != nil && s.begun:
			e := errorOf(err)
			s.send(responseEvent{Type: "error", Message: e.Message, Code: &e.Code})
			_ = s.flush() // the client may be gone
			return err
		case err != nil:
			return err
		case b.prompt < 0:
			s.err = s.ping()
		default:
			s.add(b)
		}
		if s.err != nil {
			return s.err
		}
		if a.over() {
			break
		}
	}
	s.close(a.outcome())
	a.end()
	s.send(responseEvent{Type: "response." + a.Status, Response: &a.responseBody})
	if s.err != nil {
		return s.err
	}
	return s.flush()
}

// add sends what is new.
func (s *responseStream) add(b batch) {
	if s.sent == 0 {
		s.send(responseEvent{Type: "response.created", Response: &s.responseBody})
		s.send(responseEvent{Type: "response.in_progress", Response: &s.responseBody})
	}
	for i := range b.tokens {
		s.chatting.add(&b.tokens[i])
	}
	answer := s.answers[0]
	for _, d := range answer.deltas {
		s.delta(d)
	}
	answer.deltas = nil
	if s.err == nil {
		s.err = s.flush()
	}
}

func (s *responseStream) delta(d answerDelta) {
	began := s.begins(d.Delta)
	if began || d.Kind == tools.CallEnd {
		s.close("completed")
	}
	s.put(d)
	item := s.last()
	if began {
		bare := *item
		if item.Content != nil {
			bare.Content = []outputPart{}
		}
		s.send(responseEvent{Type: "response.output_item.added", OutputIndex: s.index(), Item: &bare})
		if item.Content != nil {
			part := item.Content[0]
			if part.LogProbs != nil {
				part.LogProbs = &[]chatLogProb{}
			}
			s.send(s.partEvent("response.content_part.added", &part))
		}
	}
	switch d.Kind {
	case tools.Reasoning, tools.Content:
		s.send(s.textEvent("delta", d.scores, responseEvent{Delta: d.Text}))
	case tools.CallArguments:
		s.send(responseEvent{Type: "response.function_call_arguments.delta", OutputIndex: s.index(), ItemID: item.ID, Delta: d.Text})
	}
}

// close ends the last item, unless it has ended.
func (s *responseStream) close(status string) {
	if len(s.Output) == 0 || s.last().Status != "in_progress" {
		return
	}
	s.write()
	item := s.last()
	item.Status = status
	if item.Content != nil {
		part := &item.Content[0]
		var scores []chatLogProb
		set(&scores, part.LogProbs)
		s.send(s.textEvent("done", scores, responseEvent{Text: &part.Text}))
		s.send(s.partEvent("response.content_part.done", part))
	} else {
		s.send(responseEvent{
			Type: "response.function_call_arguments.done", OutputIndex: s.index(), ItemID: item.ID, Name: item.Name, Arguments: item.Arguments,
		})
	}
	s.send(responseEvent{Type: "response.output_item.done", OutputIndex: s.index(), Item: item})
}

// textEvent is e about the text of the last item, and the scores of its tokens.
func (s *responseStream) textEvent(what string, scores []chatLogProb, e responseEvent) responseEvent {
	item := s.last()
	part := item.Content[0].Type
	e.Type, e.OutputIndex, e.ContentIndex, e.ItemID = "response."+part+"."+what, s.index(), new(int), item.ID
	if part == "output_text" {
		scores = append([]chatLogProb{}, scores...) // none is no null
		e.LogProbs = &scores
	}
	return e
}

func (s *responseStream) partEvent(kind string, part *outputPart) responseEvent {
	return responseEvent{Type: kind, OutputIndex: s.index(), ContentIndex: new(int), ItemID: s.last().ID, Part: part}
}

func (s *responseStream) index() *int {
	i := len(s.Output) - 1
	return &i
}
