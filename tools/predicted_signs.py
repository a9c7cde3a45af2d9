#!/usr/bin/env python3
"""How often the cost model knows which of two plans is faster: a table for perf/.

    plowc tune BUNDLE --json | predicted_signs.py

Of the pairs that a sweep timed (a candidate and the plan before it) those count that differ by more than either's spread.
"""
import json
import sys


def main():
    if len(sys.argv) > 1:
        print(__doc__)
        return 2
    trials = [t for t in json.load(sys.stdin)["trials"] if t["timed"]]
    rows, right = [], 0
    for trial in trials:
        race = trial["race"]
        measured = race["ns"] / race["before_ns"] - 1
        spread = max(race["spread"], race["before_spread"])
        if max(race["ns"], race["before_ns"]) <= (1 + spread) * min(race["ns"], race["before_ns"]):
            continue
        predicted = trial["predicted_ns"] / trial["predicted_before_ns"] - 1
        is_right = predicted * measured > 0
        right += is_right
        rows.append("| %s | %+.2f%% | %+.2f%% | %.1f%% | %s |" % (
            trial["setting"], 100 * predicted, 100 * measured, 100 * spread, "right" if is_right else "wrong"))
    print("| candidate | predicted | measured | spread | sign |\n|---|---|---|---|---|")
    print("\n".join(rows))
    print("\n%d pairs were timed, %d differ by more than the spread, %d predicted with the right sign" % (
        len(trials), len(rows), right))
    return 0


if __name__ == "__main__":
    sys.exit(main())
