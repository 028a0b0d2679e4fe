package foretoken

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/testmodel"
)

// The types that come from other packages have their fields in their doc
// comments, where readers look for them: all of them.
func TestFieldsAreDocumented(t *testing.T) {
	types := map[string]reflect.Type{
		"Options": reflect.TypeFor[Options](), "Sampling": reflect.TypeFor[Sampling](), "Token": reflect.TypeFor[Token](),
		"TokenLogProb": reflect.TypeFor[TokenLogProb](), "Conversation": reflect.TypeFor[Conversation](),
		"Message": reflect.TypeFor[Message](), "ToolCall": reflect.TypeFor[ToolCall](), "PullEvent": reflect.TypeFor[PullEvent](),
		"Speculation": reflect.TypeFor[Speculation](), "RequestSpeculation": reflect.TypeFor[RequestSpeculation](), "SpeculationStats": reflect.TypeFor[SpeculationStats](),
	}
	for _, file := range []string{"foretoken.go", "find.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.TYPE {
				continue
			}
			name := decl.Specs[0].(*ast.TypeSpec).Name.Name
			typ, ok := types[name]
			if !ok {
				continue
			}
			delete(types, name)
			for field := range typ.Fields() {
				if !regexp.MustCompile(`\b` + field.Name + `\b`).MatchString(decl.Doc.Text()) {
					t.Errorf("%s: the comment lacks the field %s", name, field.Name)
				}
			}
		}
	}
	if len(types) > 0 {
		t.Errorf("not found: %v", types)
	}
}

// A draft model is found as the model is; the model itself has no name.
func TestDraftModelIsFound(t *testing.T) {
	t.Setenv("FORETOKEN_HOME", t.TempDir())
	path := testmodel.GGUF(t, testmodel.Family("llama"))
	for draft, want := range map[string]string{
		"nothing:1b":  "draft model: nothing:1b: no such file or directory, nor the name of a model that was pulled",
		"self:q99":    "draft model self:q99: ",
		"self:layers": "draft model self:layers: ",
	} {
		_, err := Open(path, Options{Speculation: Speculation{Method: "draft_model", Model: draft}})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", draft, err, want)
		}
	}
}
