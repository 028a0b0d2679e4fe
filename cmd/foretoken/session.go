package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/foretoken/foretoken/internal/chat"
	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/tokenizer"
)

// A session asks one model, once or turn by turn.
type session struct {
	engine  *engine.Engine
	model   string // what the user calls it
	params  sample.Params
	system  string
	kwargs  *chat.Object   // for the template
	history []chat.Message // what was said, without the system message

	raw     bool // no template: prompts are continued
	ids     bool // print ids instead of text
	verbose bool
	colour  bool // of tokens that were drafted
	load    time.Duration
}

// prepare checks what can be checked before there is a prompt. ids says that
// the prompt will come as such.
func (s *session) prepare(ids bool) error {
	if err := s.params.Validate(s.engine.Config().Vocab); err != nil {
		return usageError{err}
	}
	if _, err := s.engine.Tokenizer(); err != nil && !(ids && s.ids) {
		return fmt.Errorf("%s has no tokenizer: give --tokens and --print-tokens", s.model)
	}
	if s.raw || ids {
		return nil
	}
	switch {
	case s.engine.HasTemplate():
		return nil
	case s.system != "":
		return fmt.Errorf("%s has no chat template to put --system into", s.model)
	case s.kwargs != nil:
		return fmt.Errorf("%s has no chat template for --chat-template-kwargs", s.model)
	}
	s.raw = true
	note("%s has no chat template: it continues the prompt as plain text", s.model)
	return nil
}

// prompt returns the tokens to continue for what the user says.
func (s *session) prompt(ctx context.Context, text string) ([]int32, error) {
	t, err := s.engine.Tokenizer()
	if err != nil {
		return nil, err
	}
	if s.raw {
		return t.Encode(text, tokenizer.Options{Special: true})
	}
	c := chat.Conversation{AddGenerationPrompt: true, Kwargs: s.kwargs}
	if s.system != "" {
		c.Messages = append(c.Messages, chat.System(s.system))
	}
	c.Messages = append(append(c.Messages, s.history...), chat.User(text))
	rendered, err := s.engine.Prompt(ctx, c)
	if err != nil {
		return nil, err
	}
	return t.Encode(rendered, tokenizer.Options{}) // the template writes special tokens itself
}

// answer prints the continuation of a prompt as it comes, and returns what it
// printed: what there is of it when an error or ctx ends it.
func (s *session) answer(ctx context.Context, prompt []int32) (string, error) {
	t := timing{load: s.load, machine: s.engine.Machine(), prompt: len(prompt), asked: time.Now()}
	g, err := s.engine.Submit(ctx, engine.Request{Prompt: prompt, Params: s.params})
	if err != nil {
		return "", err
	}
	defer g.Close()
	var text strings.Builder // or the ids
	for {
		tokens, err := g.Next(context.Background()) // ctx ends the request itself
		for _, token := range tokens {
			t.token(token)
			piece := token.Text
			if s.ids {
				piece = listItem(t.tokens, token.ID)
			}
			text.WriteString(piece)
			if _, err := os.Stdout.WriteString(s.coloured(piece, token.Drafted)); err != nil {
				return text.String(), err
			}
		}
		if err == nil {
			continue
		}
		ended := errors.Is(err, io.EOF)
		if ended || text.Len() > 0 {
			if broken := s.endLine(text.String()); ended {
				err = broken
			}
		}
		if s.verbose && (ended || t.tokens > 0) {
			t.print(s.params.Seed, g.Progress().Speculation)
		}
		return text.String(), err
	}
}

// coloured is the text of a token, green if it was drafted.
func (s *session) coloured(piece string, drafted bool) string {
	if !s.colour || !drafted || piece == "" {
		return piece
	}
	return "\x1b[32m" + piece + "\x1b[39m"
}

// listItem is the nth id, from 1, of a JSON array that endLine ends.
func listItem(n int, id int32) string {
	if n == 1 {
		return fmt.Sprint("[", id)
	}
	return fmt.Sprint(",", id)
}

// endLine ends the last line of a text, or the array of ids.
func (s *session) endLine(text string) error {
	end := "\n"
	switch {
	case s.ids:
		end = "]\n"
	case strings.HasSuffix(text, "\n"):
		return nil
	}
	_, err := os.Stdout.WriteString(end)
	return err
}

// timing is what --verbose prints.
type timing struct {
	load               time.Duration
	machine            string
	prompt, tokens     int // lengths of prompt and answer
	asked, first, last time.Time
	finish             engine.FinishReason
}

func (t *timing) token(token engine.Token) {
	t.last, t.finish = time.Now(), token.Finish
	if t.tokens++; t.tokens == 1 {
		t.first = t.last
	}
}

// print writes to stderr. The first token comes with the prompt's step.
func (t *timing) print(seed uint64, drafts engine.SpeculationStats) {
	rate := func(tokens int, d time.Duration) string {
		return fmt.Sprintf("%d tokens in %.2f s, %.1f tokens/s", tokens, d.Seconds(), float64(tokens)/max(d.Seconds(), 1e-9))
	}
	fmt.Fprintf(os.Stderr, "load:   %.2f s, %s\n", t.load.Seconds(), t.machine)
	fmt.Fprintf(os.Stderr, "prompt: %s\n", rate(t.prompt, t.first.Sub(t.asked)))
	fmt.Fprintf(os.Stderr, "answer: 1 token with the prompt, then %s\n", rate(t.tokens-1, t.last.Sub(t.first)))
	if line := draftLine(drafts, float64(t.tokens-1)/max(t.last.Sub(t.first).Seconds(), 1e-9)); line != "" {
		fmt.Fprintf(os.Stderr, "drafts: %s\n", line)
	}
	fmt.Fprintf(os.Stderr, "finish: %s, seed %d\n", cmp.Or(t.finish, "stopped"), seed)
}

// draftLine says how often drafts were right, and how fast that made an answer;
// "" if there were none. τ counts the model's own token of a round, too.
func draftLine(s engine.SpeculationStats, rate float64) string {
	if s.Rounds == 0 {
		return ""
	}
	var line strings.Builder
	fmt.Fprintf(&line, "%d tokens drafted, %d accepted, τ %.2f, accepted by position", s.Drafted, s.Accepted, s.Tau())
	for _, share := range s.Acceptance() {
		fmt.Fprintf(&line, " %.2f", share)
	}
	fmt.Fprintf(&line, ", %.1f tokens/s", rate)
	return line.String()
}
