package spec

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/foretoken/foretoken/internal/chat"
	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/tokenizer"
)

// A Set is a list of prompts of one kind.
type Set struct {
	Name    string
	Prompts []Prompt
}

// A Prompt is what a model is to answer or to continue.
type Prompt struct {
	Text string
	// Question says that it is what a user asks: it goes through the chat template
	// of a model that has one, and to others as "Question: …\nAnswer:". Else the
	// model continues it.
	Question bool
}

// mostUnpacked bounds a data set, in bytes.
const mostUnpacked = 256 << 20

// ReadSet reads a data set in JSON lines, compressed by gzip or not. Its form is
// that of the first line: with turns, as MT-Bench has them, the first of which is
// asked; a question, as GSM8K has; or a prompt to continue, as HumanEval has.
func ReadSet(name string, data []byte) (Set, error) {
	set := Set{Name: name}
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err == nil {
			data, err = io.ReadAll(io.LimitReader(z, mostUnpacked+1))
		}
		if err == nil && len(data) > mostUnpacked {
			err = fmt.Errorf("more than the %d bytes that are read", mostUnpacked)
		}
		if err != nil {
			return set, err
		}
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	var form string
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		var p struct {
			Turns            []string
			Question, Prompt string
		}
		err := json.Unmarshal(line, &p)
		if form == "" {
			switch {
			case len(p.Turns) > 0:
				form = "turns"
			case p.Question != "":
				form = "question"
			default:
				form = "prompt"
			}
		}
		text := map[string]string{"turns": append(p.Turns, "")[0], "question": p.Question, "prompt": p.Prompt}[form]
		switch {
		case err != nil:
			return set, fmt.Errorf("line %d: %w: expected a JSON object with turns, a question or a prompt", n, err)
		case text == "" && len(set.Prompts) == 0:
			return set, fmt.Errorf("line %d: expected a JSON object with turns, a question or a prompt", n)
		case text == "":
			return set, fmt.Errorf("line %d: no %s, which the lines before have", n, form)
		}
		set.Prompts = append(set.Prompts, Prompt{Text: text, Question: form != "prompt"})
	}
	if err := lines.Err(); err != nil {
		return set, err
	}
	if len(set.Prompts) == 0 {
		return set, errors.New("no prompts: expected lines of JSON")
	}
	return set, nil
}

// encode returns the tokens of the first prompts of a set, as many as a run can
// ask for. Prompts that leave no room for an answer are left out.
func (b *measurement) encode(ctx context.Context, e *engine.Engine, set *Set) (prompts [][]int32, err error) {
	most := b.Requests
	for _, n := range b.Concurrency {
		most = max(most, b.requestsOf(n))
	}
	room := e.MaxModelLen() - b.MaxTokens
	for _, p := range set.Prompts {
		if len(prompts) == most {
			break
		}
		tokens, err := b.tokens(ctx, e, p)
		if err != nil {
			return nil, err
		}
		if len(tokens) > 0 && len(tokens) <= room {
			prompts = append(prompts, tokens)
		}
	}
	if len(prompts) == 0 {
		return nil, fmt.Errorf("none leaves room for %d tokens in the model's %d", b.MaxTokens, e.MaxModelLen())
	}
	return prompts, nil
}

func (b *measurement) tokens(ctx context.Context, e *engine.Engine, p Prompt) ([]int32, error) {
	t, err := e.Tokenizer()
	if err != nil {
		return nil, err
	}
	if p.Question && e.HasTemplate() && !b.Raw {
		rendered, err := e.Prompt(ctx, chat.Conversation{AddGenerationPrompt: true, Messages: []chat.Message{chat.User(p.Text)}})
		if err != nil {
			return nil, err
		}
		return t.Encode(rendered, tokenizer.Options{}) // the template writes special tokens itself
	}
	return t.Encode(p.Plain(), tokenizer.Options{Special: true})
}

// Plain is the prompt as text to continue.
func (p *Prompt) Plain() string {
	if p.Question {
		return "Question: " + p.Text + "\nAnswer:"
	}
	return p.Text
}
