package main

import "github.com/foretoken/foretoken/internal/checkpoint"

// Token types of GGUF.
const (
	normalToken  = int32(1)
	controlToken = int32(3)
)

// vocabulary describes a byte-level BPE of n tokens, which servers need to
// answer with text: a token for each byte; strings of lower-case letters, the
// shorter first, each merged from one that is shorter by a letter; and last, one
// that ends a text. All but a few tokens being letters, an answer is hardly ever
// held back for bytes that are missing of a character.
func vocabulary(n int) []checkpoint.Pair {
	tokens := byteTokens()
	var merges []string
	shorter := make([]string, 0, n) // in the order in which letters are added to them
	for c := 'a'; c <= 'z'; c++ {
		shorter = append(shorter, string(c))
	}
	for i := 0; len(tokens) < n-1; i++ {
		for c := 'a'; c <= 'z' && len(tokens) < n-1; c++ {
			longer := shorter[i] + string(c)
			merges = append(merges, shorter[i]+" "+string(c))
			tokens, shorter = append(tokens, longer), append(shorter, longer)
		}
	}
	types := make([]int32, n)
	for i := range types {
		types[i] = normalToken
	}
	types[n-1] = controlToken
	return []checkpoint.Pair{
		{Key: "tokenizer.ggml.model", Value: "gpt2"},
		{Key: "tokenizer.ggml.pre", Value: "gpt-2"},
		{Key: "tokenizer.ggml.tokens", Value: append(tokens, "<|end|>")},
		{Key: "tokenizer.ggml.token_type", Value: types},
		{Key: "tokenizer.ggml.merges", Value: merges},
		{Key: "tokenizer.ggml.eos_token_id", Value: uint32(n - 1)},
		{Key: "tokenizer.ggml.add_bos_token", Value: false},
	}
}

// byteTokens are the 256 bytes as GPT-2 writes them: those that are printable
// in Latin-1 as themselves, the others as the characters from U+0100 on.
func byteTokens() []string {
	var tokens []string
	next := rune(0x100)
	for b := range rune(0x100) {
		if b > ' ' && b < 0x7f || b > 0xa0 && b != 0xad {
			tokens = append(tokens, string(b))
			continue
		}
		tokens = append(tokens, string(next))
		next++
	}
	return tokens
}
