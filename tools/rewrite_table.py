#!/usr/bin/env python3
"""What each rewrite rule does to a model: a table for perf/.

    rewrite_table.py BIN CHECKPOINT [--only all,none,RULE,...] [--tokens] [--bench] [--repeat N] [plowc options ...]

BIN is the folder of plowc and plowrt. Compiles the checkpoint with all rules, with none, and with each rule that fired
switched off (or those of --only), and prints a Markdown table: operators, packets, waits in the longest chain, bytes of the
arena (the program of few rows and that of many), predicted times of a decode step (1 row after 128 tokens) and of 512 tokens
of a prompt.

With --tokens the greedy answers to a few prompts are compared with those of the bundle without rewriting. Where they part,
both tokens' log probabilities are printed: bodies differ in the last bits, and near a tie that decides.

With --bench also measured medians of decode (1 row) and prefill (512 tokens), turn by turn over all bundles, every second turn
backwards, so that what else the machine does meets all of them; the spread is that of the turns. Measure on a quiet machine.
"""
import argparse
import hashlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

PROMPTS = ["What is a prime number?", "Write a function that adds two numbers.", "The sun rises in the east and",
           "Once upon a time there was a little", "1 2 3 4 5 6 7", "Explain why the sky is blue in one sentence."]


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def chain(log):
    """Waits of all parts, and rules that fired with their counts; nothing when the rewriter was off."""
    rows = re.findall(r"^(?:layer \d+|outside the layers)(?: and (\d+) more like it)?: .*chain (\d+) -> (\d+) waits", log, re.M)
    before = sum(int(b) * (1 + int(more or 0)) for more, b, _ in rows)
    after = sum(int(a) * (1 + int(more or 0)) for more, _, a in rows)
    fired = re.search(r"rules that fired\n(.*?)\n\n", log + "\n\n", re.S)
    return before, after, dict(re.findall(r"^  (\w+) +(\d+)  ", fired.group(1), re.M)) if fired else {}


def predictions(bundle):
    """Milliseconds of one decode step and of 512 tokens, from the build record in model.pkt (bundle/predictions.h)."""
    with open(os.path.join(bundle, "model.pkt"), "rb") as file:
        record = file.read()
    at = record.index(b'"predictions":') + len(b'"predictions":')
    grids = json.JSONDecoder().raw_decode(record[at:].decode("utf-8", "replace"))[0]

    def nearest(rows, context, one_sequence):
        fitting = [g for g in grids if g["one_sequence"] == one_sequence and g["samples"] and g["rows"][-1] >= rows]
        grid = fitting[0]
        r = min(range(len(grid["rows"])), key=lambda i: abs(grid["rows"][i] - rows))
        c = min(range(len(grid["contexts"])), key=lambda i: abs(grid["contexts"][i] - context))
        return grid["ns"][r * len(grid["contexts"]) + c] / 1e6

    return nearest(1, 128, False), nearest(512, 0, True)


def describe(binaries, checkpoint, folder, name, options):
    out = os.path.join(folder, name + ".plow")
    plowc = os.path.join(binaries, "plowc")
    flags = {"all": [], "none": ["--no-rewrite"]}.get(name, ["--no-rewrite=" + name])
    events = output(plowc, "--json", *flags, *options, checkpoint, "--out", out)
    done = [e for e in map(json.loads, events.splitlines()) if e["event"] == "done"][0]
    graph = output(plowc, "explain", out, "--stage", "graph")
    memory = output(plowc, "explain", out, "--stage", "memory")
    before, after, fired = chain(output(plowc, "explain", out, "--stage", "rewrite"))
    decode, prefill = predictions(out)
    return {"name": name, "bundle": out, "packets": done["packets"], "seconds": done["seconds"],
            "operators": len(re.findall(r"^%\d+ = (?!weight|constant|kv_state|step_input)\w+\(", graph, re.M)),
            "before": before, "waits": after, "fired": fired, "predicted": (decode, prefill),
            "arena": re.findall(r"^arena of (\d+) bytes", memory, re.M), "decode": [], "prefill": []}


