package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

type object = map[string]any

// get is for what has no body.
func (p *process) get(ctx context.Context, path string) (status int, text string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
	if err != nil {
		return 0, "", err
	}
	a, err := p.do(r)
	return a.status, a.text, err
}

// An answer is a response that has been read.
type answer struct {
	status int
	header http.Header
	text   string
	took   time.Duration
}

func (p *process) do(r *http.Request) (a answer, err error) {
	begin := time.Now()
	response, err := p.client.Do(r)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(body), time.Since(begin)}, err
}

// post sends a body, JSON of anything but a string.
func (p *process) post(ctx context.Context, path string, body any) (answer, error) {
	r, err := p.request(ctx, path, body)
	if err != nil {
		return answer{}, err
	}
	return p.do(r)
}

func (p *process) request(ctx context.Context, path string, body any) (*http.Request, error) {
	text, ok := body.(string)
	if !ok {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		text = string(b)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+path, strings.NewReader(text))
	if err == nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, err
}

// A stream is the response to a request for one, read event by event.
type stream struct {
	body  io.ReadCloser
	lines *bufio.Scanner
}

// open sends a request for a stream and returns when it has begun.
func (p *process) open(ctx context.Context, path string, body object) (*stream, error) {
	r, err := p.request(ctx, path, body)
	if err != nil {
		return nil, err
	}
	response, err := p.client.Do(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return nil, fmt.Errorf("status %d: %s", response.StatusCode, text)
	}
	s := &stream{response.Body, bufio.NewScanner(response.Body)}
	s.lines.Buffer(nil, 1<<20)
	return s, nil
}

// next returns the tokens of the next event that has any, and io.EOF after
// [DONE]. Requests ask for return_token_ids.
func (s *stream) next() ([]int32, error) {
	for s.lines.Scan() {
		data, ok := bytes.CutPrefix(s.lines.Bytes(), []byte("data: "))
		switch {
		case !ok:
			continue // a comment, or the end of an event
		case string(data) == "[DONE]":
			return nil, io.EOF
		}
		var chunk struct {
			Choices []struct {
				TokenIDs []int32 `json:"token_ids"`
			}
			Error json.RawMessage
		}
		if err := json.Unmarshal(data, &chunk); err != nil {
			return nil, fmt.Errorf("%w in %.200s", err, data)
		}
		if chunk.Error != nil {
			return nil, fmt.Errorf("the stream says %s", data)
		}
		if len(chunk.Choices) > 0 && len(chunk.Choices[0].TokenIDs) > 0 {
			return chunk.Choices[0].TokenIDs, nil
		}
	}
	if err := s.lines.Err(); err != nil {
		return nil, err
	}
	return nil, errors.New("the stream ends without [DONE]")
}

// rest reads a stream to its end.
func (s *stream) rest() (ids []int32, err error) {
	defer s.body.Close()
	for {
		more, err := s.next()
		ids = append(ids, more...)
		if errors.Is(err, io.EOF) {
			return ids, nil
		} else if err != nil {
			return ids, err
		}
	}
}

const (
	completions = "/v1/completions"
	chat        = "/v1/chat/completions"
)

// numbers are token ids that are bytes, for prompts that no other has.
func numbers(seed, n int) []int {
	ids := make([]int, n)
	for i := range ids {
		seed = (seed*1103515245 + 12345) & 0x7fffffff // C's example of rand
		ids[i] = 32 + seed>>16%90
	}
	return ids
}

// generate is a request for n tokens, streamed.
func generate(prompt []int, n int) object {
	return object{"prompt": prompt, "max_tokens": n, "ignore_eos": true, "temperature": 0, "stream": true, "return_token_ids": true}
}
