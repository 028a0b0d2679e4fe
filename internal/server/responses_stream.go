package server

import (
	"net/http"

	"github.com/foretoken/foretoken/internal/chat/tools"
)

// responseEvent is an event of a streamed response; which fields it has depends
// on its type.
type responseEvent struct {
	Type           string        `json:"type"`
	SequenceNumber int           `json:"sequence_number"` // from 0
	Response       *responseBody `json:"response,omitempty"`
	OutputIndex    *int          `json:"output_index,omitempty"`
	ContentIndex   *int          `json:"content_index,omitempty"`
	ItemID         string        `json:"item_id,omitempty"`
	Item           *outputItem   `json:"item,omitempty"`
	Part           *outputPart   `json:"part,omitempty"`
	Delta          string        `json:"delta,omitempty"`
	Text           *string       `json:"text,omitempty"`
	LogProbs       *[]string     `json:"logprobs,omitempty"` // of output_text: empty
	Message        string        `json:"message,omitempty"`  // of error
	Code           *string       `json:"code,omitempty"`
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
	for b, err := range a.all.batches(r.Context(), a.Limits.ping()) {
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
	}
	s.close()
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

func (s *responseStream) delta(d tools.Delta) {
	last := len(s.Output) - 1
	if last >= 0 && (s.Output[last].Type == "reasoning") != (d.Kind == tools.Reasoning) {
		s.close()
	}
	if s.put(d) {
		item, part := s.last()
		bare, empty := *item, *part
		bare.Content, empty.Text = []outputPart{}, ""
		s.send(responseEvent{Type: "response.output_item.added", OutputIndex: s.index(), Item: &bare})
		s.send(s.partEvent("response.content_part.added", &empty))
	}
	item, part := s.last()
	e := responseEvent{Type: "response." + part.Type + ".delta", OutputIndex: s.index(), ContentIndex: new(int), ItemID: item.ID, Delta: d.Text}
	if part.Type == "output_text" {
		e.LogProbs = &[]string{}
	}
	s.send(e)
}

// close ends the last item.
func (s *responseStream) close() {
	if len(s.Output) == 0 {
		return
	}
	item, part := s.last()
	item.Status = "completed"
	if s.answers[0].finish == "length" {
		item.Status = "incomplete"
	}
	e := responseEvent{Type: "response." + part.Type + ".done", OutputIndex: s.index(), ContentIndex: new(int), ItemID: item.ID, Text: &part.Text}
	if part.Type == "output_text" {
		e.LogProbs = &[]string{}
	}
	s.send(e)
	s.send(s.partEvent("response.content_part.done", part))
	s.send(responseEvent{Type: "response.output_item.done", OutputIndex: s.index(), Item: item})
}

func (s *responseStream) partEvent(kind string, part *outputPart) responseEvent {
	item, _ := s.last()
	return responseEvent{Type: kind, OutputIndex: s.index(), ContentIndex: new(int), ItemID: item.ID, Part: part}
}

func (s *responseStream) last() (*outputItem, *outputPart) {
	item := &s.Output[len(s.Output)-1]
	return item, &item.Content[0]
}

func (s *responseStream) index() *int {
	i := len(s.Output) - 1
	return &i
}
