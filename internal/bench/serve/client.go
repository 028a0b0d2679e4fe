package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// An Endpoint is a route of the API.
type Endpoint string

// The endpoints that can be measured.
const (
	Completions Endpoint = "/v1/completions"
	Chat        Endpoint = "/v1/chat/completions"
)

// client sends the requests of a load.
type client struct {
	prompts
	http *http.Client
	base string // of the API, without /v1
	head []byte // how each body begins: the fields that all have, and a comma
}

func newClient(o *Options, block int) (*client, error) {
	u, err := url.Parse(o.BaseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return nil, fmt.Errorf("%q: expected the address of a server, such as http://127.0.0.1:8000", o.BaseURL)
	}
	transport := o.transport
	if transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 1<<16 // a connection for each request that runs
		t.DisableCompression = true                      // which holds back events
		t.MaxResponseHeaderBytes = 64 << 10
		transport = t
	}
	return &client{
		prompts: prompts{Options: o, block: block},
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		base: strings.TrimSuffix(strings.TrimRight(u.String(), "/"), "/v1"),
	}, nil
}

// prepare finds out the model's name, where none was given, and makes what all
// bodies have in common.
func (c *client) prepare(ctx context.Context) error {
	if c.Model == "" {
		var err error
		if c.Model, err = c.onlyModel(ctx); err != nil {
			return err
		}
	}
	fields := map[string]any{
		"model": c.Model, "stream": true, "stream_options": map[string]bool{"include_usage": true}, "temperature": 0,
	}
	if c.IgnoreEOS {
		fields["ignore_eos"] = true
	}
	for name, value := range c.Extra {
		fields[name] = value
	}
	head, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("extra fields: %w", err)
	}
	c.head = append(head[:len(head)-1], ',')
	return nil
}

// onlyModel is the name of the model that the server has.
func (c *client) onlyModel(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	r, _, err := c.do(ctx, http.MethodGet, "/v1/models", nil)
	if err != nil {
		return "", fmt.Errorf("%s/v1/models: %w", c.base, err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s/v1/models: %w", c.base, refused(r))
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&list); err != nil {
		return "", fmt.Errorf("%s/v1/models: %w: expected a list of models", c.base, err)
	}
	if len(list.Data) != 1 {
		var names []string
		for _, m := range list.Data[:min(len(list.Data), 10)] {
			names = append(names, m.ID)
		}
		return "", fmt.Errorf("%s has %d models (%s): say which one to measure", c.base, len(list.Data), clip(strings.Join(names, ", ")))
	}
	return list.Data[0].ID, nil
}

// body is the body of request i.
func (c *client) body(purpose uint64, i int, r Request) []byte {
	b := make([]byte, 0, len(c.head)+64+8*(c.Prefix+r.Input))
	b = append(b, c.head...)
	b = append(b, `"max_tokens":`...)
	b = strconv.AppendInt(b, int64(r.Output), 10)
	if c.Endpoint == Chat {
		b = append(b, `,"messages":[{"role":"user","content":`...)
		return append(c.appendText(b, purpose, i, r), "}]}"...)
	}
	b = append(b, `,"prompt":`...)
	if c.Text || c.given(purpose) {
		return append(c.appendText(b, purpose, i, r), '}')
	}
	return append(c.appendIDs(b, purpose, i, r), '}')
}

// do sends a request and says when. The context has to last until the body of
// the answer has been read.
func (c *client) do(ctx context.Context, method, path string, body []byte) (*http.Response, time.Time, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, time.Time{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	if c.APIKey != "" {
		r.Header.Set("Authorization", "Bearer "+c.APIKey)
	}
	// An empty key is not sent: it says that a request may be repeated where the
	// server closed a kept connection before it answered. llama.cpp's does after
	// each stream, having promised to keep it.
	r.Header["Idempotency-Key"] = nil
	sent := time.Now()
	response, err := c.http.Do(r)
	return response, sent, err
}

// ask sends request i and reads its answer; began is called when it has a
// token. The error is errInterrupted or a *failure.
func (c *client) ask(run context.Context, purpose uint64, i int, r Request, began func()) (sent time.Time, a *answer, err error) {
	body := c.body(purpose, i, r)
	ctx, cancel := context.WithTimeout(run, c.Timeout)
	defer cancel()
	response, sent, err := c.do(ctx, http.MethodPost, string(c.Endpoint), body)
	if err != nil {
		return sent, nil, failed(run, ctx, kindConnection, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return sent, nil, refused(response)
	}
	if kind := response.Header.Get("Content-Type"); kind != "" {
		if media, _, _ := mime.ParseMediaType(kind); media != "text/event-stream" {
			return sent, nil, failuref(kindInvalid, "content of type %s: expected text/event-stream", kind)
		}
	}
	// A token may come in several chunks where a parser splits it.
	a, err = readStream(response.Body, c.Endpoint, 4*r.Output+64, began)
	switch _, known := errors.AsType[*failure](err); {
	case known:
		return sent, nil, err
	case err != nil:
		return sent, nil, failed(run, ctx, kindCut, err)
	case !a.finished:
		return sent, nil, failuref(kindCut, "the stream ended without [DONE]")
	case a.chunks == 0:
		return sent, nil, failuref(kindEmpty, "a stream without a token")
	}
	// The connection can be used again if the end of the body was read.
	defer time.AfterFunc(drainTime, cancel).Stop()
	_, _ = io.CopyN(io.Discard, response.Body, 4<<10)
	return sent, a, nil
}

// drainTime is how long a server may take to end a stream after [DONE].
const drainTime = 100 * time.Millisecond
