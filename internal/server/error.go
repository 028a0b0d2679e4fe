package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/foretoken/foretoken/internal/chat"
	"github.com/foretoken/foretoken/internal/engine"
)

// An Error is what a client is told: {"error": {message, type, param, code}}.
// It names no path, address or stack.
type Error struct {
	Status     int
	Message    string
	Type       string // invalid_request_error, authentication_error, not_found_error, rate_limit_error, server_error
	Param      string // the field that is wrong; "": none
	Code       string // for programs, such as context_length_exceeded; "": none
	RetryAfter time.Duration
}

func (e *Error) Error() string { return e.Message }

// badRequest is an error of the client's in a field, "" for none.
func badRequest(param, format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Type: "invalid_request_error", Param: param, Message: fmt.Sprintf(format, args...)}
}

// quote shows a client's text in a message.
func quote(text string) string { return strconv.Quote(clip(text)) }

// errorOf says what a client is told of err: what the engine refuses and how
// templates fail is the client's to know, anything else is not.
func errorOf(err error) *Error {
	var (
		own        *Error
		request    *engine.RequestError
		unservable *engine.Unservable
		full       *engine.QueueFull
		template   *chat.TemplateError
		limit      *chat.LimitError
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &request):
		return badRequest(request.Field, "%v", request)
	case errors.As(err, &unservable):
		e := badRequest("", "%v", unservable)
		e.Code = "context_length_exceeded"
		return e
	case errors.As(err, &full):
		return &Error{Status: http.StatusTooManyRequests, Type: "rate_limit_error", Code: "queue_full", Message: err.Error(), RetryAfter: time.Second}
	case errors.As(err, &template), errors.As(err, &limit):
		return badRequest("messages", "%v", err)
	case errors.Is(err, engine.ErrClosed):
		return errDraining
	case errors.Is(err, context.Canceled): // who only closes his side, and still reads, hears of it
		return &Error{Status: statusClientGone, Type: "invalid_request_error", Message: "the client closed the connection before it had its answer"}
	case errors.Is(err, context.DeadlineExceeded):
		return errTotal
	}
	return &Error{Status: http.StatusInternalServerError, Type: "server_error", Message: "the request failed; the server's log says why"}
}

// errorBody is how an Error is told.
type errorBody struct {
	Error *Error `json:"error"`
}

// MarshalJSON writes what is absent as null, as OpenAI's API does.
func (e *Error) MarshalJSON() ([]byte, error) {
	optional := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	return json.Marshal(errorFields{e.Message, e.Type, optional(e.Param), optional(e.Code)})
}

type errorFields struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}
