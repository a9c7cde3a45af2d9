#!/usr/bin/env python3
"""Predicted beside measured on a machine whose speed changes from minute to minute: a table for perf/.

    tools/predicted_rounds.py [--rounds N] [--seconds S] [--bin FOLDER] [CHECKPOINT...]

In every round each checkpoint is calibrated for, compiled with those figures and measured at once, so that what is
compared lies seconds apart. Printed are the medians over the rounds of what was predicted, of the fastest step and of
their ratio, and the ratios' range. Without checkpoints: those of build/models. Four rounds of three models take some
nine minutes on two cores that nobody else uses; half of a round is steps, the rest calibration and compilers.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent


def output_of(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("%s ended with %d: %s" % (" ".join(map(str, command)), done.returncode, done.stderr.strip()))
    return done.stdout


def measure(folder, checkpoint, seconds):
    """(step, predicted ms, fastest ms) of each case, by figures that are seconds old."""
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        tunedb, bundle = scratch / "tunedb", scratch / "bundle"
        output_of([folder / "plowc", "tune", "calibrate", "--seconds", seconds, "--tunedb", tunedb])
        output_of([folder / "plowc", "--hf-dir", checkpoint, "--arch", "x86-64", "--max-ctx", 2048, "--tunedb", tunedb,
                   "--out", bundle])
        table = output_of([folder / "predicted_bench", 1, bundle])
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return [(row[1], float(row[2]), float(row[3])) for row in rows]


def name_of(checkpoint):
    return checkpoint.parent.name if checkpoint.name == "checkpoint" else checkpoint.name


def table_of(found):
    """Rows of Markdown from {(model, step): [(predicted ms, fastest ms) of each round]}."""
    lines = ["| model | step | predicted ms | fastest ms | fastest / predicted | of all rounds |", "|---|---|---|---|---|---|"]
    within = 0
    for (model, step), times in found.items():
        ratios = sorted(fastest / predicted for predicted, fastest in times)
        median = statistics.median(ratios)
        within += abs(median - 1) <= 0.15
        lines.append("| %s | %s | %.2f | %.2f | %.2f | %.2f to %.2f |" % (
            model, step, statistics.median(p for p, _ in times), statistics.median(f for _, f in times), median, ratios[0],
            ratios[-1]))
    lines.append("\nWithin 15 per cent: %d of %d." % (within, len(found)))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=12, help="of a calibration")
    parser.add_argument("--bin", type=pathlib.Path, default=REPOSITORY / "build/release/bin")
    parser.add_argument("checkpoints", type=pathlib.Path, nargs="*")
    options = parser.parse_args()
    checkpoints = options.checkpoints or sorted((REPOSITORY / "build/models").glob("*/checkpoint"))
    if not checkpoints:
        sys.exit("no checkpoint in build/models: scripts/test.sh fetches three")
    found = {}
    for round_ in range(options.rounds):
        for checkpoint in checkpoints:
            began = time.monotonic()
            for step, predicted, fastest in measure(options.bin, checkpoint, options.seconds):
                found.setdefault((name_of(checkpoint), step), []).append((predicted, fastest))
            print("round %d of %d, %s: %.0f s" % (round_ + 1, options.rounds, name_of(checkpoint), time.monotonic() - began),
                  file=sys.stderr, flush=True)
    print(table_of(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
