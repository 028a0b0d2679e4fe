package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"unicode"

	"github.com/foretoken/foretoken/internal/chat"
)

const chatHelp = `/clear   forget what was said
/bye     end the chat, as Ctrl-D does
/help    this
Ctrl-C   stop the answer
"""      begin and end a message of several lines; a line that ends in \ goes on too
`

// chat talks on a terminal until the user has enough.
func (s *session) chat(ctx context.Context) error {
	c, err := newConsole(os.Stdin, os.Stderr)
	if err != nil {
		return err
	}
	defer c.close()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	ctx = context.WithoutCancel(ctx) // from here on Ctrl-C means the answer
	c.print(s.model + " answers. /help lists commands, Ctrl-D ends the chat.\n")
	leaving := false // Ctrl-C was the last thing that came
	for {
		text, err := c.message()
		interrupted := errors.Is(err, errInterrupted)
		switch {
		case errors.Is(err, io.EOF), interrupted && leaving:
			return nil
		case interrupted:
			c.print("Ctrl-C again, Ctrl-D or /bye ends the chat.\n")
		case err != nil:
			return err
		case text == "/bye":
			return nil
		case text == "/clear":
			s.history = nil
		case text == "/help":
			c.print(chatHelp)
		case isCommand(text):
			c.print("No such command: /help lists them.\n")
		case text != "":
			if err := s.turn(ctx, text); err != nil {
				return err
			}
		}
		leaving = interrupted
	}
}

// isCommand reports whether a message begins like a command. Of a path the
// first word holds a second slash.
func isCommand(text string) bool {
	word, ok := strings.CutPrefix(text, "/")
	if end := strings.IndexFunc(word, unicode.IsSpace); end >= 0 {
		word = word[:end]
	}
	return ok && !strings.Contains(word, "/")
}

// turn answers one message. Only what ends the chat is an error.
func (s *session) turn(ctx context.Context, text string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	prompt, err := s.prompt(ctx, text)
	if err == nil {
		var answer string
		answer, err = s.answer(ctx, prompt)
		if err == nil || ctx.Err() != nil { // an answer that was stopped was said all the same
			if !s.raw {
				s.history = append(s.history, chat.User(text), s.engine.Answer(prompt, answer))
			}
			return nil
		}
	}
	if _, left := errors.AsType[*os.PathError](err); left { // stdout is gone
		return err
	}
	note("%s", oneLine(err))
	if len(s.history) > 0 {
		fmt.Fprintln(os.Stderr, "The message was not added to the conversation; /clear starts a new one.")
	}
	return nil
}
