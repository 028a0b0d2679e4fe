package chat

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Names under which a checkpoint keeps its templates.
const (
	DefaultTemplate = "default"
	ToolTemplate    = "tool_use"
)

// FromTokenizerConfig returns the templates of a tokenizer_config.json by name: a single one is the
// default. A file without any gives an empty map.
func FromTokenizerConfig(json []byte) (map[string]string, error) {
	v, err := DecodeJSON(json)
	if err != nil {
		return nil, fmt.Errorf("tokenizer config: %w", err)
	}
	config, ok := v.(*Object)
	if !ok {
		return nil, fmt.Errorf("tokenizer config: expected an object")
	}
	templates := map[string]string{}
	field, _ := config.Get("chat_template")
	switch field := field.(type) {
	case nil:
	case string:
		templates[DefaultTemplate] = field
	case *List:
		for i, item := range field.Items {
			o, _ := item.(*Object)
			name, _ := o.Get("name")
			source, _ := o.Get("template")
			n, ok1 := name.(string)
			s, ok2 := source.(string)
			if !ok1 || !ok2 {
				return nil, fmt.Errorf("tokenizer config: chat_template[%d]: expected an object with the strings name and template", i)
			}
			templates[n] = s
		}
	default:
		return nil, fmt.Errorf("tokenizer config: chat_template: expected a string or a list")
	}
	return templates, nil
}

// Choose returns the source to use: the one for tools if there are tools and there is one, else the
// default, else the only one.
func Choose(templates map[string]string, tools bool) (string, error) {
	if source, ok := templates[ToolTemplate]; ok && tools {
		return source, nil
	}
	if source, ok := templates[DefaultTemplate]; ok {
		return source, nil
	}
	names := slices.Sorted(maps.Keys(templates))
	switch len(names) {
	case 0:
		return "", fmt.Errorf("the checkpoint has no chat template")
	case 1:
		return templates[names[0]], nil
	}
	return "", fmt.Errorf("the checkpoint has no default chat template, only %s", strings.Join(names, ", "))
}
