package server

import (
	"net/http"
	"testing"

	"github.com/foretoken/foretoken/internal/testmodel"
	"github.com/google/go-cmp/cmp"
)

// What lm-evaluation-harness asks for before it uses /tokenize: an object that
// has eos_token, with null for tokens that the model does not have.
func TestTokenizerInfo(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	_, text := a.send(t, http.MethodGet, "/tokenizer_info", "")
	var got object
	decodeAnswer(t, text, &got)
	want := object{
		"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": nil, "unk_token": nil, "add_bos_token": true,
		"model_max_length": 512.0, "chat_template": testmodel.ChatTemplate,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
