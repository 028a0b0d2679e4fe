package server

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/tokenizer"
)

// tokenText is the text of a token by itself. A part of a character has no
// text; OpenAI's API writes its bytes as bytes:\xe2\x80.
func (s *Server) tokenText(id int32) string {
	t, err := s.engine.Tokenizer()
	if err != nil {
		return idText(id)
	}
	b := t.Bytes(id)
	if utf8.Valid(b) {
		return string(b)
	}
	var text strings.Builder
	text.WriteString("bytes:")
	for _, c := range b {
		text.WriteString(fmt.Sprintf(`\x%02x`, c))
	}
	return text.String()
}

// idText is how a token is called that has no text of its own.
func idText(id int32) string { return fmt.Sprintf("token_id:%d", id) }

// jsonLogProb is a log-probability that JSON can write: nothing is less likely
// than e^-9999, which is what other servers write for a probability of 0.
func jsonLogProb(p float64) float64 { return max(p, -9999) }

// textLogProbs are log-probabilities in the form of /v1/completions.
type textLogProbs struct {
	Tokens        []string             `json:"tokens"`
	TokenLogProbs []*float64           `json:"token_logprobs"`
	TopLogProbs   []map[string]float64 `json:"top_logprobs"`
	TextOffset    []int                `json:"text_offset"` // in the choice's text, in characters
}

// textScorer collects the log-probabilities of a choice.
type textScorer struct {
	server *Server
	text   *tokenizer.Stream // nil: no tokenizer
	top    int               // alternatives of a token that were asked for
	at     int               // characters so far
	out    textLogProbs
}

// newTextScorer begins behind a prompt, or with echo at its first token.
func (s *Server) newTextScorer(top int, prompt []int32, echo, keepSpecial bool) *textScorer {
	c := &textScorer{server: s, top: top}
	if t, err := s.engine.Tokenizer(); err == nil {
		if echo {
			prompt = nil
		}
		c.text = t.Stream(prompt, !keepSpecial)
	}
	c.reset()
	return c
}

// reset forgets what take has returned.
func (c *textScorer) reset() {
	c.out = textLogProbs{Tokens: []string{}, TokenLogProbs: []*float64{}, TopLogProbs: []map[string]float64{}, TextOffset: []int{}}
}

// take returns what has been added since the last call.
func (c *textScorer) take() *textLogProbs {
	out := c.out
	c.reset()
	return &out
}

// add adds a token. first: nothing precedes it, so nothing predicts it.
func (c *textScorer) add(id int32, logProb float64, top []sample.TokenLogProb, first bool) {
	o := &c.out
	text := c.server.tokenText(id)
	o.Tokens = append(o.Tokens, text)
	o.TextOffset = append(o.TextOffset, c.at)
	if c.text != nil {
		c.at += utf8.RuneCountInString(c.text.Push(id))
	}
	if first {
		o.TokenLogProbs, o.TopLogProbs = append(o.TokenLogProbs, nil), append(o.TopLogProbs, nil)
		return
	}
	p := jsonLogProb(logProb)
	alternatives := map[string]float64{text: p}
	for _, t := range top[:min(len(top), c.top)] {
		if t.Token == id {
			continue
		}
		text := c.server.tokenText(t.Token)
		if _, taken := alternatives[text]; taken {
			text = idText(t.Token) // another token of the same text
		}
		alternatives[text] = jsonLogProb(t.LogProb)
	}
	o.TokenLogProbs, o.TopLogProbs = append(o.TokenLogProbs, &p), append(o.TopLogProbs, alternatives)
}

func (c *textScorer) addToken(t *engine.Token) { c.add(t.ID, t.LogProb, t.Top, false) }

// chatLogProbs are log-probabilities in the form of /v1/chat/completions.
type chatLogProbs struct {
	Content []chatLogProb `json:"content"`
	Refusal []chatLogProb `json:"refusal"` // always null
}

type chatLogProb struct {
	Token       string       `json:"token"`
	LogProb     float64      `json:"logprob"`
	Bytes       []int        `json:"bytes"`
	TopLogProbs []topLogProb `json:"top_logprobs"`
}

type topLogProb struct {
	Token   string  `json:"token"`
	LogProb float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

func (s *Server) chatLogProb(t *engine.Token) chatLogProb {
	p := chatLogProb{Token: s.tokenText(t.ID), LogProb: jsonLogProb(t.LogProb), Bytes: s.tokenBytes(t.ID), TopLogProbs: []topLogProb{}}
	for _, top := range t.Top {
		p.TopLogProbs = append(p.TopLogProbs, topLogProb{Token: s.tokenText(top.Token), LogProb: jsonLogProb(top.LogProb), Bytes: s.tokenBytes(top.Token)})
	}
	return p
}

// hidden reports whether a token is not in the answer's text, being special.
func (s *Server) hidden(t *engine.Token) bool {
	names, err := s.engine.Tokenizer()
	return err == nil && names.IsSpecial(t.ID) && !strings.HasSuffix(t.Text, s.tokenText(t.ID))
}

// tokenBytes is a token's UTF-8 as numbers, which JSON can carry also where it
// is a part of a character.
func (s *Server) tokenBytes(id int32) []int {
	t, err := s.engine.Tokenizer()
	if err != nil {
		return nil
	}
	b := t.Bytes(id)
	numbers := make([]int, len(b))
	for i, c := range b {
		numbers[i] = int(c)
	}
	return numbers
}

// promptLogProb is what vLLM's prompt_logprobs say of a token.
type promptLogProb struct {
	LogProb float64 `json:"logprob"`
	Rank    int     `json:"rank,omitempty"` // from 1; none for a token beyond those asked for
	Decoded string  `json:"decoded_token"`
}

// promptLogProbs are the scores of a prompt, with the n most likely tokens of
// each, by token id; null for the first.
func (s *Server) promptLogProbs(n int, scores []engine.TokenScore) []map[int32]promptLogProb {
	out := make([]map[int32]promptLogProb, len(scores))
	for i, score := range scores {
		if i == 0 {
			continue
		}
		out[i] = map[int32]promptLogProb{score.ID: {LogProb: jsonLogProb(score.LogProb), Decoded: s.tokenText(score.ID)}}
		for rank, t := range score.Top[:min(len(score.Top), n)] {
			out[i][t.Token] = promptLogProb{LogProb: jsonLogProb(t.LogProb), Rank: rank + 1, Decoded: s.tokenText(t.Token)}
		}
	}
	return out
}
