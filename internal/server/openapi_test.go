package server

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/chat/value"
)

// described are the types of bodies and the schemas that describe them. Types
// within them follow from the references.
var described = map[string]any{
	"CompletionRequest": completionRequest{}, "Completion": completion{},
	"ChatRequest": chatRequest{}, "ChatCompletion": chatCompletion{}, "ChatChunk": chatChunk{},
	"ResponseRequest": responseRequest{}, "Response": responseBody{}, "ResponseEvent": responseEvent{},
	"EmbeddingRequest": embeddingRequest{}, "EmbeddingList": embeddingList{},
	"TokenizeRequest": tokenizeRequest{}, "Tokenized": tokenized{}, "DetokenizeRequest": detokenizeRequest{}, "Detokenized": detokenized{}, "TokenizerInfo": tokenizerInfo{},
	"ModelList": modelList{}, "DebugTable": debugTable{}, "Version": versionBody{}, "ErrorBody": struct {
		Error errorFields `json:"error"`
	}{},
}

// schema is what this test reads of one.
type schema struct {
	Ref        string             `yaml:"$ref"`
	AllOf      []*schema          `yaml:"allOf"`
	Properties map[string]*schema `yaml:"properties"`
	Items      *schema            `yaml:"items"`
	Values     *schema            `yaml:"additionalProperties"`
}

type document struct {
	Paths map[string]map[string]struct {
		Summary   string
		Security  []map[string][]string
		Responses map[string]yaml.Node
	}
	Components struct{ Schemas map[string]*schema }
}

func readDocument(t *testing.T) *document {
	t.Helper()
	var d document
	if err := yaml.Unmarshal(openAPIDocument, &d); err != nil {
		t.Fatal(err)
	}
	return &d
}

// fields are the properties of a schema, those of its parts with them.
func (d *document) fields(s *schema) map[string]*schema {
	all := maps.Clone(s.Properties)
	if all == nil {
		all = map[string]*schema{}
	}
	for _, part := range s.AllOf {
		maps.Copy(all, d.fields(d.resolve(part)))
	}
	return all
}

func (d *document) resolve(s *schema) *schema {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		return d.Components.Schemas[name]
	}
	return s
}

// A typePair is a schema and a type that it describes: a call in a request and
// one in an answer have one schema.
type typePair struct {
	schema string
	of     reflect.Type
}

// compare says where a type's fields are not those of the schema, for all types
// that are reached from it and have a schema by name.
func (d *document) compare(t *testing.T, name string, typ reflect.Type, seen map[typePair]bool) {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
		typ = typ.Elem()
	}
	this := typePair{name, typ}
	if seen[this] || typ.Kind() != reflect.Struct {
		return
	}
	if _, own := reflect.TypeAssert[reader](reflect.New(typ)); own {
		return // of several forms
	}
	seen[this] = true
	s := d.Components.Schemas[name]
	if s == nil {
		t.Errorf("there is no schema %s", name)
		return
	}
	properties, fields := d.fields(s), fieldsOf(typ)
	want, got := slices.Sorted(maps.Keys(fields)), slices.Sorted(maps.Keys(properties))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-%v, +schema): %s", name, typ, diff)
	}
	for field, index := range fields {
		p := properties[field]
		if p == nil {
			continue
		}
		for p.Items != nil || p.Values != nil {
			if p.Items != nil {
				p = p.Items
			} else {
				p = p.Values
			}
		}
		of := typ.FieldByIndex(index).Type
		if ref, ok := strings.CutPrefix(p.Ref, "#/components/schemas/"); ok {
			if of.Kind() == reflect.Interface {
				continue // of several forms
			}
			d.compare(t, ref, of, seen)
			continue
		}
		for of.Kind() == reflect.Slice || of.Kind() == reflect.Pointer && of != reflect.TypeFor[*value.Object]() {
			of = of.Elem()
		}
		if _, own := reflect.TypeAssert[reader](reflect.New(of)); of.Kind() == reflect.Struct && of != reflect.TypeFor[value.Object]() && !own && of != reflect.TypeFor[errorFields]() {
			t.Errorf("%s.%s is %v, and has no schema by name", name, field, of)
		}
	}
}

// Every route is in openapi.yaml, with the key that it needs, and nothing else is.
func TestDocumentedRoutes(t *testing.T) {
	d := readDocument(t)
	var want, got []string
	for _, r := range routes {
		line := r.method + " " + strings.ReplaceAll(r.pattern, "...}", "}")
		if !r.key {
			line += " without a key"
		}
		want = append(want, line)
	}
	for path, methods := range d.Paths {
		for method, route := range methods {
			line := strings.ToUpper(method) + " " + path
			if route.Security != nil {
				line += " without a key"
			}
			got = append(got, line)
			if route.Summary == "" || len(route.Responses) == 0 {
				t.Errorf("%s says nothing", line)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("routes (-table, +openapi.yaml): %s", diff)
	}
}

func TestDocumentIsServed(t *testing.T) {
	w := httptest.NewRecorder()
	New(Options{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/openapi.yaml", nil))
	if w.Code != http.StatusOK || w.Body.String() != string(openAPIDocument) {
		t.Errorf("status %d, %d bytes", w.Code, w.Body.Len())
	}
}

// Every field is in openapi.yaml, and nothing else is.
func TestDocumentedFields(t *testing.T) {
	d := readDocument(t)
	seen := map[typePair]bool{}
	d.compare(t, "Usage", reflect.TypeFor[usage](), seen) // which chunks have in three forms
	d.compare(t, "SpeculationSettings", reflect.TypeFor[speculationSettings](), seen)
	for name, v := range described {
		d.compare(t, name, reflect.TypeOf(v), seen)
	}
	// What requests have in common, and what the program reads by hand.
	known := []string{"Labels", "Sampling", "Generation", "Conversation", "Prompt", "Tool", "ResponseTool", "InputItem", "Embedding"}
	for pair := range seen {
		known = append(known, pair.schema)
	}
	for name := range d.Components.Schemas {
		if !slices.Contains(known, name) {
			t.Errorf("schema %s describes nothing", name)
		}
	}
	var unresolved func(s *schema)
	unresolved = func(s *schema) {
		if s == nil {
			return
		}
		if s.Ref != "" && d.resolve(s) == s || s.Ref != "" && d.resolve(s) == nil {
			t.Errorf("%s is not there", s.Ref)
		}
		for _, p := range s.Properties {
			unresolved(p)
		}
		for _, p := range s.AllOf {
			unresolved(p)
		}
		unresolved(s.Items)
		unresolved(s.Values)
	}
	for _, s := range d.Components.Schemas {
		unresolved(s)
	}
}