def share_tapes(rows):
    """Bundles with the same weights get the same file: where its pages lie in memory costs or saves a step several per cent."""
    first = {}
    for row in rows:
        tape = os.path.join(row["bundle"], "weights.tape")
        with open(tape, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest in first:
            os.remove(tape)
            os.link(first[digest], tape)
        first.setdefault(digest, tape)


def bench(binaries, row):
    """One turn of a bundle. plowrt gives no figure when the machine turns out to be busy; then the turn has none."""
    for what, key, size in (("decode", "step_ms", ["--rows", "1"]), ("prefill", "prompt_ms", ["--ctx", "512"])):
        command = [os.path.join(binaries, "plowrt"), "bench", what, "--json", "--assets", row["bundle"], "--repeat", "3", *size]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode == 0:
            row[what].append(json.loads(run.stdout)[key])
        else:
            print(run.stderr.strip(), file=sys.stderr)


def measured(values):
    if not values:
        return "-"
    middle = statistics.median(values)
    return "%.2f (%.1f%%)" % (middle, 100 * (max(values) - min(values)) / middle)


def answers(binaries, bundle, n_tokens):
    for prompt in PROMPTS:
        yield json.loads(output(os.path.join(binaries, "plowrt"), "run", "--assets", bundle, "--prompt", prompt, "--raw",
                                "--temperature", "0", "--ignore-eos", "--max-tokens", str(n_tokens), "--json"))


def compare_tokens(binaries, rows, n_tokens=64):
    """A line a bundle: how many answers are those of the bundle without rewriting."""
    plain = list(answers(binaries, next(r for r in rows if r["name"] == "none")["bundle"], n_tokens))
    for row in rows:
        if row["name"] == "none":
            continue
        same, partings = 0, []
        for expected, got in zip(plain, answers(binaries, row["bundle"], n_tokens)):
            differ = [i for i, (a, b) in enumerate(zip(expected["tokens"], got["tokens"])) if a != b]
            same += not differ
            if differ:
                partings.append("token %d (log probabilities %.4f and %.4f)" % (
                    differ[0], expected["logprobs"][differ[0]], got["logprobs"][differ[0]]))
        print("%s: %d of %d answers of %d tokens as without rewriting%s" % (
            row["name"], same, len(plain), n_tokens, "; parted at " + ", ".join(partings) if partings else ""))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("binaries")
    parser.add_argument("checkpoint")
    parser.add_argument("--only")
    parser.add_argument("--tokens", action="store_true")
    parser.add_argument("--bench", action="store_true")
    parser.add_argument("--repeat", type=int, default=5)
    given, options = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        def row_of(name):
            return describe(given.binaries, given.checkpoint, folder, name, options)

        rows = [row_of(name) for name in (given.only.split(",") if given.only else ["all", "none"])]
        if not given.only:
            rows += [row_of(rule) for rule in sorted(rows[0]["fired"])]
        for row in rows:
            if row["name"] == "none":
                row["waits"] = rows[0]["before"]
        if given.bench:
            share_tapes(rows)
        for turn in range(given.repeat if given.bench else 0):
            for row in rows if turn % 2 == 0 else reversed(rows):
                bench(given.binaries, row)
        print("| rules | fired | operators | packets | waits | arena | predicted decode, prefill ms | decode ms | prefill ms |")
        print("|---|---|---|---|---|---|---|---|---|")
        for row in rows:
            label = row["name"] if row["name"] in ("all", "none") else "without `%s`" % row["name"]
            print("| %s | %d | %d | %d | %d | %s | %.3f, %.1f | %s | %s |" % (
                label, sum(map(int, row["fired"].values())), row["operators"], row["packets"], row["waits"],
                " + ".join(row["arena"]), *row["predicted"], measured(row["decode"]), measured(row["prefill"])))
        print("\nfired with all rules: " + ", ".join("%s %s" % item for item in rows[0]["fired"].items()))
        print("compiled in %.1f s" % rows[0]["seconds"])
        if given.tokens:
            compare_tokens(given.binaries, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
