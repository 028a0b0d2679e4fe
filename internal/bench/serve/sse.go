package serve

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxEvent bounds a line and the data of an event, in bytes: what a server
// sends is not trusted.
const maxEvent = 1 << 20

// An event is one server-sent event. Data is valid until the next one is read.
type event struct {
	name string // of the field "event"; empty where there was none
	data []byte // lines of the field "data", joined with line feeds
}

// An eventReader reads a stream of server-sent events (WHATWG HTML, §9.2.6).
// Lines end with LF, CR or CRLF; comments, and fields that are of no use here,
// are passed over. It differs from the standard in two ways that servers need:
// data that the stream ends in, without an empty line, is an event, and a field
// "error", which llama.cpp's server sends, is an event of that name.
type eventReader struct {
	in     *bufio.Reader
	began  bool // the mark of byte order, if there was one, has been read
	wasCR  bool // the last byte was CR: an LF that follows belongs to it
	buffer []byte
	event  event
}

func newEventReader(r io.Reader) *eventReader { return &eventReader{in: bufio.NewReader(r)} }

// next returns the next event that has data, or io.EOF after the last one.
func (r *eventReader) next() (event, error) {
	r.event = event{data: r.event.data[:0]}
	some := false
	for {
		line, err := r.line()
		if err != nil && !errors.Is(err, io.EOF) {
			return event{}, err
		}
		if !r.began {
			r.began, line = true, bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if len(line) == 0 {
			switch {
			case some:
				return r.event, nil
			case err != nil:
				return event{}, err
			}
			r.event.name = "" // an event without data is none
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			r.event.name = string(value)
		case "error":
			r.event.name = "error"
			fallthrough
		case "data":
			if some {
				r.event.data = append(r.event.data, '\n')
			}
			if some = true; len(r.event.data)+len(value) > maxEvent {
				return event{}, failuref(kindInvalid, "an event of more than %d bytes", maxEvent)
			}
			r.event.data = append(r.event.data, value...)
		}
	}
}

// line returns the next line without its end, valid until the next call. At the
// end of the stream it returns what is left, together with io.EOF or what cut
// the stream.
func (r *eventReader) line() ([]byte, error) {
	r.buffer = r.buffer[:0]
	for {
		b, err := r.in.ReadByte()
		if err != nil {
			return r.buffer, err
		}
		endsCRLF := r.wasCR && b == '\n'
		r.wasCR = b == '\r'
		switch {
		case endsCRLF:
			// The line was returned at its CR: an event is not held back until
			// more comes.
		case b == '\r' || b == '\n':
			return r.buffer, nil
		case len(r.buffer) == maxEvent:
			return nil, failuref(kindInvalid, "a line of more than %d bytes", maxEvent)
		default:
			r.buffer = append(r.buffer, b)
		}
	}
}
