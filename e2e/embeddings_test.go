package e2e

import (
	"math"
	"slices"
	"testing"

	"github.com/openai/openai-go/v3"
)

// embed asks for the embedding of texts.
func embed(s *server, texts ...string) openai.EmbeddingNewParams {
	return openai.EmbeddingNewParams{Model: s.model, Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts}}
}

func testEmbeddings(t *testing.T, s *server) {
	const hidden = 64
	ask := func(q openai.EmbeddingNewParams) *openai.CreateEmbeddingResponse {
		t.Helper()
		got, err := s.client().Embeddings.New(within(t), q)
		succeeded(t, err)
		if got.Object != "list" || got.Model != s.model {
			t.Errorf("%s", got.RawJSON())
		}
		for i, e := range got.Data {
			var norm float64
			for _, v := range e.Embedding {
				norm += v * v
			}
			if len(e.Embedding) != hidden || math.Abs(norm-1) > 1e-5 || e.Index != int64(i) || e.Object != "embedding" {
				t.Errorf("embedding %d has %d numbers and the length %v: %s", i, len(e.Embedding), norm, e.RawJSON())
			}
		}
		return got
	}
	all := ask(embed(s, "hello", "world", "hello"))
	if len(all.Data) != 3 {
		t.Fatalf("%d embeddings, want 3", len(all.Data))
	}
	hello, world := all.Data[0].Embedding, all.Data[1].Embedding
	if !slices.Equal(all.Data[2].Embedding, hello) || slices.Equal(world, hello) {
		t.Error("texts and embeddings do not go together")
	}
	one := ask(openai.EmbeddingNewParams{Model: s.model, Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("hello")}})
	if len(one.Data) != 1 || !slices.Equal(one.Data[0].Embedding, hello) {
		t.Error("a text alone has another embedding than among others")
	}
	if one.Usage.PromptTokens != 2 || one.Usage.TotalTokens != 2 { // <bos> and hello
		t.Errorf("%s", one.RawJSON())
	}

	// The scripted model's states are those of the last token, each ±1.
	ids := ask(openai.EmbeddingNewParams{Model: s.model, Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfTokenArrays: [][]int64{{'a'}, {'b', 'c', 'a'}, {'b'}}}})
	if a, b := ids.Data[0].Embedding, ids.Data[2].Embedding; !slices.Equal(ids.Data[1].Embedding, a) || slices.Equal(a, b) {
		t.Error("the last token does not decide")
	}
	for _, v := range ids.Data[0].Embedding {
		if math.Abs(math.Abs(v)-1/math.Sqrt(hidden)) > 1e-6 {
			t.Errorf("%v, want ±1/8", v)
		}
	}

	q := embed(s, "hello", "world")
	q.EncodingFormat = openai.EmbeddingNewParamsEncodingFormatBase64
	if got := ask(q); !slices.Equal(got.Data[0].Embedding, hello) || !slices.Equal(got.Data[1].Embedding, world) {
		t.Error("base64 has other numbers than JSON")
	} else if raw := got.Data[0].JSON.Embedding.Raw(); raw[0] != '"' {
		t.Errorf("base64 is %s", raw)
	}

	q = embed(s, "hello")
	q.Dimensions = openai.Int(hidden)
	if got := ask(q); !slices.Equal(got.Data[0].Embedding, hello) {
		t.Error("the model's own dimensions give another embedding")
	}
	q.Dimensions = openai.Int(hidden / 2)
	_, err := s.client().Embeddings.New(within(t), q)
	refused(t, err, 400, "dimensions", "")
}
