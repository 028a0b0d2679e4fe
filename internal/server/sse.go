package server

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// maxBuffered is how much of a stream is written at once.
const maxBuffered = 64 << 10

// An eventStream writes server-sent events (the HTML standard, §9.2). Events are
// collected until flush, so that the tokens of a step are one write.
type eventStream struct {
	w     http.ResponseWriter
	buf   bytes.Buffer
	begun bool // the client has the status 200
}

// data adds an event whose data is the JSON of v.
func (e *eventStream) data(v any) error { return e.event("", v) }

// event is data for an event with a type.
func (e *eventStream) event(name string, v any) error {
	if name != "" {
		e.buf.WriteString("event: ")
		e.buf.WriteString(name)
		e.buf.WriteByte('\n')
	}
	e.buf.WriteString("data: ")
	if err := writeJSON(&e.buf, v); err != nil { // which has no line break but the last
		return err
	}
	e.buf.WriteByte('\n')
	if e.buf.Len() > maxBuffered {
		return e.flush()
	}
	return nil
}

// ping sends a comment, which keeps connections open that somebody between
// server and client would close, and finds those that are gone.
func (e *eventStream) ping() error {
	e.buf.WriteString(": ping\n\n")
	return e.flush()
}

// done ends the stream as OpenAI's streams of chunks end.
func (e *eventStream) done() error {
	e.buf.WriteString("data: [DONE]\n\n")
	return e.flush()
}

// fail tells of an error in a stream that has begun, and ends it. Before that
// the error is the response's. It returns err for the log in either case.
func (e *eventStream) fail(err error) error {
	if e.begun {
		_ = e.data(errorBody{errorOf(err)}) // the client may be gone
		_ = e.done()
	}
	return err
}

// flush sends what has been added.
func (e *eventStream) flush() error {
	if !e.begun {
		e.begun = true
		h := e.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no") // nginx would collect events
	}
	_, err := e.w.Write(e.buf.Bytes())
	e.buf.Reset()
	if err != nil {
		return err
	}
	return http.NewResponseController(e.w).Flush()
}

// writeJSON writes v and a line break. Text is not escaped for HTML.
func writeJSON(b *bytes.Buffer, v any) error {
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// respond writes v as the response.
func respond(w http.ResponseWriter, v any) error {
	var b bytes.Buffer
	if err := writeJSON(&b, v); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err := w.Write(b.Bytes())
	return err
}
