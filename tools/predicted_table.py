#!/usr/bin/env python3
"""Predicted beside measured: runs `plowrt bench` on bundles and prints a table in Markdown.

    tools/predicted_table.py --plowrt build/release/bin/plowrt BUNDLE...

Each bundle must have been compiled with this machine's calibrated part (plowc tune calibrate, then plowc). The measured time is
the fastest repeat: what else runs on the machine can only make a repeat longer. A case that bench refuses, because the repeats
differ too much, is shown as refused; it is not left out.
"""

import argparse
import json
import subprocess

CASES = [("decode", "1 row", ["--rows", "1", "--ctx", "128"]), ("decode", "4 rows", ["--rows", "4", "--ctx", "128"]),
         ("decode", "16 rows", ["--rows", "16", "--ctx", "128"]),
         ("prefill", "128 rows", ["--ctx", "128"]), ("prefill", "1,024 rows", ["--ctx", "1024"])]


def run_case(plowrt, bundle, kind, options, repeat, steps):
    command = [plowrt, "bench", kind, "--assets", bundle, "--json", "--repeat", str(repeat)] + options
    if kind == "decode":
        command += ["--steps", str(steps)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None, done.stderr.strip()
    return json.loads(done.stdout), ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundles", nargs="+")
    parser.add_argument("--plowrt", default="build/release/bin/plowrt")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--cases", default="", help="only cases whose name contains one of these, comma separated")
    args = parser.parse_args()
    wanted = [word for word in args.cases.split(",") if word]
    print("| model | step | predicted ms | measured ms | measured / predicted | spread |")
    print("|---|---|---|---|---|---|")
    for bundle in args.bundles:
        for kind, name, options in CASES:
            if wanted and not any(word in f"{kind} {name}" for word in wanted):
                continue
            result, error = run_case(args.plowrt, bundle, kind, options, args.repeat, args.steps)
            if result is None:
                print(f"| {bundle.rstrip('/').split('/')[-1]} | {kind}, {name} | | | refused: {error} | |", flush=True)
                continue
            predicted = result["predicted_ms"]
            ratio = f"{result['best_ms'] / predicted:.2f}" if predicted else "no prediction"
            print(f"| {result['model']} | {kind}, {name} | {predicted or 0:.2f} | {result['best_ms']:.2f} | {ratio} | "
                  f"{result['spread'] * 100:.0f}% |", flush=True)


if __name__ == "__main__":
    main()
