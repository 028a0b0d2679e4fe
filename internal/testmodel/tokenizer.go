package testmodel

import (
	"encoding/json"
	"fmt"
	"strings"
)

// merges are those of the tokenizer, in order of rank; each makes a token.
// Ġ is a space in the byte alphabet.
var merges = [...]string{
	"h e", "i n", "e r", "Ġ t", "Ġt he", "r e", "o n", "Ġ a", "l l", "o r", "Ġ w", "Ġw or",
	"l d", "he ll", "hell o", "Ġwor ld", "n d", "a nd", "Ġa nd", "1 2", "12 3", "ĉ ĉ", "Ċ Ċ", "Ã ©",
}

// Token ids: 0 to 255 are bytes, then come the tokens of the merges, then
// those that stand for more than their text. Rows of the embedding beyond the
// last token are padding, as in published models.
const (
	BOS      = 256 + len(merges) + iota // <bos>
	EOS                                 // <eos>
	Start                               // <|im_start|>
	End                                 // <|im_end|>
	Think                               // <think>
	ThinkEnd                            // </think>
	Call                                // <tool_call>
	CallEnd                             // </tool_call>
	Tokens                              // how many there are
	Vocab    = 300                      // rows of the embedding
)

var added = [...]string{"<bos>", "<eos>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>"}

// isControl tells the added tokens that are not text.
func isControl(id int) bool { return id >= BOS && id <= End }

// ChatTemplate is ChatML, with the definitions of tools as JSON lines.
const ChatTemplate = `{%- if tools %}<|im_start|>system
Tools:
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}<|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

// vocabulary lists the texts of all tokens in the byte alphabet.
func vocabulary() []string {
	texts := make([]string, 256, Tokens)
	next := rune(256)
	for b := range rune(256) {
		if b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae {
			texts[b] = string(b)
		} else {
			texts[b] = string(next)
			next++
		}
	}
	for _, m := range merges {
		texts = append(texts, strings.ReplaceAll(m, " ", ""))
	}
	return append(texts, added[:]...)
}

// prependBOS reports whether tokenizers of the family begin texts with <bos>.
func (s Spec) prependBOS() bool {
	return s.Family == "llama" || s.Family == "mistral" || s.Family == "gemma3_text"
}

type object = map[string]any

// tokenizerJSON is byte-level BPE with the split of GPT-2.
func (s Spec) tokenizerJSON() ([]byte, error) {
	vocab, special := object{}, []object{}
	for id, text := range vocabulary() {
		if id < BOS {
			vocab[text] = id
			continue
		}
		special = append(special, object{
			"id": id, "content": text, "special": isControl(id),
			"single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
		})
	}
	pairs := make([][]string, len(merges))
	for i, m := range merges {
		pairs[i] = strings.Split(m, " ")
	}
	byteLevel := object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}
	post := byteLevel
	if s.prependBOS() {
		bos := object{"SpecialToken": object{"id": "<bos>", "type_id": 0}}
		a, b := object{"Sequence": object{"id": "A", "type_id": 0}}, object{"Sequence": object{"id": "B", "type_id": 1}}
		post = object{
			"type": "TemplateProcessing", "single": []object{bos, a}, "pair": []object{bos, a, bos, b},
			"special_tokens": object{"<bos>": object{"id": "<bos>", "ids": []int{BOS}, "tokens": []string{"<bos>"}}},
		}
	}
	return json.Marshal(object{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": special,
		"normalizer": nil, "pre_tokenizer": byteLevel, "post_processor": post, "decoder": byteLevel,
		"model": object{
			"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
			"fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": vocab, "merges": pairs,
		},
	})
}

func (s Spec) tokenizerConfig() object {
	return object{
		"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<bos>", "eos_token": "<eos>",
		"add_bos_token": s.prependBOS(), "model_max_length": s.Context, "chat_template": ChatTemplate,
	}
}

// generationConfig adds the end of a chat turn to the end of a text.
func generationConfig() object {
	return object{"bos_token_id": BOS, "eos_token_id": []int{EOS, End}}
}

// ggufTokens are the texts of all rows of the embedding with their types.
func ggufTokens() (texts []string, types []int32) {
	const normal, control, user, unused = 1, 3, 4, 5
	texts = vocabulary()
	for id := range Vocab {
		switch {
		case id < BOS:
			types = append(types, normal)
		case isControl(id):
			types = append(types, control)
		case id < Tokens:
			types = append(types, user)
		default:
			texts, types = append(texts, fmt.Sprintf("[PAD%d]", id)), append(types, unused)
		}
	}
	return texts, types
}
