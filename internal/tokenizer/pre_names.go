package tokenizer

// The pre-tokenizers that GGUF files name in tokenizer.ggml.pre. The patterns are those of the
// models' own tokenizer.json files.

const (
	contraction = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`

	llama3Pattern = contraction + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen2Pattern  = contraction + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	o200kPattern  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+` + contraction + `?` +
		`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*` + contraction + `?` +
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	deepseekPattern = `[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_` + "`" + `{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	hanKanaPattern  = `[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+`
	bloomPattern    = ` ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{0964}\x{06D4}\x{060C})]+`

	// deepseekLetters are the letters of the cased scripts, deepseekCJK what the file takes for
	// Chinese and Korean.
	deepseekLetters = `\s?[A-Za-z\x{00B5}\x{00C0}-\x{00D6}\x{00D8}-\x{00F6}\x{00F8}-\x{01BA}\x{01BC}-\x{01BF}\x{01C4}-\x{0293}\x{0295}-\x{02AF}\x{0370}-\x{0373}\x{0376}` +
		`\x{0377}\x{037B}-\x{037D}\x{037F}\x{0386}\x{0388}-\x{038A}\x{038C}\x{038E}-\x{03A1}\x{03A3}-\x{03F5}\x{03F7}-\x{0481}\x{048A}-\x{052F}` +
		`\x{0531}-\x{0556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}` +
		`\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}` +
		`\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}` +
		`\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}` +
		`\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}` +
		`\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}` +
		`\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}` +
		`]+`
	deepseekCJK = `[\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+`

	// digitGroups names the rule of groupDigits for every run of digits; it is no pattern.
	digitGroups = "digits in threes from the right"
)

type preFlags uint16

const (
	wholeTokens   preFlags = 1 << iota // a piece that is a token is taken before any merge (ignore_merges)
	addBOS                             // unless add_bos_token says otherwise
	addSEP                             // unless add_sep_token says otherwise
	rawText                            // tokens are text, not in the byte alphabet, with <0xXX> for other bytes
	markSpaces                         // spaces become ▁ before the split
	wholeNewlines                      // wholeTokens for pieces of newlines only
	dropGaps                           // what no pattern matches is dropped
	nfcFirst                           // the models' files normalize; GGUF has no key for it
)

// preTokenizers: names (separated by spaces), flags, patterns. The patterns apply one after
// another, each inside the pieces of the one before; matches and gaps become pieces.
var preTokenizers = []struct {
	names    string
	flags    preFlags
	patterns []string
}{
	{"llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano", wholeTokens | addBOS, []string{llama3Pattern}},
	{"dbrx smaug-bpe glm4 chatglm-bpe", 0, []string{llama3Pattern}},
	{"jais-2", 0, []string{
		contraction + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` +
			`|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)` +
			`|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)` +
			`|\s{1}`,
	}},
	{"deepseek-llm", 0, []string{
		`[\r\n]`,
		deepseekLetters,
		`\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+`,
		`\s+$`,
		deepseekCJK,
		`\p{N}+`,
	}},
	{"deepseek-v3 hunyuan-dense joyai-llm", 0, []string{`\p{N}{1,3}`, hanKanaPattern, deepseekPattern}},
	{"youtu", wholeTokens, []string{
		`[\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B}\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+` +
			`|[\x{3105}-\x{312F}]+|[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+`,
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+` + contraction + `?` +
			`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*` + contraction + `?` +
			`|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	}},
	{"deepseek-coder", 0, []string{`[\r\n]`, `\s?\p{L}+`, `\s?\p{P}+`, deepseekCJK, `\p{N}`}},
	{"falcon", 0, []string{`[\p{P}\$\+<=>\^~\|` + "`" + `]+`, gpt2Pattern, `[0-9][0-9][0-9]`}},
	{"starcoder refact codeshell exaone minerva-7b mellum2 command-r smollm", 0, []string{`\p{N}`, gpt2Pattern}},
	{"modern-bert mpt olmo", nfcFirst, []string{gpt2Pattern}},
	{"gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum exaone4 jais trillion granite-docling", 0, []string{gpt2Pattern}},
	{"jina-v1-en jina-v2-code roberta-bpe", addSEP, []string{gpt2Pattern}},
	{"qwen2 deepseek-r1-qwen", nfcFirst, []string{qwen2Pattern}},
	{"stablelm2 megrez kormo f2llmv2 hunyuan solar-open grok-2", 0, []string{qwen2Pattern}},
	{"qwen35", nfcFirst, []string{contraction + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`}},
	{"poro-chat bloom gpt3-finnish", 0, []string{bloomPattern}},
	{"viking", 0, []string{bloomPattern, `\p{N}`}},
	{"tekken", wholeTokens | addBOS, []string{
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+` +
			`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*` +
			`|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	}},
	{"chameleon", addBOS, []string{
		`<sentinel:[0-9]+>`,
		`(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z`,
		`([\t\n]|    |  )`,
		`\p{N}`,
		`[\p{P}!-/:-@\[-` + "`" + `{-~]`,
		gpt2Pattern,
	}},
	{"gpt-4o llama4 kanana2 talkie minimax-m2", 0, []string{o200kPattern}},
	{"granite-embed-multi-97m", wholeTokens, []string{
		`[^\r\n\p{L}\p{N}]?((?=[\p{L}\p{M}])([^a-z]))*((?=[\p{L}\p{M}])([^A-Z]))+` + contraction + `?` +
			`|[^\r\n\p{L}\p{N}]?((?=[\p{L}\p{M}])([^a-z]))+((?=[\p{L}\p{M}])([^A-Z]))*` + contraction + `?` +
			`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	}},
	{"tiny_aya cohere2moe", 0, []string{digitsBeforeBoundary, o200kPattern}},
	{"kimi-k2", 0, []string{
		`[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+` + contraction + `?` +
			`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*` + contraction + `?` +
			`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	}},
	{"superbpe", 0, []string{`\p{N}+`, digitGroupStarts}},
	{"bailingmoe bailingmoe2 llada-moe", 0, []string{
		`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`,
	}},
	{"seed-coder", 0, []string{contraction + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+`}},
	{"afmoe", 0, []string{
		digitGroups,
		`[\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{8C48}-\x{FAFF}\x{3040}-\x{309F}\x{30A0}-\x{30FF}\x{FF65}-\x{FF9F}\x{2F00}-\x{2FDF}\x{0E40}-\x{0E7F}\x{0E80}-\x{0EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F}\x{AA60}-\x{AA7F}\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+`,
		deepseekPattern,
	}},
	{"laguna", 0, []string{`[^\n]+|[\n]+`, qwen2Pattern}},
	{"exaone-moe", 0, []string{
		contraction + `|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+`,
	}},
	{"gemma4 granite-embed-multi-311m", rawText | markSpaces | wholeNewlines, []string{`[^\n]+|[\n]+`}},
	{"sarvam-moe", rawText | markSpaces, []string{`[^\n]+|[\n]+`}},
	{"minicpm5", wholeTokens, []string{`\p{N}{1,3}`, contraction + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`}},
	{"whitespace", rawText | dropGaps | wholeTokens, []string{`\S+`}},
	{"default", 0, []string{`[\p{P}\$\+<=>\^~\|]+`, gpt2Pattern, `\p{N}+`, `[0-9][0-9][0-9]`}},
}
