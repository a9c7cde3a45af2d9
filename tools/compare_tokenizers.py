#!/usr/bin/env python3
"""Compares our tokenizer with the Python library `tokenizers` (0.23.3), id by id, and with llama.cpp's packaged vectors.

    pip install tokenizers==0.23.3 gguf==0.19.0
    tools/compare_tokenizers.py --oracle build/release/bin/tokenizer_oracle --work DIR [--llama-vocab FILE] [--only NAME,...]
        NAME=tokenizer.json[,tokenizer_config.json] ...      compared on corpus and adversarial texts
        NAME=file.gguf ...                                   likewise; the tokenizer.json is made here, ours reads the metadata

For each tokenizer: ids with and without special tokens, special tokens parsed and not parsed, decoded text with and
without special tokens. For a file.gguf that has .inp and .out beside it, those vectors too. Exits with 1 if anything differs.
"""
import argparse
import json
import os
import random
import re
import struct
import subprocess
import sys
import unicodedata

from make_text_corpus import corpus, write_texts

NORMAL, UNKNOWN, CONTROL, USER, UNUSED = 1, 2, 3, 4, 5
MARK = "\u2581"


# ---- tokenizer.json from GGUF metadata: written for the Python side alone ----------------------------------------

def split(regex):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


def byte_level(use_regex):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


DIGITS = {"type": "Digits", "individual_digits": True}
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
CJK = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"


