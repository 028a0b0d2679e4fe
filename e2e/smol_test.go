package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
)

// TestSmolLM2 asks a server of a published model what its command line answers.
func TestSmolLM2(t *testing.T) {
	s := serve(t, smol, "smollm2")
	m := truth{smol}
	w := m.want(t)
	for _, tc := range []struct {
		name string
		run  func(*testing.T, *server, *want)
	}{
		{"models", testModels},
		{"tokenize", testTokenize},
		{"completion", testCompletion},
		{"completion/batch", testBatch},
		{"completion/stream", testCompletionStream},
		{"completion/logprobs", testCompletionLogProbs},
		{"completion/choices", testChoices},
		{"completion/stop", testStop},
		{"completion/sampling", testSampling},
		{"completion/long", testLongPrompt},
		{"completion/characters", testCharacters},
		{"completion/prompt", testPromptLogProbs},
		{"chat", testChat},
		{"chat/stream", testChatStream},
		{"chat/logprobs", testChatLogProbs},
		{"chat/messages", testMessages},
		{"chat/continue", testContinue},
		{"responses", testResponses},
		{"responses/stream", testResponsesStream},
		{"errors", testErrors},
		{"cancel", testCancel},
		{"concurrent", testConcurrent},
		{"node", testNode},
		{"python", testPython},
		{"lm-eval", testLMEval},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.run(t, s, w) })
	}
}

// want is what the model says, as far as the command line tells. It is told to
// the clients in other languages as JSON.
type want struct {
	Prompt    string    `json:"prompt"` // a text
	PromptIDs []int64   `json:"prompt_ids"`
	Text      string    `json:"text"` // its greedy continuation, without the white space around it
	IDs       []int64   `json:"ids"`
	LogProbs  []float64 `json:"logprobs"` // of the tokens of prompt and continuation, but for the first
	Greedy    []bool    `json:"greedy"`   // whether that token is the most likely one

	Rolling float64 `json:"rolling"` // log-probability of the prompt behind the token that begins texts

	Question    string  `json:"question"` // of a user
	QuestionIDs []int64 `json:"question_ids"`
	Answer      string  `json:"answer"`     // greedy, to its end
	AnswerIDs   []int64 `json:"answer_ids"` // with the token that ends the turn, which is no text

	Instructed     string `json:"instructed"` // the answer after systemMessage
	Followup       string `json:"followup"`   // a question after the answer
	FollowupAnswer string `json:"followup_answer"`

	scores       [][]float32 // of what follows each token of prompt and continuation
	answerScores [][]float32 // of the tokens of the answer
}

const systemMessage = "You are a helpful chemistry teacher who explains everything in detail."

func (m truth) want(t *testing.T) *want {
	t.Helper()
	w := &want{
		Prompt:   "The Pacific Ocean is the largest ocean on Earth. It covers",
		Question: "What is the chemical symbol for water?", Followup: "And for table salt?",
	}
	w.PromptIDs = m.tokenize(t, w.Prompt)
	w.IDs = m.greedy(t, w.PromptIDs, 16)
	w.Text = m.text(t, w.Prompt, 16)
	w.scores = m.scores(t, slices.Concat(w.PromptIDs, w.IDs))
	for i, id := range slices.Concat(w.PromptIDs[1:], w.IDs) {
		w.LogProbs = append(w.LogProbs, float64(w.scores[i][id]))
		w.Greedy = append(w.Greedy, best(w.scores[i]) == id)
	}

	begun := slices.Concat(m.tokenize(t, "<|im_start|>"), w.PromptIDs)
	rolling := m.scores(t, begun)
	for i, id := range w.PromptIDs {
		w.Rolling += float64(rolling[i][id])
	}

	w.QuestionIDs = m.tokenize(t, m.render(t, message{"user", w.Question}))
	w.Answer = m.answer(t, w.Question)
	w.AnswerIDs = m.answerIDs(t, w.QuestionIDs)
	scores := m.scores(t, slices.Concat(w.QuestionIDs, w.AnswerIDs))
	w.answerScores = scores[len(w.QuestionIDs)-1:]
	w.Instructed = m.answer(t, w.Question, "--system", systemMessage)
	w.FollowupAnswer = m.next(t, message{"user", w.Question}, message{"assistant", w.Answer}, message{"user", w.Followup})
	// The answers differ, so that a test that gets another one fails.
	answers := []string{w.Answer, w.Instructed, w.FollowupAnswer}
	slices.Sort(answers)
	if !strings.Contains(w.Answer, " water is H2O") || len(slices.Compact(answers)) != 3 {
		t.Fatalf("the model answers %q", answers)
	}
	return w
}

func testModels(t *testing.T, s *server, _ *want) {
	c := s.client()
	page, err := c.Models.List(within(t))
	succeeded(t, err)
	if len(page.Data) != 1 || page.Data[0].ID != s.model || page.Data[0].Object != "model" || page.Data[0].OwnedBy == "" || page.Data[0].Created == 0 {
		t.Errorf("%s", page.RawJSON())
	}
	m, err := c.Models.Get(within(t), s.model)
	succeeded(t, err)
	if m.ID != s.model || m.Created != page.Data[0].Created {
		t.Errorf("%s", m.RawJSON())
	}
	_, err = c.Models.Get(within(t), "gpt-4")
	refused(t, err, 404, "model", "model_not_found")
}

func testTokenize(t *testing.T, s *server, w *want) {
	var got struct {
		Count  int     `json:"count"`
		Tokens []int64 `json:"tokens"`
	}
	s.post(t, "tokenize", map[string]any{"prompt": w.Prompt, "add_special_tokens": false}, &got)
	if !slices.Equal(got.Tokens, w.PromptIDs) || got.Count != len(w.PromptIDs) {
		t.Errorf("%+v, want %v", got, w.PromptIDs)
	}
	s.post(t, "tokenize", map[string]any{"messages": []message{{"user", w.Question}}}, &got)
	if !slices.Equal(got.Tokens, w.QuestionIDs) || got.Count != len(w.QuestionIDs) {
		t.Errorf("%+v, want %v", got, w.QuestionIDs)
	}
	if text := s.detokenize(t, w.PromptIDs); text != w.Prompt {
		t.Errorf("%q, want %q", text, w.Prompt)
	}
}

// extra reads a field that OpenAI's API does not have.
func extra[T any](t *testing.T, raw string) (v T) {
	t.Helper()
	if raw == "" {
		t.Fatal("the field is missing")
	}
	parse(t, []byte(raw), &v)
	return v
}

// prompt is a text as openai-go takes it.
func prompt(text string) openai.CompletionNewParamsPromptUnion {
	return openai.CompletionNewParamsPromptUnion{OfString: openai.String(text)}
}
