#!/usr/bin/env python3
"""Writes src/text/tokenizer/testdata: small tokenizers and what the library `tokenizers` (0.23.3) makes of texts with them.

    pip install tokenizers==0.23.3
    tools/make_tokenizer_testdata.py src/text/tokenizer/testdata

NAME.json           a tokenizer.json, trained here on a few lines of text
NAME.golden.json    [text, ids with special tokens, ids of plain text, decoded, decoded without special tokens]...; null: it panics, or
                    makes control tokens of plain text
components.json     many tokenizers that differ in their components only, with such cases. Their model is a WordPiece of single
                    characters, which shows where a text is cut: "a" begins a piece, "##a" goes on with one.
"""
import base64
import json
import os
import random
import struct
import sys

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

TRAINING = """
The sun rises in the east and sets in the west. The quick brown fox jumps over the lazy dog, doesn't it?
It was the best of times, it was the worst of times; we're told that they'll have 12345 things to do in 2024.
def add(a, b):\n    return a + b\n\nfor i in range(10):\n\tprint(i)  # comment
Die Sonne geht im Osten auf und im Westen unter. \u00dcber \u00e4hnliche \u00d6fen wei\u00df man wenig. Stra\u00dfe, gr\u00f6\u00dfer, s\u00fc\u00df.
Le soleil se l\u00e8ve \u00e0 l'est et se couche \u00e0 l'ouest. \u00c7a va bien, n'est-ce pas? O\u00f9 \u00eates-vous? na\u00efve caf\u00e9 d\u00e9j\u00e0 vu
\u0421\u043e\u043b\u043d\u0446\u0435 \u0432\u0441\u0442\u0430\u0451\u0442 \u043d\u0430 \u0432\u043e\u0441\u0442\u043e\u043a\u0435 \u0438 \u0441\u0430\u0434\u0438\u0442\u0441\u044f \u043d\u0430 \u0437\u0430\u043f\u0430\u0434\u0435.
\u592a\u9633\u4ece\u4e1c\u65b9\u5347\u8d77\uff0c\u4ece\u897f\u65b9\u843d\u4e0b\u3002\u4eca\u5929\u5929\u6c14\u5f88\u597d\u3002
\u0627\u0644\u0634\u0645\u0633 \u062a\u0634\u0631\u0642 \u0645\u0646 \u0627\u0644\u0634\u0631\u0642 \u0648\u062a\u063a\u0631\u0628 \u0641\u064a \u0627\u0644\u063a\u0631\u0628
""".strip("\n").split("\n") * 3

TEXTS = ["", " ", "a", " a", "a ", "The sun rises in the east.", "  two  spaces   three ", "Hello, world! It's 12345 o'clock.",
         "tabs\tand\nlines\r\n\r\n  end\n\n", "don't WE'LL they've I'M he'd", "x" * 300, " " * 40, "\n" * 20, "1234567890" * 8,
         "\u00dcber \u00e4hnliche \u00d6fen wei\u00df man", "U\u0308ber a\u0308hnliche", "caf\u00e9 cafe\u0301 \u1e9b\u0323 \ufb01 \ufdfa \u2460",
         "\u592a\u9633\u4ece\u4e1c\u65b9\u5347\u8d77\uff0c\u4eca\u5929 abc\u4e2d\u6587", "\u0421\u043e\u043b\u043d\u0446\u0435 \u0432\u0441\u0442\u0430\u0451\u0442",
         "\u0627\u0644\u0634\u0645\u0633 \u062a\u0634\u0631\u0642", "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea",
         "\u0915\u094d\u0937\u093f \u0e01\u0e33", "a\x00b\x01c\x7f\x80\xad\u200b\ufeff\ufffd", "\u3000\u2003wide\u00a0no\u2028break\x85next",
         "<s>bos</s> and <unk> <mask>  </s>", "<|end|>plain<|end|> <|en d|>", "<|tool|> x <|tool|>y", "[CLS] it [SEP] [MASK].", "<0x41><0xE2>",
         "\u2581under\u2581\u2581 line", "snake_case camelCase __init__(self)", "http://example.org/?q=1&r=a%20b", "$5.00 + \u20ac6,50 = ???",
         "\u0130stanbul \u00df\u1e9e \u01c5 \u03a3\u03c2", "\U00016ea0\u1c89\ua7cb\U00010d50", "\u0897\u1734\u1885\u111c9", "\u0661\u0662\u0663 \u00bd \u2167 \u2075",
         "aaaabaaaabaaaab", "ababababab" * 10, "\ud7a3\u1100\u1161\u11a8", "no-break\u2014dash\u2026dots", "A" * 50 + "b" * 50, "end with space "]


