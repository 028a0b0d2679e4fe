package server

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/foretoken/foretoken/internal/testmodel"
)

// marks are tokens of tiny models that pieces of a script may be.
var marks = map[string]int{"<think>": testmodel.Think, "</think>": testmodel.ThinkEnd, "<tool_call>": testmodel.Call, "</tool_call>": testmodel.CallEnd}

// scripted writes a model that answers any conversation with the pieces, one
// token each, none of them twice, and ends its turn. Every token it sees decides the next alone:
// layers add nothing, and the head's row of each token is the embedding of the
// one before it.
func scripted(t *testing.T, pieces ...string) string {
	t.Helper()
	m := testmodel.New(testmodel.Family("llama"))
	for i := range m.Tensors {
		switch m.Tensors[i].Name {
		case "model.layers.0.self_attn.o_proj.weight", "model.layers.1.self_attn.o_proj.weight",
			"model.layers.0.mlp.down_proj.weight", "model.layers.1.mlp.down_proj.weight":
			clear(m.Tensors[i].Values)
		}
	}
	for i := range m.Tensor("model.norm.weight").Values {
		m.Tensor("model.norm.weight").Values[i] = 1
	}
	embedding, head := m.Tensor("model.embed_tokens.weight").Values, m.Tensor("lm_head.weight").Values
	random := rand.New(rand.NewPCG(1, 2))
	for i := range embedding {
		embedding[i] = float32(2*random.IntN(2) - 1)
	}
	clear(head)
	script := []int{'\n'} // the prompt's last token; bytes are their own ids
	var others []string
	for _, piece := range pieces {
		id, ok := marks[piece]
		switch {
		case ok:
		case len(piece) == 1:
			id = int(piece[0])
		default:
			id = testmodel.Tokens + len(others)
			others = append(others, piece)
		}
		script = append(script, id)
	}
	if most := testmodel.Vocab - testmodel.Tokens; len(others) > most {
		t.Fatalf("%d pieces, the vocabulary has room for %d", len(others), most)
	}
	script = append(script, testmodel.End)
	for i, next := range script[1:] {
		copy(head[next*m.Hidden:(next+1)*m.Hidden], embedding[script[i]*m.Hidden:(script[i]+1)*m.Hidden])
	}
	dir := t.TempDir()
	if err := m.WriteSafetensors(dir); err != nil {
		t.Fatal(err)
	}
	addTokens(t, filepath.Join(dir, "tokenizer.json"), others)
	return dir
}

// addTokens gives a tokenizer tokens of any text.
func addTokens(t *testing.T, path string, texts []string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file object
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	added := file["added_tokens"].([]any)
	for i, text := range texts {
		added = append(added, object{
			"id": testmodel.Tokens + i, "content": text, "special": false,
			"single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
		})
	}
	file["added_tokens"] = added
	if data, err = json.Marshal(file); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
