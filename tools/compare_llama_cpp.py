#!/usr/bin/env python3
"""Tokens a second of plow beside llama.cpp, on one machine, from the same GGUF files, turn by turn: a table for perf/.

    tools/compare_llama_cpp.py --llama-bench PATH [--bin FOLDER] [--rounds N] [--threads 1,2] [--depths 0,4096]
                               [--prompt 512] [--raw FILE] FILE.gguf...

In every round each file, number of threads and depth is measured by both programs, seconds apart. llama.cpp runs with and
without flash attention, and its better median counts. Printed are medians over the rounds, their range, and the ratio
of the medians. Every measurement is one line of JSON in --raw.

llama-bench is not fetched. The source package llama-cpp-python holds llama.cpp; in its folder vendor/llama.cpp:
    cmake -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_SERVER=OFF
    ninja -C build llama-bench
tools/make_quantised_gguf.py makes files of one type of weights.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
DECODE_STEPS = 32


def run(command):
    """What the command prints; None when it ended with an error, which is shown."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode == 0:
        return done.stdout
    print("%s ended with %d: %s" % (" ".join(map(str, command)), done.returncode, done.stderr.strip()[-500:]),
          file=sys.stderr, flush=True)
    return None


class Plow:
    name = "plow"

    def __init__(self, folder, scratch, max_context):
        self.folder, self.scratch, self.max_context = folder, scratch, max_context
        self.bundles = {}

    def bundle(self, model, threads):
        key = (model, threads)
        if key not in self.bundles:
            out = self.scratch / ("%s.%d.plow" % (model.stem, threads))
            made = run([self.folder / "plowc", model, "--workers", threads, "--max-ctx", self.max_context, "--slots", 1,
                        "--out", out])
            if made is None:
                sys.exit(1)
            self.bundles[key] = out
        return self.bundles[key]

    def measure(self, model, threads, kind, size):
        command = [self.folder / "plowrt", "bench", kind, "--assets", self.bundle(model, threads), "--json", "--ctx", max(size, 1)]
        if kind == "decode":
            command += ["--rows", 1, "--steps", DECODE_STEPS]
        printed = run(command)
        return [json.loads(printed)["tokens_per_second"]] if printed else []


class LlamaCpp:
    def __init__(self, path, flash):
        self.path, self.flash = path, flash
        self.name = "llama.cpp -fa %d" % flash
        self.version = ""

    def measure(self, model, threads, kind, size):
        work = ["-p", 0, "-n", DECODE_STEPS, "-d", size] if kind == "decode" else ["-p", size, "-n", 0]
        printed = run([self.path, "-m", model, "-t", threads, "-fa", self.flash, "-r", 3, "-o", "json"] + work)
        if not printed:
            return []
        (entry,) = json.loads(printed)
        self.version = "%s (%s)" % (entry.get("build_commit"), entry.get("build_number"))
        return [statistics.median(entry["samples_ts"])]


def text_of(values):
    if not values:
        return "none"
    return "%.1f (%.1f to %.1f)" % (statistics.median(values), min(values), max(values))


def table_of(found):
    lines = ["| file | threads | step | plow | llama.cpp, its better setting | ratio |", "|---|---|---|---|---|---|"]
    for (model, threads, step), arms in found.items():
        plow = arms.get(Plow.name, [])
        others = {name: values for name, values in arms.items() if name != Plow.name and values}
        best = max(others, key=lambda name: statistics.median(others[name])) if others else None
        ratio = "%.2f" % (statistics.median(plow) / statistics.median(others[best])) if plow and best else ""
        lines.append("| %s | %d | %s | %s | %s | %s |" % (
            model, threads, step, text_of(plow), "%s, %s" % (text_of(others[best]), best) if best else "none", ratio))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path, metavar="FILE.gguf")
    parser.add_argument("--llama-bench", type=pathlib.Path, help="without it plow alone is measured")
    parser.add_argument("--bin", type=pathlib.Path, default=REPOSITORY / "build/release/bin")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--depths", default="0")
    parser.add_argument("--prompt", type=int, default=512, help="0: no prompts")
    parser.add_argument("--raw", type=pathlib.Path)
    args = parser.parse_args()
    depths = [int(depth) for depth in args.depths.split(",")]
    steps = [("decode", depth) for depth in depths] + ([("prefill", args.prompt)] if args.prompt else [])
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        arms = [Plow(args.bin, pathlib.Path(scratch), max(depths + [args.prompt]) + DECODE_STEPS)]
        if args.llama_bench:
            arms += [LlamaCpp(args.llama_bench, flash) for flash in (0, 1)]
        for number in range(args.rounds):
            for model in args.models:
                for threads in map(int, args.threads.split(",")):
                    for kind, size in steps:
                        case = (model.name, threads, "%s %d" % (kind, size))
                        for arm in arms if number % 2 == 0 else reversed(arms):
                            values = arm.measure(model, threads, kind, size)
                            found.setdefault(case, {}).setdefault(arm.name, []).extend(values)
                            if args.raw:
                                line = {"round": number, "case": case, "arm": arm.name, "tokens_per_second": values}
                                with open(args.raw, "a", encoding="utf-8") as raw:
                                    raw.write(json.dumps(line) + "\n")
    print(table_of(found))
    if args.llama_bench:
        print("\nllama.cpp: %s" % arms[1].version)


if __name__ == "__main__":
    main()
