package spec

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// The sets that are made of texts: of those shipped, or of any others. Both are
// written as documents to continue, which models without instruction training do
// as well.
const (
	CodeEdit  = "code-edit"
	Summarise = "summarise"
)

// Made lists their names.
func Made() []string { return []string{CodeEdit, Summarise} }

// Small programs and texts, written for this purpose.
//
//go:embed sets/code.txt
var shippedCode string

//go:embed sets/articles.txt
var shippedArticles string

// Shipped returns a set that is made of the texts that come with the program.
func Shipped(name string) (Set, error) {
	texts := shippedCode
	if name == Summarise {
		texts = shippedArticles
	}
	set := Set{Name: name}
	for _, part := range strings.Split(texts, "\n-- ")[1:] {
		title, text, _ := strings.Cut(part, " --\n")
		made, err := Make(name, title, text)
		if err != nil {
			return set, err
		}
		set.Prompts = append(set.Prompts, made.Prompts...)
	}
	return set, nil
}

// Make makes the prompts of a set from a text: a source file, or one to
// summarise. Long ones are cut into parts.
func Make(name, title, text string) (Set, error) {
	set := Set{Name: name}
	if !utf8.ValidString(text) {
		return set, errors.New("a text in UTF-8 is expected")
	}
	switch name {
	case CodeEdit:
		for part := range slices.Chunk(slices.Collect(strings.Lines(text)), editedLines) {
			if p, ok := edited(title, part); ok {
				set.Prompts = append(set.Prompts, p)
			}
		}
	case Summarise:
		paragraphs := strings.Split(strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")), "\n\n")
		for part := range slices.Chunk(paragraphs, summarised) {
			if p, ok := summary(part); ok {
				set.Prompts = append(set.Prompts, p)
			}
		}
	default:
		return set, fmt.Errorf("set %q: expected %s", name, strings.Join(Made(), " or "))
	}
	if len(set.Prompts) == 0 {
		return set, fmt.Errorf("%s: too short for a prompt: expected some lines with a word that comes twice, or paragraphs", title)
	}
	return set, nil
}

const (
	editedLines = 60 // of a source file in a prompt
	summarised  = 6  // paragraphs of a text in a prompt
)

var (
	identifier = regexp.MustCompile(`[A-Za-z_][A-Za-z_0-9]{3,}`)
	// keywords of common languages that are no names.
	keywords = strings.Fields(`break case chan class const continue default defer elif else enum except false finally float64 float
		from func function import int32 int64 interface lambda map None null package pass raise range return self static string struct
		switch this throw true True False type uint8 uint32 var void while with yield let def new public private`)
)

// edited asks for lines of a file with one name changed, and begins the answer: the
// name that comes most often, and of these the first, gets a 2. The model goes on
// with lines that are the file's but for that name.
func edited(title string, lines []string) (Prompt, bool) {
	text := strings.Join(lines, "")
	counts := map[string]int{}
	name := ""
	words := identifier.FindAllString(text, -1)
	for _, w := range words {
		if !slices.Contains(keywords, w) {
			counts[w]++
		}
	}
	for _, w := range words {
		if counts[w] > counts[name] {
			name = w
		}
	}
	if counts[name] < 2 || len(lines) < 4 {
		return Prompt{}, false
	}
	whole := regexp.MustCompile(`\b` + name + `\b`)
	var begin strings.Builder
	for _, line := range lines[:len(lines)/4] {
		begin.WriteString(whole.ReplaceAllString(line, name+"2"))
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return Prompt{Text: fmt.Sprintf("The file %s:\n\n```\n%s```\n\nThe same file, with %s renamed to %s2:\n\n```\n%s", title, text, name, name, begin.String())}, true
}

// summary asks for the sentences that a text consists of in short, and begins
// with the first: the model goes on with those that begin paragraphs.
func summary(paragraphs []string) (Prompt, bool) {
	first := firstSentence(paragraphs[0])
	if len(paragraphs) < 2 || first == "" {
		return Prompt{}, false
	}
	return Prompt{Text: fmt.Sprintf("%s\n\nThe text above in short, in its own words, one sentence of each paragraph:\n\n- %s\n-", strings.Join(paragraphs, "\n\n"), first)}, true
}

// firstSentence is that of a paragraph, its lines joined.
func firstSentence(paragraph string) string {
	text := strings.Join(strings.Fields(paragraph), " ")
	if end := strings.Index(text, ". "); end >= 0 {
		return text[:end+1]
	}
	return text
}
