package server

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"

	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/sample"
)

// embeddingRequest is the body of POST /v1/embeddings.
type embeddingRequest struct {
	openAIFields
	Input          promptField `json:"input"`
	EncodingFormat string      `json:"encoding_format"`
	Dimensions     *int        `json:"dimensions"`
	AddSpecial     *bool       `json:"add_special_tokens"`
	Priority       int         `json:"priority"`
}

func (q *embeddingRequest) check() error {
	if f := q.EncodingFormat; f != "" && f != "float" && f != "base64" {
		return badRequest("encoding_format", "encoding_format is %s, expected float or base64", quote(f))
	}
	return q.openAIFields.check()
}

// embeddingList is the answer: one vector of length 1 for each input.
type embeddingList struct {
	Object string         `json:"object"` // list
	Data   []embedding    `json:"data"`
	Model  string         `json:"model"`
	Usage  embeddingUsage `json:"usage"`
}

type embedding struct {
	Object string `json:"object"` // embedding
	Index  int    `json:"index"`
	Vector any    `json:"embedding"` // numbers, or base64 of float32, little-endian
}

type embeddingUsage struct {
	PromptTokens int `json:"prompt_tokens"`
	TotalTokens  int `json:"total_tokens"`
}

// embeddings serves POST /v1/embeddings.
func (s *Server) embeddings(w http.ResponseWriter, r *http.Request) error {
	q := new(embeddingRequest)
	if err := readRequest(r, q); err != nil {
		return err
	}
	if err := s.checkModel(q.Model); err != nil {
		return err
	}
	if n, hidden := q.Dimensions, s.engine.Config().Hidden; n != nil && *n != hidden {
		return badRequest("dimensions", "dimensions is %d: the model's states have %d, and to cut them it would have to be trained for that", *n, hidden)
	}
	prompts, err := s.encode(&q.Input, "input", q.AddSpecial == nil || *q.AddSpecial)
	if err != nil {
		return err
	}
	all, err := s.submit(r, &samplingFields{Priority: q.Priority}, engine.Request{
		Params: sample.Default(), PromptOnly: true, Pooling: s.pooling(),
	}, "input", prompts)
	if err != nil {
		return err
	}
	defer all.Close()
	for _, err := range all.batches(r.Context(), 0) {
		if err != nil {
			return err
		}
	}
	list := embeddingList{Object: "list", Model: s.Models[0]}
	for i, g := range all {
		e := embedding{Object: "embedding", Index: i, Vector: g.Pooled()}
		if q.EncodingFormat == "base64" {
			e.Vector = base64Floats(g.Pooled())
		}
		list.Data = append(list.Data, e)
	}
	list.Usage.PromptTokens = all.usage().PromptTokens
	list.Usage.TotalTokens = list.Usage.PromptTokens
	return respond(w, &list)
}

func base64Floats(v []float32) string {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(b)
}

// pooling is what the model was trained for, as sentence-transformers and
// llama.cpp write it down. Models that generate text have it all in the state of
// the last token.
func (s *Server) pooling() engine.Pooling {
	if m := s.engine.Checkpoint().Metadata(); m != nil {
		if kind, ok := m.Int(m.Arch() + ".pooling_type"); ok && kind == 1 {
			return engine.MeanPooling
		}
		return engine.LastPooling
	}
	data, err := s.engine.Checkpoint().File("1_Pooling/config.json")
	if err != nil {
		return engine.LastPooling
	}
	var config struct {
		Mean bool `json:"pooling_mode_mean_tokens"`
	}
	if json.Unmarshal(data, &config) == nil && config.Mean {
		return engine.MeanPooling
	}
	return engine.LastPooling
}
