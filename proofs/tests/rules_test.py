#!/usr/bin/env python3
"""rules_test.py PROOFS RULES...: a rule that nobody proved is none of those that are said to be proved, and keeps nobody from building;
a rule whose text changes has to be proved anew.
"""
import pathlib
import subprocess
import sys
import tempfile

# Nothing knows its function, its operator or its condition; the last one could be stated, and is wrong.
SEEDED = """
PLOW_RULE(seeded, no_function, kExact, "scale[factor=f](x)", "scale[factor=twice(f)](x)", "", "")
PLOW_RULE(seeded, no_operator, kExact, "conv(x, w)", "x", "", "")
PLOW_RULE(seeded, no_condition, kExact, "add(x, y)", "x", "small(y)", "")
PLOW_RULE(seeded, wrong, kExact, "add(x, y)", "x", "", "")
"""


def statements(proofs, rules, *options):
    run = subprocess.run(
        [sys.executable, proofs / "rules/statements.py", *rules, *options], capture_output=True, text=True, check=True)
    return run.stdout, run.stderr


def expect(holds, what):
    if not holds:
        sys.exit(f"rules_test.py: {what}")


def main():
    proofs, rules = pathlib.Path(sys.argv[1]), sys.argv[2:]
    proved = ("--proved", proofs / "rules/Sound.v")
    said, off = statements(proofs, rules)
    expect(off == "" and statements(proofs, rules, *proved)[1] == "", f"a rule of the table is not proved: {off}")
    with tempfile.TemporaryDirectory() as folder:
        seeded = pathlib.Path(folder) / "seeded.def"
        seeded.write_text(SEEDED)
        with_seeded, off = statements(proofs, [*rules, seeded])
        for name in ("no_function", "no_operator", "no_condition"):
            expect(f"the rule {name} has no statement" in off, f"{name} is not named")
        expect("says_wrong" in with_seeded, "a rule that can be stated is not")
        every, off = statements(proofs, [*rules, seeded], *proved)
        for name in ("no_function", "no_operator", "no_condition", "wrong"):
            expect(name not in every and f"the rule {name} has no theorem and is off" in off, f"{name} counts as proved")
        # The same rule with another right side claims something else.
        changed = pathlib.Path(folder) / "changed.def"
        text = next(pathlib.Path(r).read_text() for r in rules if "scale_one" in pathlib.Path(r).read_text())
        changed.write_text(text.replace('"one(f)"', '""'))
        expect(changed.read_text() != text, "no rule was changed")
        expect(statements(proofs, [changed])[0] not in said, "a changed rule claims the same")


main()
