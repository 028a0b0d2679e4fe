package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"
)

// errInterrupted is Ctrl-C at the prompt.
var errInterrupted = errors.New("interrupted")

// A console reads messages from a terminal, with line editing and history.
// Between messages the terminal is as the user had it, so that Ctrl-C is a
// signal again.
type console struct {
	keys     *keys
	screen   io.Writer // the editing, not the answers
	editor   *term.Terminal
	original *term.State
	signals  chan os.Signal
}

// keys passes on what is typed and notes Ctrl-C, which the editor does not
// tell from the end of input.
type keys struct {
	*os.File
	interrupted bool
}

func (k *keys) Read(p []byte) (int, error) {
	n, err := k.File.Read(p)
	const ctrlC = 3
	k.interrupted = bytes.IndexByte(p[:n], ctrlC) >= 0
	return n, err
}

func newConsole(in *os.File, screen io.Writer) (*console, error) {
	original, err := term.GetState(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	c := &console{keys: &keys{File: in}, screen: screen, original: original, signals: make(chan os.Signal, 1)}
	c.newEditor()
	// Signals from elsewhere must not leave the terminal raw.
	signal.Notify(c.signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for s := range c.signals {
			if s == syscall.SIGTERM {
				c.restore()
				os.Exit(exitInterrupted)
			}
		}
	}()
	return c, nil
}

func (c *console) close() {
	c.restore()
	signal.Stop(c.signals)
	close(c.signals)
}

func (c *console) restore() { _ = term.Restore(int(c.keys.Fd()), c.original) }

// newEditor starts with an empty line and the history there is.
func (c *console) newEditor() {
	var history term.History
	if c.editor != nil {
		history = c.editor.History
	}
	c.editor = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{c.keys, c.screen}, "")
	if history != nil {
		c.editor.History = history
	}
}

func (c *console) print(text string) { _, _ = io.WriteString(c.screen, text) }

// line reads one line. pasted says that it was not typed.
func (c *console) line(prompt string) (text string, pasted bool, err error) {
	if _, err := term.MakeRaw(int(c.keys.Fd())); err != nil {
		return "", false, err
	}
	defer c.restore()
	if width, height, err := term.GetSize(int(c.keys.Fd())); err == nil && width > 0 {
		_ = c.editor.SetSize(width, height)
	}
	c.editor.SetBracketedPasteMode(true)
	defer c.editor.SetBracketedPasteMode(false)
	c.editor.SetPrompt(prompt)
	text, err = c.editor.ReadLine()
	if errors.Is(err, term.ErrPasteIndicator) {
		return text, true, nil
	}
	if errors.Is(err, io.EOF) {
		c.print("\r\n")
		if c.keys.interrupted {
			err = errInterrupted
			c.newEditor()
		}
	}
	return text, false, err
}

// message reads what the user says: a line, with the next one if it ends in a
// backslash or was pasted, or all that stands between two """. The error is
// io.EOF at the end of input.
func (c *console) message() (string, error) {
	const quote = `"""`
	var text strings.Builder
	for quoted, prompt := false, ">>> "; ; prompt = "... " {
		line, pasted, err := c.line(prompt)
		if err != nil {
			return "", err
		}
		opened := false
		if !quoted && text.Len() == 0 {
			if line, opened = strings.CutPrefix(line, quote); opened {
				quoted = true
			}
		}
		if quoted {
			if last, closed := strings.CutSuffix(strings.TrimRight(line, " "), quote); closed {
				text.WriteString(last)
				return strings.TrimSuffix(text.String(), "\n"), nil
			}
			if !opened || line != "" {
				text.WriteString(line + "\n")
			}
			continue
		}
		next, goesOn := strings.CutSuffix(line, `\`)
		if !goesOn && !pasted {
			text.WriteString(line)
			return strings.TrimSpace(text.String()), nil
		}
		text.WriteString(next + "\n")
	}
}
