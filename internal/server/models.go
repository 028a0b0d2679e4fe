package server

import "net/http"

// modelCard describes a model in /v1/models.
type modelCard struct {
	ID          string `json:"id"`
	Object      string `json:"object"` // model
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	Root        string `json:"root"` // the first name of the same model
	MaxModelLen int    `json:"max_model_len"`
}

type modelList struct {
	Object string      `json:"object"` // list
	Data   []modelCard `json:"data"`
}

// models serves GET /v1/models: the model under each of its names.
func (s *Server) models(w http.ResponseWriter, _ *http.Request) error {
	list := modelList{Object: "list"}
	for _, name := range s.Models {
		list.Data = append(list.Data, s.card(name))
	}
	return respond(w, &list)
}

// model serves GET /v1/models/{id}. Names may have slashes in them.
func (s *Server) model(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("id")
	if name == "" { // which a request may have, for whatever model there is
		return notFound(r)
	}
	if err := s.checkModel(name); err != nil {
		return err
	}
	card := s.card(name)
	return respond(w, &card)
}

func (s *Server) card(name string) modelCard {
	return modelCard{ID: name, Object: "model", Created: s.started.Unix(), OwnedBy: "foretoken", Root: s.Models[0], MaxModelLen: s.engine.MaxModelLen()}
}
