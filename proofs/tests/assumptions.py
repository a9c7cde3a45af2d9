#!/usr/bin/env python3
"""assumptions.py COQC COMPILED PROOFS: nothing in the proofs is assumed.

Compares what `Print Assumptions` says of every theorem in theories/Assumptions.v with theories/Assumptions.golden, and refuses
words that leave a proof out. Both are seen to notice before the proofs are believed.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

# What leaves a proof out, or makes a statement true by decree.
FORBIDDEN = re.compile(r"\b(Admitted|admit|Axiom|Axioms|Parameter|Parameters|Conjecture|bypass_check|Unset\s+Guard\s+Checking)\b")


def without_comments(text):
    """Coq's comments nest."""
    out, depth, i = [], 0, 0
    while i < len(text):
        if text.startswith("(*", i):
            depth, i = depth + 1, i + 2
        elif text.startswith("*)", i) and depth > 0:
            depth, i = depth - 1, i + 2
        else:
            if depth == 0 or text[i] == "\n":
                out.append(text[i])
            i += 1
    return "".join(out)


def forbidden_words(folder):
    found = []
    for path in sorted(folder.rglob("*.v")):
        for number, line in enumerate(without_comments(path.read_text()).splitlines(), 1):
            for word in FORBIDDEN.findall(line):
                found.append(f"{path.name}:{number}: {word}")
    return found


def printed_assumptions(coqc, compiled, source):
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "Assumptions.v"
        copy.write_text(source)
        run = subprocess.run([coqc, "-q", "-Q", str(compiled), "Plow", str(copy)], capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"assumptions.py: {run.stderr}")
        names = re.findall(r"Print Assumptions (\w+)\.", source)
        # "Closed under the global context", or "Axioms:" and a list
        parts = re.split(r"^(?=Closed under|Axioms:|Section Variables:)", run.stdout, flags=re.M)[1:]
        return "".join(f"{name}: {part}" for name, part in zip(names, parts, strict=True))


def problems(coqc, compiled, proofs):
    theories = proofs / "theories"
    found = forbidden_words(proofs)
    printed = printed_assumptions(coqc, compiled, (theories / "Assumptions.v").read_text())
    golden = (theories / "Assumptions.golden").read_text()
    if printed != golden:
        found.append(f"Print Assumptions says\n{printed}instead of\n{golden}")
    return found


def main():
    coqc, compiled, proofs = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    # A word that must be found, and an axiom that must show, each time before the proofs are believed.
    with tempfile.TemporaryDirectory() as folder:
        bad = pathlib.Path(folder) / "Bad.v"
        bad.write_text("(* Admitted (* nested *) in a comment is nothing *)\nLemma a : False. Admitted.\n")
        if forbidden_words(pathlib.Path(folder)) != ["Bad.v:2: Admitted"]:
            sys.exit("assumptions.py: a left-out proof is not noticed")
    assumed = printed_assumptions(coqc, compiled, "Axiom a : False.\nPrint Assumptions a.\n")
    if not assumed.startswith("a: Axioms:"):
        sys.exit("assumptions.py: an axiom is not noticed")
    found = problems(coqc, compiled, proofs)
    for problem in found:
        print(problem)
    sys.exit(1 if found else 0)


main()
