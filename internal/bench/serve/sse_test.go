package serve

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// events are what a reader makes of a stream, as name and data.
func events(r io.Reader) (all [][2]string, err error) {
	in := newEventReader(r)
	for {
		e, err := in.next()
		if err != nil {
			return all, err
		}
		all = append(all, [2]string{e.name, string(e.data)})
	}
}

func TestEvents(t *testing.T) {
	data := func(list ...string) (all [][2]string) {
		for _, d := range list {
			all = append(all, [2]string{"", d})
		}
		return all
	}
	for _, c := range []struct {
		name, stream string
		want         [][2]string
	}{
		{"nothing", "", nil},
		{"one", "data: a\n\n", data("a")},
		{"two", "data: a\n\ndata: b\n\n", data("a", "b")},
		{"no space", "data:a\n\n", data("a")},
		{"one space is no data, the second is", "data:  a\n\n", data(" a")},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", data("a", "b")},
		{"CR", "data: a\r\rdata: b\r\r", data("a", "b")},
		{"mixed ends", "data: a\r\ndata: b\rdata: c\n\n", data("a\nb\nc")},
		{"several lines", "data: a\ndata\ndata: b\n\n", data("a\n\nb")},
		{"empty data", "data\n\n", data("")},
		{"comments", ": ping\n\n:\ndata: a\n: in between\ndata: b\n\n", data("a\nb")},
		{"name", "event: error\ndata: a\n\ndata: b\n\n", [][2]string{{"error", "a"}, {"", "b"}}},
		{"name without data", "event: error\n\ndata: b\n\n", data("b")},
		{"llama.cpp's error", "error: {}\n\n", [][2]string{{"error", "{}"}}},
		{"other fields", "id: 1\nretry: 5\nfoo\nDATA: x\ndata: a\n\n", data("a")},
		{"mark of byte order", "\xef\xbb\xbfdata: a\n\n", data("a")},
		{"mark of byte order and no end", "\xef\xbb\xbfdata: a", data("a")},
		{"only one mark", "\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", nil},
		{"many empty lines", "\n\n\r\n\rdata: a\n\n\n\n", data("a")},
		{"no empty line at the end", "data: a\n\ndata: [DONE]\n", data("a", "[DONE]")},
		{"no end of line at the end", "data: a\n\ndata: [DONE]", data("a", "[DONE]")},
		{"CR at the end", "data: a\r", data("a")},
		{"bytes that are no text", "data: \xff\x00\n\n", data("\xff\x00")},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(c.stream), iotest.OneByteReader(strings.NewReader(c.stream))} {
				got, err := events(r)
				if diff := cmp.Diff(c.want, got); diff != "" || err != io.EOF {
					t.Errorf("events of %q, then %v: %s", c.stream, err, diff)
				}
			}
		})
	}
}

// An event is there as soon as its last line is, whatever that ends with.
func TestEventsAreNotHeldBack(t *testing.T) {
	for _, end := range []string{"\n", "\r", "\r\n"} {
		r, w := io.Pipe()
		in := newEventReader(r)
		for range 2 {
			go io.WriteString(w, "data: a"+end+end)
			if e, err := in.next(); err != nil || string(e.data) != "a" {
				t.Errorf("end %q: %q, %v", end, e.data, err)
			}
		}
		r.Close()
	}
}

func TestEventsAreBounded(t *testing.T) {
	fits := strings.Repeat("x", maxEvent-len("data: "))
	for _, c := range []struct{ name, stream, want string }{
		{"line that fits", "data: " + fits + "\n\n", "EOF"},
		{"line", "data: " + fits + "x\n\n", "a line of more than 1048576 bytes"},
		{"comment", ": " + fits + fits, "a line of more than 1048576 bytes"},
		{"event", strings.Repeat("data: "+fits[:1<<19]+"\n", 3), "an event of more than 1048576 bytes"},
		{"empty lines of an event", strings.Repeat("data\n", maxEvent+2), "an event of more than 1048576 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := events(strings.NewReader(c.stream)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

// What cuts a stream is passed on, and what it cut is no event.
func TestEventsOfACutStream(t *testing.T) {
	broken := errors.New("broken")
	got, err := events(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)))
	if len(got) != 1 || err != broken {
		t.Errorf("%q, %v; want one event and what broke", got, err)
	}
}

// How a stream is cut into reads, and how its lines end, changes nothing.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{
		"data: a\n\n", "data: a\r\n\r\n: ping\r\rdata: b", "event: error\rdata: x\n\n\xef\xbb\xbfdata\n\n", "error: {}\n\ndata:[DONE]", "\r\n\n\rid\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		want, err := events(bytes.NewReader(stream))
		if err != io.EOF && (err == nil || len(stream) <= maxEvent) {
			t.Fatalf("error %v", err)
		}
		for name, r := range map[string]io.Reader{
			"byte by byte": iotest.OneByteReader(bytes.NewReader(stream)),
			"by halves":    iotest.HalfReader(bytes.NewReader(stream)),
			"with CRLF":    strings.NewReader(strings.NewReplacer("\r\n", "\r\n", "\r", "\r\n", "\n", "\r\n").Replace(string(stream))),
		} {
			if got, gotErr := events(r); !slices.Equal(got, want) || (gotErr == io.EOF) != (err == io.EOF) {
				t.Errorf("%s: %q, %v; want %q, %v", name, got, gotErr, want, err)
			}
		}
		// What a client makes of it is an answer or an error, never a panic.
		for _, endpoint := range []Endpoint{Completions, Chat} {
			a, err := readStream(bytes.NewReader(stream), endpoint, 10, func() {})
			if a == nil || err == nil && (len(a.gaps) != max(0, a.chunks-1) || a.tokens() < 0) {
				t.Errorf("%s: %+v, %v", endpoint, a, err)
			}
		}
	})
}
