package tokenizer

import (
	"fmt"
	"strings"
)

// checkTypes refuses keys that are there but of another type: read as absent,
// they would change how text is split without a word.
func checkTypes(m Metadata) error {
	is := map[string]func(key string) bool{
		"text":               func(key string) bool { _, ok := m.String(key); return ok },
		"true or false":      func(key string) bool { _, ok := m.Bool(key); return ok },
		"an integer":         func(key string) bool { _, ok := m.Int(key); return ok },
		"a list of floats":   func(key string) bool { _, ok := m.Floats(key); return ok },
		"a list of integers": func(key string) bool { _, ok := m.Ints(key); return ok },
	}
	for _, k := range [...]struct{ want, keys string }{
		{"text", "model pre"},
		{"true or false", "add_bos_token add_eos_token add_sep_token add_space_prefix remove_extra_whitespaces"},
		{"an integer", "bos_token_id eos_token_id eot_token_id eom_token_id unknown_token_id seperator_token_id padding_token_id"},
		{"a list of floats", "scores"},
		{"a list of integers", "token_type"},
	} {
		for key := range strings.FieldsSeq(k.keys) {
			if key = ggml + key; m.Has(key) && !is[k.want](key) {
				return fmt.Errorf("%s: expected %s", key, k.want)
			}
		}
	}
	return nil
}
