#!/usr/bin/env python3
"""Writes a corpus of texts in many languages, from what a Debian machine has: no network, the same texts on the same machine.

    tools/make_text_corpus.py OUT [--bytes N] [--seed S] [--root DIR]

Translations (gettext catalogs in /usr/share/locale, every language alike), manual pages in their languages, sources in
Python and C, and seeded random Unicode. Each text is a uint32 length (little-endian) and UTF-8 bytes, as
tests/oracles/tokenizer_oracle.cpp reads them.
"""
import argparse
import gzip
import os
import random
import struct
import unicodedata


def files_under(folder, suffixes):
    found = []
    for path, folders, names in os.walk(folder):
        folders.sort()
        found += [os.path.join(path, n) for n in sorted(names) if n.endswith(suffixes)]
    return found


def catalog_messages(path):
    """The translations of a .mo file (GNU gettext manual, "The Format of GNU MO Files")."""
    data = open(path, "rb").read()
    if len(data) < 20:
        return []
    order = "<" if data[:4] == b"\xde\x12\x04\x95" else ">"
    _, _, count, _, table = struct.unpack_from(order + "5I", data)
    out = []
    for i in range(count):
        length, offset = struct.unpack_from(order + "2I", data, table + 8 * i)
        try:
            out += [m for m in data[offset:offset + length].decode("utf-8").split("\0") if m]
        except UnicodeDecodeError:
            return []  # an older encoding
    return out[1:]  # the first is the header


def translations(root, budget, rng):
    """About the same number of bytes of each language."""
    languages = {}
    for path in files_under(os.path.join(root, "usr/share/locale"), (".mo",)):
        languages.setdefault(path.split("/locale/")[1].split("/")[0], []).append(path)
    share = budget // max(1, len(languages))
    for language in sorted(languages):
        left, paths = share, languages[language]
        rng.shuffle(paths)
        for path in paths:
            messages = catalog_messages(path)
            rng.shuffle(messages)
            while messages and left > 0:
                n = rng.choice((1, 1, 2, 5, 20))  # single messages and pages
                text, messages = "\n".join(messages[:n]), messages[n:]
                left -= len(text.encode())
                yield text
            if left <= 0:
                break


def chunks(text, rng):
    while text:
        n = rng.choice((80, 400, 2000, 4000))
        yield text[:n]
        text = text[n:]


def documents(paths, budget, rng):
    rng.shuffle(paths)
    for path in paths:
        if budget <= 0:
            return
        try:
            data = (gzip.open if path.endswith(".gz") else open)(path, "rb").read(30000)
            text = data.decode("utf-8", "strict" if len(data) < 30000 else "ignore")
        except (UnicodeDecodeError, OSError, EOFError):
            continue
        for chunk in chunks(text, rng):
            budget -= len(chunk.encode())
            yield chunk


def random_unicode(budget, rng):
    assigned = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF and unicodedata.category(chr(c)) != "Cn"]
    while budget > 0:
        start = rng.randrange(len(assigned))
        block = assigned[start:start + rng.choice((20, 200, 2000))]  # mostly one script
        pool = block + [0x20] * (len(block) // 5 + 1) + [0x0A, 0x09, 0x27, 0x2E, 0x30]
        text = "".join(chr(rng.choice(pool)) for _ in range(rng.choice((5, 50, 500))))
        budget -= len(text.encode())
        yield text


def corpus(size, seed, root):
    rng = random.Random(seed)
    share = lambda name: os.path.join(root, "usr/share", name)
    yield from translations(root, size // 2, rng)
    yield from documents(files_under(share("man"), (".gz",)), size // 6, rng)
    yield from documents(files_under(os.path.join(root, "usr/lib"), (".py",)), size // 8, rng)
    yield from documents(files_under(os.path.join(root, "usr/include"), (".h",)), size // 12, rng)
    yield from random_unicode(size // 8, rng)


def write_texts(path, texts):
    total = 0
    with open(path, "wb") as f:
        for text in texts:
            data = text.encode()
            f.write(struct.pack("<I", len(data)) + data)
            total += len(data)
    return total


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("out")
    ap.add_argument("--bytes", type=int, default=5_500_000)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--root", default="/")
    a = ap.parse_args()
    print("%d bytes of text" % write_texts(a.out, corpus(a.bytes, a.seed, a.root)))


if __name__ == "__main__":
    main()
