package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"unicode"
)

// Kinds of failed requests. One that was answered with another status than 200
// has that as its kind.
const (
	kindConnect    = "connect"        // no connection
	kindConnection = "connection"     // it broke before an answer came
	kindTimeout    = "timeout"        // the answer took longer than Options.Timeout
	kindCut        = "stream_cut"     // the stream ended without [DONE] or a reason to finish
	kindInvalid    = "stream_invalid" // what came was no stream of events of this endpoint
	kindStream     = "stream_error"   // the stream told of an error
	kindEmpty      = "empty"          // a stream without a token
)

// A failure is why a request failed.
type failure struct {
	kind    string
	message string
}

func (f *failure) Error() string { return f.kind + ": " + f.message }

func failuref(kind, format string, args ...any) *failure {
	return &failure{kind, clip(fmt.Sprintf(format, args...))}
}

// errInterrupted is the error of a request that ended because the run did.
var errInterrupted = errors.New("interrupted")

// failed says of what kind an error of the network is. ctx is the request's,
// a child of run, which ends when the user wants no more.
func failed(run, ctx context.Context, otherwise string, err error) error {
	switch {
	case run.Err() != nil:
		return errInterrupted
	case ctx.Err() != nil:
		return failuref(kindTimeout, "no whole answer in time")
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return failuref(kindConnect, "%v", op)
	}
	return failuref(otherwise, "%v", err)
}

// refused is the failure that an answer other than 200 tells of.
func refused(r *http.Response) *failure {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 64<<10))
	message := errorMessage(body)
	if message == "" {
		message = http.StatusText(r.StatusCode)
	}
	return failuref(strconv.Itoa(r.StatusCode), "%s", message)
}

// errorMessage is the text of {"error": {"message": …}}, {"error": "…"}, or
// whatever came instead.
func errorMessage(body []byte) string {
	var object struct {
		Error json.RawMessage `json:"error"`
	}
	text := bytes.TrimSpace(body)
	if json.Unmarshal(text, &object) == nil && len(object.Error) > 0 {
		text = object.Error
	}
	var inner struct {
		Message string `json:"message"`
	}
	var s string
	switch {
	case json.Unmarshal(text, &inner) == nil && inner.Message != "":
		return inner.Message
	case json.Unmarshal(text, &s) == nil:
		return s
	}
	return string(text)
}

// clip keeps what a server says fit for a table: short, printable, on one line.
func clip(s string) string {
	const most = 300
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s, "�"))
}
