package main

import (
	"fmt"
	"io"
	"net/http"
)

// openAI is a server of one model that answers as many tokens as were asked for,
// two in a chunk, and knows a key.
func openAI() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"data":[{"id":"echo"}]}`) })
	mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			io.WriteString(w, `{"error":{"message":"no such key"}}`)
			return
		}
		stream(w, `"text":"a b"`, `"text":""`)
	})
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, _ *http.Request) {
		stream(w, `"delta":{"content":"a b"}`, `"delta":{}`)
	})
	return mux
}

// stream writes an answer of four tokens to a prompt of seven.
func stream(w http.ResponseWriter, chunk, last string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for range 2 {
		fmt.Fprintf(w, "data: {\"choices\":[{%s,\"finish_reason\":null}]}\n\n", chunk)
		w.(http.Flusher).Flush()
	}
	fmt.Fprintf(w, "data: {\"choices\":[{%s,\"finish_reason\":\"length\"}]}\n\n", last)
	io.WriteString(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":4}}\n\ndata: [DONE]\n\n")
}
