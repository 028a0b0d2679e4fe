package serve

import (
	"encoding/json"
	"errors"
	"io"
	"time"
)

// An answer is what came of a stream, and when.
type answer struct {
	first, last time.Time       // chunk with tokens
	end         time.Time       // of the stream
	gaps        []time.Duration // between the chunks with tokens
	chunks      int             // with tokens
	finished    bool            // a reason to finish came, or [DONE]

	// What the server says of the numbers of tokens; nil if it says nothing.
	usage *usage
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// chunk is what is read of an event, of either endpoint.
type chunk struct {
	Choices []struct {
		Text  string `json:"text"`
		Delta struct {
			Content          string            `json:"content"`
			ReasoningContent string            `json:"reasoning_content"`
			Reasoning        string            `json:"reasoning"`
			ToolCalls        []json.RawMessage `json:"tool_calls"`
		} `json:"delta"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
	Usage *usage          `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// readStream reads a stream to [DONE] or its end. most bounds the chunks with
// tokens; began is called at the first. Errors other than *failure are those of
// r.
func readStream(r io.Reader, endpoint Endpoint, most int, began func()) (*answer, error) {
	in := newEventReader(r)
	a := &answer{}
	for {
		e, err := in.next()
		now := time.Now()
		a.end = now
		if errors.Is(err, io.EOF) {
			return a, nil
		}
		if err != nil {
			return a, err
		}
		if string(e.data) == "[DONE]" {
			a.finished = true
			return a, nil
		}
		var c chunk
		switch err := json.Unmarshal(e.data, &c); {
		case e.name == "error" || len(c.Error) > 0 && string(c.Error) != "null":
			return a, failuref(kindStream, "%s", errorMessage(e.data))
		case err != nil:
			return a, failuref(kindInvalid, "an event that is no chunk of %s: %v", endpoint, err)
		}
		if u := c.Usage; u != nil {
			if min(u.Prompt, u.Completion, u.Details.Cached) < 0 || max(u.Prompt, u.Completion, u.Details.Cached) > 1<<30 {
				return a, failuref(kindInvalid, "usage %+v: expected numbers of tokens", *u)
			}
			a.usage = u
		}
		if c.finishes() {
			a.finished = true
		}
		if !c.hasTokens(endpoint) {
			continue
		}
		if a.chunks++; a.chunks > most {
			return a, failuref(kindInvalid, "more than %d chunks: expected no more than the tokens asked for", most)
		}
		if a.chunks == 1 {
			a.first = now
			began()
		} else {
			a.gaps = append(a.gaps, now.Sub(a.last))
		}
		a.last = now
	}
}

func (c *chunk) finishes() bool { return len(c.Choices) > 0 && c.Choices[0].FinishReason != nil }

// hasTokens reports whether a chunk brings tokens. Those of a completion may
// have no text, being special or parts of a character; what ends it without
// text is no token, nor is the chunk that begins a chat with a role.
func (c *chunk) hasTokens(endpoint Endpoint) bool {
	if len(c.Choices) == 0 {
		return false
	}
	choice := &c.Choices[0]
	if endpoint == Completions {
		return choice.Text != "" || choice.FinishReason == nil
	}
	d := &choice.Delta
	return d.Content != "" || d.ReasoningContent != "" || d.Reasoning != "" || len(d.ToolCalls) > 0
}

// tokens is the number of generated tokens: the server's, since a chunk of a
// server that speculates has several, or else the number of chunks.
func (a *answer) tokens() int {
	if a.usage != nil && a.usage.Completion > 0 {
		return a.usage.Completion
	}
	return a.chunks
}
