package foretoken

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"testing"
)

// The types that come from other packages have their fields in their doc
// comments, where readers look for them: all of them.
func TestFieldsAreDocumented(t *testing.T) {
	types := map[string]reflect.Type{
		"Options": reflect.TypeFor[Options](), "Sampling": reflect.TypeFor[Sampling](), "Token": reflect.TypeFor[Token](),
		"TokenLogProb": reflect.TypeFor[TokenLogProb](), "Conversation": reflect.TypeFor[Conversation](),
		"Message": reflect.TypeFor[Message](), "ToolCall": reflect.TypeFor[ToolCall](), "PullEvent": reflect.TypeFor[PullEvent](),
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
