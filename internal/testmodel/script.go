package testmodel

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// marks are tokens of the vocabulary that pieces of a script may be.
var marks = map[string]int{"<think>": Think, "</think>": ThinkEnd, "<tool_call>": Call, "</tool_call>": CallEnd}

// Scripted writes a model that answers any conversation greedily with the
// pieces, one token each, none of them twice, and ends its turn. It returns the
// model's directory.
//
// Each token decides the next one alone: layers add nothing, and the head's row
// of a token is the embedding of the one before it.
func Scripted(t testing.TB, pieces ...string) string {
	t.Helper()
	m := New(Family("llama"))
	ids, texts := script(t, pieces)
	m.follow(ids)
	dir := t.TempDir()
	if err := m.WriteSafetensors(dir); err != nil {
		t.Fatal(err)
	}
	if err := addTokens(filepath.Join(dir, "tokenizer.json"), texts); err != nil {
		t.Fatal(err)
	}
	return dir
}

// script returns the tokens of a conversation from the last one of its prompt
// on, and the texts of those that the vocabulary does not have.
func script(t testing.TB, pieces []string) (ids []int, texts []string) {
	t.Helper()
	ids = []int{'\n'} // bytes are their own ids
	for _, piece := range pieces {
		id, ok := marks[piece]
		switch {
		case ok:
		case len(piece) == 1:
			id = int(piece[0])
		default:
			id = Tokens + len(texts)
			texts = append(texts, piece)
		}
		ids = append(ids, id)
	}
	if most := Vocab - Tokens; len(texts) > most {
		t.Fatalf("%d pieces, the vocabulary has room for %d", len(texts), most)
	}
	return append(ids, End), texts
}

// follow makes each token of the script the most likely one after that before it.
func (m *Model) follow(script []int) {
	for i := range m.Layers {
		for _, matrix := range []string{"self_attn.o_proj", "mlp.down_proj"} {
			clear(m.Tensor(fmt.Sprintf("model.layers.%d.%s.weight", i, matrix)).Values)
		}
	}
	norm := m.Tensor("model.norm.weight").Values
	for i := range norm {
		norm[i] = 1
	}
	embedding, head := m.Tensor("model.embed_tokens.weight").Values, m.Tensor("lm_head.weight").Values
	random := rand.New(rand.NewPCG(1, 2))
	for i := range embedding {
		embedding[i] = float32(2*random.IntN(2) - 1)
	}
	clear(head)
	for i, next := range script[1:] {
		copy(head[next*m.Hidden:(next+1)*m.Hidden], embedding[script[i]*m.Hidden:(script[i]+1)*m.Hidden])
	}
}

// addTokens gives a tokenizer tokens of any text.
func addTokens(path string, texts []string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var file object
	if err := json.Unmarshal(data, &file); err != nil {
		return err
	}
	added := file["added_tokens"].([]any)
	for i, text := range texts {
		added = append(added, object{
			"id": Tokens + i, "content": text, "special": false,
			"single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
		})
	}
	file["added_tokens"] = added
	if data, err = json.Marshal(file); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}