def pre_tokenizers(pre, deepseek_letters):
    """(normalizer, pre-tokenizers, ignore_merges) as in the models' own tokenizer.json."""
    nfc = {"type": "NFC"}
    return {
        "llama-bpe": (None, [split(SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + TAIL), byte_level(False)], True),
        "qwen2": (nfc, [split(SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + TAIL), byte_level(False)], False),
        "qwen35": (None, [split(SHORT + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
                               r"|\s*[\r\n]+|\s+(?!\S)|\s+"), byte_level(False)], False),
        "gpt-2": (None, [byte_level(True)], False),
        "mpt": (nfc, [byte_level(True)], False),
        "smollm": (None, [DIGITS, byte_level(True)], False),
        "starcoder": (None, [DIGITS, byte_level(True)], False),
        "refact": (None, [DIGITS, byte_level(True)], False),
        "command-r": (None, [DIGITS, byte_level(True)], False),
        "falcon": (None, [{"type": "Punctuation", "behavior": "Contiguous"}, byte_level(True),
                          {"type": "Digits", "individual_digits": False}, split("[0-9][0-9][0-9]")], False),
        "deepseek-llm": (None, [split("[\r\n]"), split(deepseek_letters), split(
            "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"), split(r"\s+$"), split(CJK), DIGITS,
            byte_level(False)], False),
        "deepseek-coder": (None, [split("[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split(CJK), DIGITS,
                                  byte_level(False)], False),
    }[pre]


def added(i, content, special):
    return {"id": i, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": special}


def merges_by_score(vocab, score):
    out = []
    for piece, i in vocab.items():
        for k in range(1, len(piece)):
            if piece[:k] in vocab and piece[k:] in vocab:
                out.append((-score[i], -k, -(len(piece) - k), piece[:k], piece[k:]))
    out.sort(key=lambda x: x[:3])
    return [[left, right] for _, _, _, left, right in out]


def sentencepiece_json(m):
    tokens = [t.replace(" ", MARK) if y == USER else t for t, y in zip(m["tokens"], m["token_type"])]
    vocab = {t: i for i, t in enumerate(tokens)}
    prefix = m.get("add_space_prefix", m["model"] == "llama")
    if m["model"] == "gemma4":
        merges = [[x[:x.index(" ", 1)], x[x.index(" ", 1) + 1:]] for x in m["merges"]]
    else:
        merges = merges_by_score(vocab, [s if y == NORMAL else 0.0 for s, y in zip(m["scores"], m["token_type"])])
    model = {"type": "BPE", "dropout": None, "unk_token": tokens[m["unknown_token_id"]], "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False, "vocab": vocab,
             "merges": merges}
    normalizers = [{"type": "Prepend", "prepend": MARK}] if prefix else []
    normalizers.append({"type": "Replace", "pattern": {"String": " "}, "content": MARK})
    decoders = [{"type": "Replace", "pattern": {"String": MARK}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]
    if prefix:
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return {"normalizer": {"type": "Sequence", "normalizers": normalizers}, "pre_tokenizer": None,
            "decoder": {"type": "Sequence", "decoders": decoders}, "model": model}, tokens


def byte_level_json(m, deepseek_letters):
    normalizer, pre, ignore = pre_tokenizers(m["pre"], deepseek_letters)
    vocab = {t: i for i, (t, y) in enumerate(zip(m["tokens"], m["token_type"])) if y != UNUSED}
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": ignore, "vocab": vocab,
             "merges": [x.split(" ") for x in m["merges"]]}
    return {"normalizer": normalizer, "pre_tokenizer": {"type": "Sequence", "pretokenizers": pre},
            "decoder": byte_level(True), "model": model}, m["tokens"]


def word_piece_json(m):
    tokens = [t[1:] if t.startswith(MARK) else "##" + t if y == NORMAL else t for t, y in zip(m["tokens"], m["token_type"])]
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
             "vocab": {t: i for i, t in enumerate(tokens)}}
    return {"normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                           "strip_accents": None, "lowercase": True},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True}, "model": model}, tokens


def unigram_json(m):
    """An XLM-RoBERTa tokenizer from the metadata of model "t5"; there is no road from GGUF for it on our side."""
    import base64
    tokens = m["tokens"]
    model = {"type": "Unigram", "unk_id": m["unknown_token_id"], "byte_fallback": False,
             "vocab": [[t, s] for t, s in zip(tokens, m["scores"])]}
    charsmap = base64.b64encode(bytes(x & 255 for x in m["precompiled_charsmap"])).decode()
    return {"normalizer": {"type": "Sequence", "normalizers": [
                {"type": "Precompiled", "precompiled_charsmap": charsmap},
                {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]},
            "pre_tokenizer": {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "always", "split": True},
            "decoder": {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "always", "split": True},
            "model": model}, tokens


def template(m, tokens):
    bert = m["model"] == "bert"
    bos = m.get("cls_token_id", m.get("bos_token_id")) if bert else m.get("bos_token_id")
    eos = m.get("seperator_token_id", m.get("eos_token_id")) if bert else m.get("eos_token_id")
    add_bos = m.get("add_bos_token", m["model"] in ("llama", "gemma4", "bert") or m.get("pre") == "llama-bpe")
    add_eos = m.get("add_eos_token", bert)
    special = lambda i: {"SpecialToken": {"id": tokens[i], "type_id": 0}}
    single = [special(bos)] if add_bos else []
    single.append({"Sequence": {"id": "A", "type_id": 0}})
    single += [special(eos)] if add_eos else []
    return {"type": "TemplateProcessing", "single": single, "pair": single + [{"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {tokens[i]: {"id": tokens[i], "ids": [i], "tokens": [tokens[i]]}
                               for i in (bos, eos) if i is not None}}


def gguf_metadata(path):
    import gguf
    fields = gguf.GGUFReader(path).fields
    prefix = "tokenizer.ggml."
    return {k[len(prefix):]: f.contents() for k, f in fields.items() if k.startswith(prefix)}


def json_of_metadata(m, deepseek_letters):
    if m["model"] in ("llama", "gemma4"):
        parts, tokens = sentencepiece_json(m)
    elif m["model"] == "gpt2":
        parts, tokens = byte_level_json(m, deepseek_letters)
    elif m["model"] == "bert":
        parts, tokens = word_piece_json(m)
    else:
        parts, tokens = unigram_json(m)
    extra = [added(i, tokens[i], y == CONTROL) for i, y in enumerate(m["token_type"]) if y in (CONTROL, USER)]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": extra,
            "post_processor": template(m, tokens), **parts}


# ---- adversarial texts --------------------------------------------------------------------------------------------

SPACES = " \t\n\r\x0b\x0c\x85\xa0\u1680\u2000\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff\u200b\u200c\u200d\u2581"
BITS = ["'s", "'T", "'re", "'VE", "'m", "'ll", "'D", "''", "don't", "I'LL", "0", "123", "1234567", "\u0661\u0662", "\u00bd", "\u2167",
        "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "a\u0301", "e\u0301\u0323", "\u1e9b\u0323",
        "\ufb01", "\ufdfa", "\u0130", "\u00df", "\u1e9e", "\ud7a3", "\u1100\u1161\u11a8", "\u0e33", "\u0915\u094d\u0937", "\u0600\u0661",
        "<0x0A>", "<0xE2>", "\ufffd", "\x00", "\x7f", "\x80", "\xad", "\u202e", "\ue000", "\U000e0041", "\U0010ffff", "\ufffe",
        "\u4e2d\u6587", "\u3042\u30a2", "\ud55c\uad6d\uc5b4", "\u0420\u0443\u0441", "\u0627\u0644", "\u05e9\u05dc", "_", "__init__",
        "http://a.b/c?d=e&f", "\\n", "\r\n", "\n\n\n", "    ", "\t\t", "...", "!?", "$%^&*", "//", "/*", "\u2014", "\u201c", "word", " word",
        "Word", "WORD", "\u0a95\u0acd", "\u10d8", "\u13a0", "\uab70", "\u1c80", "\u1c89", "\ua7cb", "\U00010d50", "\U0001e030",
        "\U00031350", "\U0002ebf0", "\U00016ea0", "\U00011de0", "\U0001ccf0", "\u0897", "\u1734", "\u1885", "\u111c9"]


def adversarial(names, count, seed):
    """Texts that look for the corners; `names` are the tokenizer's added tokens."""
    rng = random.Random(seed)
    yield from ["", " ", "  ", "\n", "\x00", "a", MARK, MARK * 3, " a", "a ", "\u0301", "a" * 5000, " " * 3000, "\n" * 500, "ab" * 2000,
                "\u4e2d" * 2000, "\U0001f600" * 500, "a\u0301" * 1000, "1" * 1000, "!" * 1000, " \n" * 500, "\t " * 500 + "x"]
    every = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
    for i in range(0, len(every), 6000):  # every code point; those of one text are neighbours
        block = every[i:i + 6000]
        if i < 0x34000 or i % 60000 == 0 or 0xE0000 <= i < 0xE1000:
            yield "".join(chr(c) for c in block)
            yield " ".join(chr(c) for c in block[::3])
    names = list(names)
    for i in range(count):
        kind = i % 8
        if kind == 0:
            text = "".join(rng.choice(BITS) for _ in range(rng.randrange(1, 30)))
        elif kind == 1:
            text = "".join(rng.choice(SPACES) if rng.random() < 0.5 else rng.choice(BITS) for _ in range(rng.randrange(1, 40)))
        elif kind == 2:
            text = "".join(chr(rng.choice(every)) for _ in range(rng.randrange(1, 40)))
        elif kind == 3:  # added tokens whole, cut, and run together
            parts = [rng.choice(names) if names else "x" for _ in range(rng.randrange(1, 6))]
            parts = [p if rng.random() < 0.7 else p[:rng.randrange(len(p) + 1)] for p in parts]
            text = "".join(p + rng.choice(["", "", " ", "  ", "\n", "a", "\u00e9", "_", "."]) for p in parts)
        elif kind == 4:
            base = rng.choice(BITS)
            text = base * rng.randrange(1, 60)
        elif kind == 5:  # combining marks in any order
            text = "".join(rng.choice("aeiouAO\u0915\u0e01\u05d0") + "".join(chr(rng.choice(MARKS)) for _ in range(rng.randrange(4)))
                           for _ in range(rng.randrange(1, 12)))
        elif kind == 6:
            text = "".join(rng.choice("ab'1 .\n\t_-\u00e9\u4e2d") for _ in range(rng.randrange(1, 200)))
        else:
            text = "".join(chr(rng.randrange(0x20, 0x250)) for _ in range(rng.randrange(1, 80)))
        yield text


MARKS = [c for c in range(0x110000) if unicodedata.category(chr(c)) in ("Mn", "Mc")]


# ---- comparison ---------------------------------------------------------------------------------------------------

def read_records(path, is_ids):
    data, at, out = open(path, "rb").read(), 0, []
    while at < len(data):
        n, = struct.unpack_from("<I", data, at)
        at += 4
        if n == 0xFFFFFFFF:
            out.append(None)
            continue
        size = 4 * n if is_ids else n
        out.append(list(struct.unpack_from("<%dI" % n, data, at)) if is_ids else data[at:at + n].decode())
        at += size
    return out


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit("%s: %s%s" % (" ".join(command), result.stdout, result.stderr))
    return result.stdout.strip().replace("\n", "; ")


class Comparison:
    def __init__(self, name, oracle, work, tokenizer, table):
        self.name, self.oracle, self.tokenizer, self.table = name, oracle, tokenizer, table
        self.paths = [os.path.join(work, "%s.%s" % (name, s)) for s in ("texts", "ids", "decoded")]
        self.differences = 0
        special = {i: t.content for i, t in tokenizer.get_added_tokens_decoder().items() if t.special}
        self.control = {i for i, t in special.items() if "unk" not in t.lower()}
        self.unknown = [t for t in special.values() if "unk" in t.lower()]

    def report(self, what, text, ours, theirs):
        self.differences += 1
        if self.differences > 5:
            return
        i = next((i for i, (a, b) in enumerate(zip(ours or [], theirs or [])) if a != b), -1)
        print("  %s differs (%s) at %d: text %r... ours %s theirs %s" %
              (self.name, what, i, text[:60], (ours or [])[max(0, i - 2):i + 4], (theirs or [])[max(0, i - 2):i + 4]))

    def encode_theirs(self, texts, special, parse):
        self.tokenizer.encode_special_tokens = not parse
        out = []
        for text in texts:
            try:
                out.append(self.tokenizer.encode(text, add_special_tokens=special).ids)
            except Exception:  # the library's errors have no common class
                out.append(None)
        return out

    def makes_control(self, text, ids):
        """The library's Unigram model makes control tokens of text that spells them out; ours never does."""
        return any(i in self.control for i in ids) or any(u in text for u in self.unknown)

    def compare(self, texts, label):
        texts_path, ids_path, decoded_path = self.paths
        size = write_texts(texts_path, texts)
        before, log = self.differences, ""
        for special, parse in ((True, True), (False, False), (False, True)):
            flags = ("s" if special else "") + ("p" if parse else "") or "-"
            log = run(self.oracle, "encode", self.table, texts_path, ids_path, flags)
            ours, theirs = read_records(ids_path, True), self.encode_theirs(texts, special, parse)
            for text, a, b in zip(texts, ours, theirs):
                if not parse and b and self.makes_control(text, b):
                    if self.makes_control("", a):
                        self.report("text became a control token", text, a, b)
                elif a != b:
                    self.report("ids, flags " + flags, text, a, b)
        ids = [x or [] for x in theirs]
        for skip in (False, True):
            with open(ids_path, "wb") as f:
                for x in ids:
                    f.write(struct.pack("<%dI" % (len(x) + 1), len(x), *x))
            run(self.oracle, "decode", self.table, ids_path, decoded_path, "k" if skip else "-")
            for x, a in zip(ids, read_records(decoded_path, False)):
                b = self.tokenizer.decode(x, skip_special_tokens=skip) if x else ""
                if a != b:
                    self.report("decoded, skip %s" % skip, str(x[:8]), a, b)
        print("%-20s %-12s %6d texts, %8d bytes: %d differences   [%s]" %
              (self.name, label, len(texts), size, self.differences - before, log), flush=True)

    def random_ids(self, seed):
        """Decoding of ids that no text gives."""
        rng, n = random.Random(seed), self.tokenizer.get_vocab_size()
        ids = [[rng.randrange(n) for _ in range(rng.randrange(1, 30))] for _ in range(1500)]
        byte_ids = [self.tokenizer.token_to_id("<0x%02X>" % b) for b in range(256)]
        if None not in byte_ids:
            ids += [[rng.choice(byte_ids[0xC0:] + byte_ids[0x80:0xC0] + [rng.randrange(n)]) for _ in range(rng.randrange(1, 12))]
                    for _ in range(1500)]
        _, ids_path, decoded_path = self.paths
        before = self.differences
        for skip in (False, True):
            with open(ids_path, "wb") as f:
                for x in ids:
                    f.write(struct.pack("<%dI" % (len(x) + 1), len(x), *x))
            run(self.oracle, "decode", self.table, ids_path, decoded_path, "k" if skip else "-")
            for x, a in zip(ids, read_records(decoded_path, False)):
                b = self.tokenizer.decode(x, skip_special_tokens=skip)
                if a != b:
                    self.report("decoded random ids, skip %s" % skip, str(x[:12]), a, b)
        print("%-20s %-12s %6d lists: %d differences" % (self.name, "random ids", len(ids), self.differences - before))

    def compare_vectors(self, inp, out):
        texts = open(inp, encoding="utf-8", newline="").read().split("\n__ggml_vocab_test__\n")
        expected = [[int(x) for x in line.split()] for line in open(out).read().split("\n")][:len(texts)]
        texts_path, ids_path, _ = self.paths
        write_texts(texts_path, texts)
        run(self.oracle, "encode", self.table, texts_path, ids_path, "-")
        bad = 0
        for text, a, b in zip(texts, read_records(ids_path, True), expected):
            if a != b:
                bad += 1
                self.report("packaged vector", text, a, b)
        print("%-20s %-12s %6d texts: %d differences" % (self.name, "vectors", len(texts), bad))


def prepare(name, paths, a):
    """(path of the tokenizer.json that the library reads, path of our table, metadata or none)"""
    table = os.path.join(a.work, name + ".bin")
    if not paths[0].endswith(".gguf"):
        run(a.oracle, "compile", table, *paths)
        return paths[0], table
    metadata = gguf_metadata(paths[0])
    json_path = os.path.join(a.work, name + ".json")
    with open(json_path, "w") as f:
        json.dump(json_of_metadata(metadata, a.deepseek_letters), f, ensure_ascii=False)
    if metadata["model"] == "t5":
        run(a.oracle, "compile", table, json_path)
        return json_path, table
    source = os.path.join(a.work, name + ".meta.json")
    with open(source, "w") as f:
        json.dump({k: v for k, v in metadata.items() if k != "precompiled_charsmap"}, f, ensure_ascii=False)
    run(a.oracle, "compile-gguf", table, source)
    return json_path, table


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("tokenizers", nargs="+")
    ap.add_argument("--oracle", required=True)
    ap.add_argument("--work", required=True)
    ap.add_argument("--bytes", type=int, default=5_500_000)
    ap.add_argument("--adversarial", type=int, default=2000)
    ap.add_argument("--llama-vocab", help="llama.cpp's src/llama-vocab.cpp, for the deepseek-llm expression")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--only")
    a = ap.parse_args()
    os.makedirs(a.work, exist_ok=True)
    a.deepseek_letters = None
    if a.llama_vocab:
        found = re.search(r'"(\\\\s\?\[A-Za-z\u00b5[^"]*)"', open(a.llama_vocab, encoding="utf-8").read())
        a.deepseek_letters = found.group(1).replace("\\\\", "\\")
    from tokenizers import Tokenizer
    texts = [t for t in corpus(a.bytes, a.seed, "/")] if a.bytes else []
    total = 0
    for argument in a.tokenizers:
        name, paths = argument.split("=", 1)
        paths = paths.split(",")
        if a.only and name not in a.only.split(","):
            continue
        json_path, table = prepare(name, paths, a)
        tokenizer = Tokenizer.from_file(json_path)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        c = Comparison(name, a.oracle, a.work, tokenizer, table)
        if os.path.exists(paths[0] + ".inp"):
            c.compare_vectors(paths[0] + ".inp", paths[0] + ".out")
        names = [t.content for t in tokenizer.get_added_tokens_decoder().values()]
        c.compare(list(adversarial(names, a.adversarial, a.seed)), "adversarial")
        c.random_ids(a.seed)
        if texts:
            c.compare(texts, "corpus")
        total += c.differences
    print("total: %d differences" % total)
    sys.exit(1 if total else 0)


if __name__ == "__main__":
    main()
