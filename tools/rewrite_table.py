#!/usr/bin/env python3
"""What each rewrite rule does to a model: a table for perf/.

    rewrite_table.py BIN CHECKPOINT [--bench] [--repeat N] [plowc options ...]

BIN is the folder of plowc and plowrt. Compiles the checkpoint with all rules, with none, and with each rule that fired
switched off, and prints a Markdown table: operators, packets, waits in the longest chain, bytes of the arena, predicted time of a
decode step. With --bench also measured medians of decode (1 row) and prefill (512 tokens), turn by turn over all bundles, so
that what else the machine does meets all of them; the spread is that of the turns. Measure on a quiet machine.
"""
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def compile_bundle(binaries, checkpoint, out, flags, options):
    text = output(os.path.join(binaries, "plowc"), "--json", *flags, *options, checkpoint, "--out", out)
    return [e for e in map(json.loads, text.splitlines()) if e["event"] == "done"][0]


def chain(log):
    """Waits of all parts, and rules that fired with their counts; nothing when the rewriter was off."""
    rows = re.findall(r"^(?:layer \d+|outside the layers)(?: and (\d+) more like it)?: .*chain (\d+) -> (\d+) waits", log, re.M)
    before = sum(int(b) * (1 + int(more or 0)) for more, b, _ in rows)
    after = sum(int(a) * (1 + int(more or 0)) for more, _, a in rows)
    fired = re.search(r"rules that fired\n(.*?)\n\n", log + "\n\n", re.S)
    return before, after, dict(re.findall(r"^  (\w+) +(\d+)  ", fired.group(1), re.M)) if fired else {}


def describe(binaries, checkpoint, folder, name, flags, options):
    out = os.path.join(folder, name + ".plow")
    done = compile_bundle(binaries, checkpoint, out, flags, options)
    plowc = os.path.join(binaries, "plowc")
    log = output(plowc, "explain", out, "--stage", "rewrite")
    memory = output(plowc, "explain", out, "--stage", "memory")
    graph = output(plowc, "explain", out, "--stage", "graph")
    operators = len(re.findall(r"^%\d+ = (?!weight|constant|kv_state|step_input)\w+\(", graph, re.M))
    before, after, fired = chain(log)
    arena = re.findall(r"arena[^\n]*?(\d[\d.]* [KMG]?i?B)", memory)
    return {"name": name, "bundle": out, "operators": operators, "packets": done["packets"], "before": before, "waits": after,
            "arena": ", ".join(arena), "predicted": done["predicted_decode_ns"] / 1e6, "seconds": done["seconds"],
            "fired": fired, "decode": [], "prefill": []}


def bench(binaries, row):
    plowrt = os.path.join(binaries, "plowrt")
    decode = json.loads(output(plowrt, "bench", "decode", "--json", "--assets", row["bundle"], "--rows", "1", "--repeat", "3"))
    prefill = json.loads(output(plowrt, "bench", "prefill", "--json", "--assets", row["bundle"], "--ctx", "512", "--repeat", "3"))
    row["decode"].append(decode["step_ms"])
    row["prefill"].append(prefill["prompt_ms"])


def measured(values):
    if not values:
        return "-"
    middle = statistics.median(values)
    return "%.2f (%.1f%%)" % (middle, 100 * (max(values) - min(values)) / middle)


def main():
    arguments = sys.argv[1:]
    if len(arguments) < 2:
        print(__doc__)
        return 2
    binaries, checkpoint, rest = arguments[0], arguments[1], arguments[2:]
    wants_bench = "--bench" in rest
    repeat = int(rest[rest.index("--repeat") + 1]) if "--repeat" in rest else 5
    options = [o for i, o in enumerate(rest) if o not in ("--bench", "--repeat") and (i == 0 or rest[i - 1] != "--repeat")]
    with tempfile.TemporaryDirectory() as folder:
        rows = [describe(binaries, checkpoint, folder, "all", [], options)]
        rows.append(describe(binaries, checkpoint, folder, "none", ["--no-rewrite"], options))
        rows[1]["waits"] = rows[0]["before"]
        for rule in sorted(rows[0]["fired"]):
            rows.append(describe(binaries, checkpoint, folder, rule, ["--no-rewrite=" + rule], options))
        for _ in range(repeat if wants_bench else 0):
            for row in rows:
                bench(binaries, row)
        print("| rules | fired | operators | packets | waits | arena | predicted decode ms | decode ms | prefill ms |")
        print("|---|---|---|---|---|---|---|---|---|")
        for row in rows:
            label = row["name"] if row["name"] in ("all", "none") else "without `%s`" % row["name"]
            fired = sum(map(int, row["fired"].values()))
            print("| %s | %d | %d | %d | %d | %s | %.3f | %s | %s |" % (
                label, fired, row["operators"], row["packets"], row["waits"], row["arena"], row["predicted"],
                measured(row["decode"]), measured(row["prefill"])))
        print("\nfired with all rules: " + ", ".join("%s %s" % item for item in rows[0]["fired"].items()))
        print("compiled in %.1f s" % rows[0]["seconds"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
