package foretoken_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/foretoken/foretoken"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// model is the path of a tiny model with random weights. In a program it is
// the name of a model, a directory or a file.
func model() (path string, remove func()) {
	path, err := os.MkdirTemp("", "model")
	if err != nil {
		log.Fatal(err)
	}
	if err := testmodel.Write(path, testmodel.Family("llama")); err != nil {
		log.Fatal(err)
	}
	return path + "/model.gguf", func() { os.RemoveAll(path) }
}

func Example() {
	path, remove := model()
	defer remove()
	engine, err := foretoken.Open(path, foretoken.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()

	sampling := engine.Sampling()
	sampling.MaxTokens, sampling.IgnoreEOS = 5, true
	n := 0
	for token, err := range engine.Generate(context.Background(), foretoken.Request{Prompt: "Once upon a time", Sampling: sampling}) {
		if err != nil {
			log.Fatal(err)
		}
		n++ // a program prints token.Text
		if token.Finish == foretoken.FinishLength {
			fmt.Println(n, "tokens, finish reason", token.Finish)
		}
	}
	// Output: 5 tokens, finish reason length
}

// A model is fetched once; then Pull only returns its path.
func ExamplePull() {
	progress := func(e foretoken.PullEvent) {
		if e.Stage == "downloading" {
			fmt.Printf("\r%s: %d of %d bytes", e.File, e.Done, e.Total)
		}
	}
	path, err := foretoken.Pull(context.Background(), "hf:Qwen/Qwen3-0.6B", progress)
	if err != nil {
		log.Fatal(err)
	}
	engine, err := foretoken.Open(path, foretoken.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()
}

func ExampleEngine_Chat() {
	path, remove := model()
	defer remove()
	engine, err := foretoken.Open(path, foretoken.Options{Threads: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()

	sampling := engine.Sampling()
	sampling.Temperature, sampling.MaxTokens, sampling.IgnoreEOS = 0, 3, true
	c := foretoken.Conversation{
		Messages: []foretoken.Message{
			foretoken.System("You answer in one word."),
			foretoken.User("What is the capital of France?"),
		},
	}
	n := 0
	for _, err := range engine.Chat(context.Background(), c, sampling) {
		if err != nil {
			log.Fatal(err)
		}
		n++
	}
	fmt.Println(n, "tokens")
	// Output: 3 tokens
}

// Drafts make an answer come sooner where they are right, and change nothing of it.
func ExampleSpeculation() {
	path, remove := model()
	defer remove()
	var answers []string
	for _, method := range []string{"", "ngram"} {
		engine, err := foretoken.Open(path, foretoken.Options{Speculation: foretoken.Speculation{Method: method, Fixed: true}})
		if err != nil {
			log.Fatal(err)
		}
		sampling := engine.Sampling()
		sampling.Temperature, sampling.MaxTokens, sampling.IgnoreEOS = 0, 60, true
		answer := ""
		for token, err := range engine.Generate(context.Background(), foretoken.Request{Prompt: "one two one two one", Sampling: sampling}) {
			if err != nil {
				log.Fatal(err)
			}
			answer += token.Text
		}
		answers = append(answers, answer)
		for name, drafts := range engine.Speculation() {
			fmt.Printf("%s has drafted: %v\n", name, drafts.Drafted > 0)
		}
		engine.Close()
	}
	fmt.Println("the same answer:", answers[0] == answers[1])
	// Output:
	// ngram has drafted: true
	// the same answer: true
}

func ExampleEngine_Tokenize() {
	path, remove := model()
	defer remove()
	engine, err := foretoken.Open(path, foretoken.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()

	tokens, err := engine.Tokenize("hello world")
	if err != nil {
		log.Fatal(err)
	}
	text, err := engine.Detokenize(tokens)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(tokens), "tokens:", text)
	// Output: 2 tokens: hello world
}

func ExampleEngine_Embed() {
	path, remove := model()
	defer remove()
	engine, err := foretoken.Open(path, foretoken.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()

	vector, err := engine.Embed(context.Background(), "hello world", foretoken.MeanPooling)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(vector), "dimensions")
	// Output: 64 dimensions
}
