package deepseek

import (
	"fmt"
	"strings"

	"github.com/foretoken/foretoken/internal/chat"
)

// calls prints calls as the model writes them.
func (e *Encoding) calls(calls []chat.ToolCall) (string, error) {
	var b strings.Builder
	b.WriteString("<" + dsml + e.block + ">\n")
	for i, call := range calls {
		arguments, err := e.arguments(call.Arguments)
		if err != nil {
			return "", fmt.Errorf("tool call %d (%s): arguments: %w", i+1, call.Name, err)
		}
		b.WriteString("<" + dsml + `invoke name="` + call.Name + "\">\n")
		if err := parameters(&b, arguments); err != nil {
			return "", fmt.Errorf("tool call %d (%s): arguments: %w", i+1, call.Name, err)
		}
		b.WriteString("\n</" + dsml + "invoke>\n")
	}
	b.WriteString("</" + dsml + e.block + ">")
	return b.String(), nil
}

// arguments reads the JSON object of a call. V4 shows the model what is none as it is.
func (e *Encoding) arguments(text string) (*chat.Object, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	v, err := chat.DecodeJSON([]byte(text))
	o, ok := v.(*chat.Object)
	switch {
	case ok:
		return o, nil
	case e.v4:
		return chat.NewObject("arguments", text), nil
	case err == nil:
		err = fmt.Errorf("expected a JSON object")
	}
	return nil, err
}

// parameters prints strings raw, so that the model need not escape code, and all else as JSON.
func parameters(b *strings.Builder, arguments *chat.Object) error {
	for i := range arguments.Len() {
		key, v := arguments.At(i)
		text, isString := v.(string)
		if !isString {
			var err error
			if text, err = chat.EncodeJSON(v); err != nil {
				return err
			}
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(b, "<"+dsml+`parameter name="%v" string="%t">`, key, isString)
		b.WriteString(text + "</" + dsml + "parameter>")
	}
	return nil
}
