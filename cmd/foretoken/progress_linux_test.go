package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"
)

// On a terminal a download has one line that fits and is gone at the end.
func TestProgressOnTerminal(t *testing.T) {
	const name, size, half = "a-model-with-a-name-that-is-long-enough-to-be-cut-somewhere.gguf", 10_000_000, 5_000_000
	for _, columns := range []uint16{60, 100} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			goOn := make(chan struct{})
			site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", fmt.Sprint(size))
				w.Write(append([]byte("GGUF"), make([]byte, half-4)...))
				w.(http.Flusher).Flush()
				select {
				case <-goOn:
				case <-r.Context().Done():
				}
				w.Write(make([]byte, size-half))
			}))
			defer site.Close()
			s := openScreenOf(t, columns, "pull", site.URL+"/"+name)
			seen := s.expect(" of 10.0 MB")
			close(goOn)
			seen += " of 10.0 MB" + s.expect("/"+name) // the path, which no draw has
			if strings.Contains(strings.TrimRight(seen, "\r\n"), "\n") {
				t.Errorf("more than one line: %q", seen)
			}
			draws := strings.Split(seen, "\r")
			for _, draw := range draws[:len(draws)-1] { // the last is the path that is printed
				if n := utf8.RuneCountInString(draw); n >= int(columns) {
					t.Errorf("%d characters in %d columns: %q", n, columns, draw)
				}
			}
			if blank := draws[len(draws)-2]; blank == "" || strings.TrimSpace(blank) != "" {
				t.Errorf("before the path came %q, not an empty line: %q", blank, seen)
			}
			s.ended()
		})
	}
}
