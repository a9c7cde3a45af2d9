#!/usr/bin/env python3
"""about.py CHECKER.ml ASSUMPTIONS.v VERSION: writes on standard output, as OCaml, what a receipt says of the verifier itself: its version,
the digest of the checker that Rocq extracted, and the theorems about bundles that it accepts.
"""
import hashlib
import pathlib
import re
import sys


def main():
    checker, assumptions, version = sys.argv[1:]
    theorems = re.findall(r"@(accepted_\w+)", pathlib.Path(assumptions).read_text(encoding="utf-8"))
    print(f'let version = "{version}"')
    print(f'let checker_sha256 = "{hashlib.sha256(pathlib.Path(checker).read_bytes()).hexdigest()}"')
    print("let theorems = [" + "; ".join(f'"{name}"' for name in sorted(theorems)) + "]")


main()
