package tokenizer

import "slices"

// Texts of tokens that end a turn, a message or a document, whatever a file says about its
// end-of-sequence token.
var (
	// controlEnds look like control tokens and nothing else.
	controlEnds = []string{
		"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "_<EOT>", "<｜end▁of▁sentence｜>",
		"<end_of_utterance>", "<|eom_id|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<turn|>", "<|tool_response>", "[e~[",
		"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<|file_sep|>",
	}
	// plainEnds may also be ordinary text, such as HTML in Gemma's vocabulary: they count only as
	// special tokens.
	plainEnds = []string{"<EOT>", "[EOT]", "</s>", "[EOS]", "<eos>", "<reponame>"}
)

// endTokens returns the ids of known and of the tokens with such texts, less those that mean
// something else beside others.
func (t *Tokenizer) endTokens(known []int32) []int32 {
	var ids []int32
	for _, id := range known {
		if t.vocab.has(id) {
			ids = append(ids, id)
		}
	}
	for _, text := range controlEnds {
		if id, ok := t.added[text]; ok {
			ids = append(ids, id)
		}
	}
	for _, text := range plainEnds {
		if id, ok := t.added[text]; ok && t.IsSpecial(id) {
			ids = append(ids, id)
		}
	}
	drop := func(text string) {
		if id, ok := t.added[text]; ok {
			ids = slices.DeleteFunc(ids, func(x int32) bool { return x == id })
		}
	}
	if t.isHarmony() {
		drop("<|end|>") // ends a message of several
	}
	if _, ok := t.added["<|tool_response>"]; ok {
		drop("</s>")
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// isHarmony reports whether the vocabulary is one of the harmony format (gpt-oss).
func (t *Tokenizer) isHarmony() bool {
	has := func(texts ...string) bool {
		return !slices.ContainsFunc(texts, func(s string) bool { _, ok := t.added[s]; return !ok })
	}
	return has("<|return|>", "<|call|>") || has("<|calls|>", "<|flush|>")
}
