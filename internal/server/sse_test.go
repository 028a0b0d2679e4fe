package server

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
)

// Whatever the text, an event is lines of known fields and a blank line, and
// gives the text back.
func FuzzEventStream(f *testing.F) {
	f.Add("hello", "world")
	f.Add("a\n\ndata: [DONE]\n\n", "\r\n: x\u2028")
	f.Add("", "\x00\xff<&>")
	f.Fuzz(func(t *testing.T, one, two string) {
		one, two = strings.ToValidUTF8(one, "?"), strings.ToValidUTF8(two, "?")
		w := httptest.NewRecorder()
		e := &eventStream{w: w}
		for _, send := range []func() error{
			func() error { return e.data(one) }, e.ping, func() error { return e.event("name", two) }, e.done,
		} {
			if err := send(); err != nil {
				t.Fatal(err)
			}
		}
		events := strings.Split(w.Body.String(), "\n\n")
		if len(events) != 5 || events[1] != ": ping" || events[3] != "data: [DONE]" || events[4] != "" {
			t.Fatalf("%q", events)
		}
		for i, tc := range map[int]struct{ head, text string }{0: {"data: ", one}, 2: {"event: name\ndata: ", two}} {
			data, ok := strings.CutPrefix(events[i], tc.head)
			var got string
			if err := json.Unmarshal([]byte(data), &got); err != nil || !ok || got != tc.text || strings.ContainsAny(data, "\r\n") {
				t.Errorf("%q became %q: %v", tc.text, events[i], err)
			}
		}
	})
}

// A stream of many small events is written in pieces of bounded size.
func TestEventStreamIsBounded(t *testing.T) {
	w := httptest.NewRecorder()
	e := &eventStream{w: w}
	for range 100 {
		if err := e.data(strings.Repeat("x", 10000)); err != nil {
			t.Fatal(err)
		}
		if e.buf.Len() > maxBuffered+10100 {
			t.Fatalf("%d bytes are held", e.buf.Len())
		}
	}
	if w.Body.Len() < 900000 {
		t.Errorf("%d bytes were sent", w.Body.Len())
	}
}