def fuzzy(count, seed):
    rng, pool = random.Random(seed), "".join(TEXTS) + "".join(TRAINING)
    return ["".join(rng.choice(pool) for _ in range(rng.randrange(1, 40))) for _ in range(count)]


def decoded(tokenizer, ids, skip):
    """None where the library panics (its Strip decoder does on tokens shorter than what it strips)."""
    try:
        return tokenizer.decode(ids, skip_special_tokens=skip)
    except BaseException:  # pyo3's PanicException is no Exception
        return None


def makes_control(tokenizer, text, ids):
    """True where the library's model makes control tokens of plain text, which ours never does."""
    special = {i: t.content for i, t in tokenizer.get_added_tokens_decoder().items() if t.special}
    return any(i in special and "unk" not in special[i].lower() for i in ids) or \
        any("unk" in t.lower() and t in text for t in special.values())


def golden(tokenizer, texts):
    cases = []
    for text in texts:
        tokenizer.encode_special_tokens = False
        ids = tokenizer.encode(text).ids
        tokenizer.encode_special_tokens = True
        plain = tokenizer.encode(text, add_special_tokens=False).ids
        if makes_control(tokenizer, text, plain):
            plain = None
        cases.append([text, ids, plain, decoded(tokenizer, ids, False), decoded(tokenizer, ids, True)])
    return cases


