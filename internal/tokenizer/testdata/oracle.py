#!/usr/bin/env python3
"""Writes oracle.json: small tokenizers, each trained here on the text below, and what Hugging Face tokenizers makes of some texts with them.

    pip install tokenizers==0.23.3 && python3 oracle.py
"""
import json
import os

from tokenizers import AddedToken, Regex, Tokenizer, decoders as D, models as M, normalizers as N
from tokenizers import pre_tokenizers as P, processors as X, trainers as T

TRAIN = [
    "the cat sat on the mat, and the dog didn't; it's 12345 o'clock.",
    "Le café naïve coûte 1234567 €. Übergröße!",
    "def f(x):\n    return x ** 2  # x\n\n\tif x:\n\t\tpass\n",
    "日本語のテキスト、中文文本。 Привет мир",
] * 3

TEXTS = [
    "", " ", "the cat", "  the  cat\n\n", "The CAT'S mat, didn't it's we'Ll", "x = 1234567 + 12;\tif 9:",
    "café cafe\u0301 \u1100\u1161\u11a8 ﬁ ① İ", "日本語テキスト。中文", "😀👩‍👩‍👧 🇩🇪", "▁the▁▁cat", "a<s>b </s> <x>the<x>", "yes Yes YESyes 1<x>2",
    "½²³ ٣٤٥ 1,234.56", "\u3000全角　ｆｕｌｌ", "e" + "\u0301" * 35 + "\u0323", "x\r\n\r\n\u2028y\u0085z", "\u1c89\ua7cb\U00010d50\U000105c0",
]

QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def split(pattern, behavior="isolated", invert=False):
    return P.Split(Regex(pattern), behavior, invert)


LLAMA_DECODER = [D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)]
BYTES = ["<0x%02X>" % b for b in range(256)]

# name: (normalizer, pre-tokenizer, decoder, model options, added tokens, post-processor)
CASES = {
    "qwen": (N.NFC(), P.Sequence([split(QWEN), P.ByteLevel(False, use_regex=False)]), D.ByteLevel(), {},
             [AddedToken("<s>", special=True), AddedToken("<x>")], None),
    "gpt2": (None, P.ByteLevel(True), D.ByteLevel(), {"ignore_merges": True}, [AddedToken("<x>", lstrip=True, single_word=True)], None),
    "falcon": (None, P.Sequence([P.Punctuation("contiguous"), P.ByteLevel(False), P.Digits(False), split("[0-9][0-9][0-9]")]), D.ByteLevel(), {},
               [], None),
    "llama": (N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")]), None, D.Sequence(LLAMA_DECODER),
              {"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}, [AddedToken("<s>", special=True, normalized=False)], "<s> $A"),
    "gemma": (N.Replace(" ", "▁"), P.Split(" ", "merged_with_previous"), D.Sequence(LLAMA_DECODER[:3]),
              {"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}, [AddedToken("\n\n", normalized=False)], None),
    "unknown": (N.Sequence([N.NFKC(), N.Lowercase(), N.Strip()]), P.Sequence([P.Whitespace(), P.Digits(True)]), None, {"unk_token": "<unk>"},
                [AddedToken("yes", normalized=True), AddedToken("</s>", special=True, rstrip=True, normalized=False)], "$A </s>"),
    "words": (N.Sequence([N.NFD(), N.StripAccents()]), P.Metaspace(prepend_scheme="first"), D.Metaspace(prepend_scheme="first"),
              {"end_of_word_suffix": "$"}, [], None),
    "grouped": (N.Replace(Regex(r"\s+"), " "), P.Sequence([split(r"\d{1,3}(?=(?:\d{3})*\b)"), split(r"\p{Lu}", "merged_with_next"),
                                                          split(r"[^\w\s]", "merged_with_previous", True)]), D.Fuse(), {}, [], None),
}


def train(normalizer, pre, options):
    t = Tokenizer(M.BPE(**options))
    if normalizer:
        t.normalizer = normalizer
    if pre:
        t.pre_tokenizer = pre
    special = ["<unk>"] * ("unk_token" in options) + BYTES * bool(options.get("byte_fallback"))
    size = 340 if "byte_fallback" in options else 140
    suffix = {k: v for k, v in options.items() if k == "end_of_word_suffix"}
    t.train_from_iterator(TRAIN, T.BpeTrainer(
        vocab_size=size, special_tokens=special, limit_alphabet=60, show_progress=False, **suffix))
    state = json.loads(t.to_str())
    state["added_tokens"] = []
    return Tokenizer.from_str(json.dumps(state))


def unigram():
    t = Tokenizer(M.Unigram([("<unk>", 0.0), ("▁", -3.0), ("▁the", -2.5), ("the", -4.0), ("▁c", -3.0), ("at", -2.0), ("c", -4.0), ("a", -4.5), ("t", -4.5),
                             ("▁cat", -5.0), ("é", -4.0), ("▁caf", -5.5)], 0, False))
    t.normalizer, t.pre_tokenizer, t.decoder = N.NFC(), P.Metaspace(), D.Metaspace()
    return t


def main():
    out = []

    def add(name, t):
        cases = []
        for text in TEXTS:
            ids = t.encode(text, add_special_tokens=False).ids
            cases.append({"text": text, "ids": ids, "special": t.encode(text).ids,
                          "decoded": t.decode(ids, skip_special_tokens=False), "skipped": t.decode(ids)})
        out.append({"name": name, "tokenizer": json.loads(t.to_str()), "cases": cases})

    for name, (normalizer, pre, decoder, options, tokens, template) in CASES.items():
        t = train(normalizer, pre, options)
        t.add_tokens(tokens)
        if decoder:
            t.decoder = decoder
        if template:
            special = template.replace("$A", "").strip()
            t.post_processor = X.TemplateProcessing(single=template, special_tokens=[(special, t.token_to_id(special))])
        add(name, t)
    add("unigram", unigram())
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "oracle.json"), "w") as f:
        json.dump(out, f, ensure_ascii=True, separators=(",", ":"))
        f.write("\n")


main()