def byte_level():
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(TRAINING, trainers.BpeTrainer(
        vocab_size=600, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<s>", "</s>", "<|end|>"]))
    t.add_tokens([AddedToken("<|tool|>", normalized=False, lstrip=True, rstrip=True), AddedToken("sun", single_word=True)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 0)])
    return t


def sentencepiece_bpe(byte_limit=256, fuse_unk=True):
    """As Llama 2 and Gemma have it: U+2581 for spaces, byte fallback, unknown characters fused. With fewer byte tokens some
    characters stay unknown."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=fuse_unk, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    t.train_from_iterator(TRAINING, trainers.BpeTrainer(
        vocab_size=800, show_progress=False, limit_alphabet=80,
        special_tokens=["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(byte_limit)]))
    j = json.loads(t.to_str())  # the byte tokens are pieces of the model, not added tokens
    j["added_tokens"] = [a for a in j["added_tokens"] if not a["content"].startswith("<0x")]
    t = Tokenizer.from_str(json.dumps(j))
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                   decoders.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 1)])
    return t


def unigram(byte_fallback):
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(" ", " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first" if byte_fallback else "always")
    extra = ["<0x%02X>" % b for b in range(256)] if byte_fallback else []
    t.train_from_iterator(TRAINING, trainers.UnigramTrainer(
        vocab_size=400, show_progress=False, unk_token="<unk>", special_tokens=["<unk>", "<s>", "</s>", "<mask>"]))
    j = json.loads(t.to_str())
    j["model"]["byte_fallback"] = byte_fallback
    j["model"]["vocab"] += [[x, -20.0] for x in extra]
    t = Tokenizer.from_str(json.dumps(j))
    t.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first")]) \
        if byte_fallback else decoders.Metaspace(prepend_scheme="always")
    t.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A $B </s>", special_tokens=[("</s>", 2)])
    return t


def word_piece():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(TRAINING, trainers.WordPieceTrainer(
        vocab_size=500, show_progress=False, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t


def word_end_bpe():
    """As the first GPT and XLM have it: a suffix at the end of words, no byte fallback, unknown characters not fused."""
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=False)
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    t.decoder = decoders.BPEDecoder()
    t.train_from_iterator(TRAINING, trainers.BpeTrainer(vocab_size=400, show_progress=False, end_of_word_suffix="</w>",
                                                        limit_alphabet=60, special_tokens=["<unk>", "</s>"]))
    return t


# ---- components ---------------------------------------------------------------------------------------------------

def charsmap(rules):
    """sentencepiece's precompiled charsmap, with the double array of Darts-clone laid out without compression."""
    trie = [{}]
    values = {}
    blob = b""
    for key, value in rules:
        node = 0
        for byte in key.encode():
            if byte not in trie[node]:
                trie[node][byte] = len(trie)
                trie.append({})
            node = trie[node][byte]
        values[node] = len(blob)
        blob += value.encode() + b"\0"
    # Node i owns the 256 units from 256 * (i + 1) on (unit b: child for byte b, unit 0: the value); unit 0 is the root.
    units = [0] * (256 * (len(trie) + 2))
    offset = lambda here, there: (here ^ there) << 10
    places = {0: 0}
    for i, children in enumerate(trie):
        place, base = places[i], 256 * (i + 1)
        units[place] |= offset(place, base)
        if i in values:
            units[place] |= 1 << 8
            units[base] = values[i] | 1 << 31
        for byte, child in children.items():
            units[base ^ byte] = byte
            places[child] = base ^ byte
    return base64.b64encode(struct.pack("<I", 4 * len(units)) + struct.pack("<%dI" % len(units), *units) + blob).decode()


def component_tokenizers():
    """(name, parts of tokenizer.json)"""
    n = lambda kind, **fields: {"normalizer": {"type": kind, **fields}}
    p = lambda kind, **fields: {"pre_tokenizer": {"type": kind, **fields}}
    d = lambda kind, **fields: {"decoder": {"type": kind, **fields}}
    string, regex = (lambda s: {"String": s}), (lambda s: {"Regex": s})
    yield "none", {}
    for kind in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel"):
        yield kind, n(kind)
    for left, right in ((True, False), (False, True), (True, True)):
        yield "Strip", n("Strip", strip_left=left, strip_right=right)
    yield "Prepend", n("Prepend", prepend="ab")
    yield "Replace", n("Replace", pattern=string("a"), content="bb")
    yield "Replace regex", n("Replace", pattern=regex(r"\s+|\p{L}{3}"), content=" ")
    yield "Replace with nothing", n("Replace", pattern=regex(r"^\s+|\d"), content="")
    for i in range(5):
        yield "BertNormalizer", n("BertNormalizer", clean_text=i != 0, handle_chinese_chars=i != 1, lowercase=i != 2,
                                  strip_accents=[None, None, None, True, False][i])
    yield "Precompiled", n("Precompiled", precompiled_charsmap=charsmap(
        [("a", "b"), ("\u00e9", "e"), ("e\u0301", "E"), ("\ufb01", "fi"), ("\u3000", " "), ("\u200b", ""), ("\u4e2d", "\u6587x"), ("x", "")]))
    yield "NFD then StripAccents", {"normalizer": {"type": "Sequence", "normalizers": [
        {"type": "NFD"}, {"type": "Sequence", "normalizers": [{"type": "StripAccents"}, {"type": "Lowercase"}]}]}}

    yield "ByteLevel", p("ByteLevel", add_prefix_space=False, trim_offsets=True)
    yield "ByteLevel with a space", p("ByteLevel", add_prefix_space=True, trim_offsets=True, use_regex=False)
    for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        for invert in (False, True):
            yield "Split", p("Split", pattern=regex(r"\s|a+"), behavior=behavior, invert=invert)
        yield "Split string", p("Split", pattern=string("  "), behavior=behavior, invert=False)
        yield "Punctuation", p("Punctuation", behavior=behavior)
    yield "Split empty", p("Split", pattern=regex(r"x*"), behavior="Isolated", invert=False)
    yield "Split at nothing", p("Split", pattern=regex(r"(?=[A-Z])|(?<=\d)"), behavior="MergedWithNext", invert=False)
    yield "Split newer", p("Split", pattern=regex(r"\p{Lu}+|[^\P{Ll}a-d]+|\P{L}+|\w"), behavior="Isolated", invert=False)
    yield "Digits", p("Digits", individual_digits=False)
    yield "Digits alone", p("Digits", individual_digits=True)
    for kind in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer"):
        yield kind, p(kind)
    yield "CharDelimiterSplit", p("CharDelimiterSplit", delimiter="i")
    yield "FixedLength", p("FixedLength", length=3)
    for scheme in ("first", "never", "always"):
        for split in (False, True):
            yield "Metaspace", p("Metaspace", replacement="\u2581", prepend_scheme=scheme, split=split)
    yield "Sequence", {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first"},
        {"type": "Punctuation", "behavior": "Isolated"}]}}

    yield "ByteLevel", d("ByteLevel", add_prefix_space=True, trim_offsets=True, use_regex=True)
    yield "ByteFallback", d("ByteFallback")
    yield "Fuse", d("Fuse")
    for start, stop in ((1, 0), (0, 1), (2, 2)):
        yield "Strip", d("Strip", content="a", start=start, stop=stop)
        yield "Fuse and Strip", {"decoder": {"type": "Sequence", "decoders": [
            {"type": "Fuse"}, {"type": "Strip", "content": "a", "start": start, "stop": stop}]}}
    yield "Replace", d("Replace", pattern=string("##"), content="-")
    yield "Replace regex", d("Replace", pattern=regex("[a-e]+"), content="*")
    yield "Fuse and Replace", {"decoder": {"type": "Sequence", "decoders": [
        {"type": "Fuse"}, {"type": "Replace", "pattern": string("##"), "content": ""}]}}
    yield "Metaspace", d("Metaspace", replacement="\u2581", prepend_scheme="always", split=True)
    yield "Metaspace never", d("Metaspace", replacement="\u2581", prepend_scheme="never", split=True)
    yield "WordPiece", d("WordPiece", prefix="##", cleanup=True)
    yield "WordPiece as it is", d("WordPiece", prefix="##", cleanup=False)
    yield "BPEDecoder", d("BPEDecoder", suffix="#")

    def token(i, content, **flags):
        return {"id": i, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                "special": False, **flags}
    extra = 100000  # replaced by the first id behind the vocabulary
    yield "added tokens", {"added_tokens": [
        token(extra, "<s>", special=True), token(extra + 1, "<|tool|>", lstrip=True, rstrip=True),
        token(extra + 2, "the", single_word=True), token(extra + 3, "</s>", lstrip=True, special=True),
        token(extra + 4, "<s>bos"), token(extra + 5, "<unk>", rstrip=True, special=True)]}
    yield "normalized added tokens", {**n("Lowercase"), "added_tokens": [
        token(extra, "SUN", normalized=True), token(extra + 1, "East", normalized=True, single_word=True),
        token(extra + 2, "<S>", special=True)]}
    yield "TemplateProcessing", {"post_processor": {"type": "Sequence", "processors": [
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
        {"type": "TemplateProcessing",
         "single": [{"SpecialToken": {"id": "x", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                    {"SpecialToken": {"id": "y", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
         "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
         "special_tokens": {"x": {"id": "x", "ids": [1, 2], "tokens": ["a", "b"]}, "y": {"id": "y", "ids": [3], "tokens": ["c"]}}}]}}
    yield "RobertaProcessing", {"post_processor": {"type": "RobertaProcessing", "sep": ["a", 1], "cls": ["b", 2],
                                                   "trim_offsets": True, "add_prefix_space": False}}


def component_cases():
    texts = [x for x in TEXTS if len(x) < 60]
    alphabet = sorted(set("".join(texts)) - {"\x00"} | set("abcdefghijklmnopqrstuvwxyzABC0123\u0120\u010a\u2581"))
    alphabet = [c for c in alphabet if ord(c) < 0x2600 or c in "\u592a\u9633\u4e2d\u6587"]
    pieces = ["[UNK]"] + [c for c in alphabet] + ["##" + c for c in alphabet]
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
             "vocab": {piece: i for i, piece in enumerate(pieces)}}
    result = []
    for number, (name, parts) in enumerate(component_tokenizers()):
        for t in parts.get("added_tokens", []):
            t["id"] += len(pieces) - 100000
        whole = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
                 "pre_tokenizer": None, "post_processor": None, "decoder": None, **parts, "model": model}
        tokenizer = Tokenizer.from_str(json.dumps(whole))
        chosen = random.Random(number).sample(texts, 7)
        if "added_tokens" in parts:
            chosen += [x for x in texts if "<" in x or "sun" in x or "the" in x]
            chosen += ["SUN sun Sun east, East", "thethe the, the_ <s>bos <s>  </s><unk>  x", "  <|tool|>  <|tool|> a<|tool|>"]
        result.append({"name": name, "parts": parts, "cases": golden(tokenizer, chosen)})
    return {"model": model, "tokenizers": result}


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    for name, tokenizer in (("byte_level_bpe", byte_level()), ("sentencepiece_bpe", sentencepiece_bpe()),
                            ("sentencepiece_unk", sentencepiece_bpe(0xE0, False)),
                            ("sentencepiece_fused", sentencepiece_bpe(0xE0, True)), ("unigram", unigram(False)), ("unigram_bytes", unigram(True)), ("word_piece", word_piece()),
                            ("word_end_bpe", word_end_bpe())):
        compact = json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":"))
        with open(os.path.join(out, name + ".json"), "w", encoding="utf-8") as f:
            f.write(compact + "\n")
        cases = golden(Tokenizer.from_str(compact), TEXTS + fuzzy(100, 7))
        with open(os.path.join(out, name + ".golden.json"), "w", encoding="utf-8") as f:
            f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
    components = component_cases()
    with open(os.path.join(out, "components.json"), "w", encoding="utf-8") as f:
        f.write('{"model":%s,\n"tokenizers":[\n' % json.dumps(components["model"], separators=(",", ":")))
        f.write(",\n".join(json.dumps(t, separators=(",", ":")) for t in components["tokenizers"]) + "\n]}\n")


if __name__ == "__main__":
    main()
