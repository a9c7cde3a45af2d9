#!/usr/bin/env python3
"""Compute with transformers what a checkpoint's logits and greedy tokens must be, and store them.

    pip install -r tools/references/requirements.txt      (5.4 GB; the tests do not need it)
    make_references.py tiny TINY_DIR OUT [--only NAME,...]   TINY_DIR from tools/fixtures/make_tiny_models.py
    make_references.py real NAME CHECKPOINT OUT              CHECKPOINT from scripts/fetch_model.sh

OUT is tests/golden/models; OUT/NAME.json holds:

  weights_sha256   of model.safetensors (null when sharded): the files that these numbers belong to
  prompts[]        ids            token ids, no special token added
                   kind           what the text is (real models)
                   greedy         the tokens that argmax gives; no token ends the text
                   margins        at each of those steps, the best logit minus the second best
                   logits[]       for some positions p of ids + greedy: {position, logsumexp, top_ids,
                                  top_logits, all}: the logits after reading token p, in float64; the 20 best, best
                                  first, or all of them where `all` is there
  greedy_dtype     float64 for tiny models, float32 for real ones (there the identity with it is the test)
  float32          {max_error}: how far transformers' own float32 run was from these logits
  rounding         {float32, kv_bf16, bf16}: {sigma, max}, by tools/references/rounding.py
  tolerance        {float32, kv_bf16, bf16}: the bound on |logit - reference|, derived in docs/numerics.md

Nothing here is random but by seed; the same versions on the same machine write the same file.
"""
import argparse
import hashlib
import json
import math
import os
import random
import sys
import time

import torch
import transformers

import prompts as real_prompts
import rounding
import true_float64

SAME_AS_LLAMA = ("llama-f16", "llama-f32", "llama-sharded")
TOP = 20
SIGMAS = 6.0  # docs/numerics.md, "From sigma to a tolerance"
NOISE_SEEDS_TINY, NOISE_SEEDS_REAL = range(16), range(4)

# Tiny models: lengths around one block of keys (16), across windows (8) and original contexts (32, 64).
TINY_LENGTHS = (1, 7, 40, 3, 16, 17, 65, 130)
TINY_GREEDY = 32
REAL_GREEDY = 64
# Prompts of real models whose logits are also computed in float64, at about so many positions each.
REAL_EXACT_POSITIONS = 12


def rounded(value, digits=9):
    return float("%.*g" % (digits, value))


def rows(logits, positions, whole):
    out = []
    for row, position in zip(logits, positions):
        best = row.topk(TOP)
        entry = {"position": position, "logsumexp": rounded(float(row.logsumexp(-1))),
                 "top_ids": best.indices.tolist(), "top_logits": [rounded(v) for v in best.values.tolist()]}
        if position in whole:
            entry["all"] = [rounded(v) for v in row.tolist()]
        out.append(entry)
    return out


def sha256_of(path):
    if not os.path.exists(path):
        return None
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def describe(name, folder, noise, float32_error, prompts, greedy_dtype):
    # kv_bf16 and bf16 replace some float32 roundings by larger ones; the others are still there
    base = noise["float32"]["sigma"]
    tolerance = {kind: rounded(SIGMAS * (base if kind == "float32" else math.hypot(base, n["sigma"])), 3)
                 for kind, n in noise.items()}
    return {"name": name, "weights_sha256": sha256_of(os.path.join(folder, "model.safetensors")),
            "torch": torch.__version__, "transformers": transformers.__version__, "greedy_dtype": greedy_dtype,
            "float32": {"max_error": rounded(float32_error, 3)},
            "rounding": {k: {m: rounded(v, 3) for m, v in n.items()} for k, n in noise.items()},
            "tolerance": tolerance, "prompts": prompts}


def write(out, document):
    os.makedirs(out, exist_ok=True)
    path = os.path.join(out, document["name"] + ".json")
    # one prompt or logits row a line: small differences stay readable in a diff
    text = json.dumps(document, separators=(",", ":"))
    text = text.replace('{"ids"', '\n{"ids"').replace('{"position"', '\n{"position"').replace('],"tor', '],\n"tor')
    with open(path + ".part", "w", encoding="utf-8") as f:
        f.write(text + "\n")
    os.rename(path + ".part", path)
    print("%-20s float32 %.1e  rounding %s  tolerance %s  %d KB" % (
        document["name"], document["float32"]["max_error"],
        " ".join("%s %.1e/%.1e" % (k, n["sigma"], n["max"]) for k, n in document["rounding"].items()),
        document["tolerance"], len(text) // 1024), flush=True)


def check_own_pass(own, model, ids, positions, want):
    """rounding.Model must be the same function as transformers' model."""
    error = float((own.logits(ids, positions, rounding.Exact()) - want).abs().max())
    if error > 1e-9:
        raise SystemExit("rounding.py differs from transformers by %g on %s" % (error, model.config.model_type))


# ---- tiny models -----------------------------------------------------------


def tiny_prompts(name, vocab):
    draw = random.Random("plow prompts for " + name)
    return [[draw.randrange(16, vocab) for _ in range(n)] for n in TINY_LENGTHS]


def tiny_positions(n):
    """Every position of a short prompt; of a longer one every seventh (7 divides no block length), and the last."""
    return list(range(n)) if n <= 40 else sorted(set(range(0, n, 7)) | {n - 1})


def tiny(name, folder, out):
    sequences, exact, prompts = [], [], []
    with true_float64.float64_everywhere(), torch.no_grad():
        cap = true_float64.attention_softcap(folder)
        with true_float64.gemma3_attention_softcap(cap):
            model = true_float64.load(folder, torch.float64)
            own = rounding.Model(model)
            for ids in tiny_prompts(name, model.config.vocab_size):
                (tokens,), (margins,) = true_float64.greedy(model, [ids], TINY_GREEDY)
                positions = tiny_positions(len(ids)) + [len(ids) + TINY_GREEDY - 1]
                sequence = ids + tokens
                want = true_float64.logits_at(model, sequence, positions)
                check_own_pass(own, model, sequence, positions, want)
                sequences.append((sequence, positions))
                exact.append(want)
                prompts.append({"ids": ids, "greedy": tokens, "margins": [rounded(m, 6) for m in margins],
                                "logits": rows(want, positions, {len(ids) - 1, positions[-1]})})
        noise = rounding.spread(own, sequences, exact, NOISE_SEEDS_TINY)
    with true_float64.gemma3_attention_softcap(cap):
        model = true_float64.load(folder, torch.float32)
        error = max(float((true_float64.logits_at(model, *s) - want).abs().max())
                    for s, want in zip(sequences, exact))
    write(out, describe(name, folder, noise, error, prompts, "float64"))


# ---- real models -----------------------------------------------------------


def real_positions(n, total):
    """About REAL_EXACT_POSITIONS positions: the first, some of the prompt, its last, and every ninth after it."""
    step = max(1, n // (REAL_EXACT_POSITIONS // 2))
    return sorted(set(range(0, n, step)) | {n - 1} | set(range(n, total, 9)) | {total - 1})


def groups_of(prompts, padded):
    """Which prompts run as one batch: each alone, or those whose lengths are alike."""
    if not padded:
        return [[i] for i in range(len(prompts))]
    groups = {}
    for i in sorted(range(len(prompts)), key=lambda i: len(prompts[i]["ids"])):
        groups.setdefault((len(prompts[i]["ids"]) - 1) // 64 * 64, []).append(i)
    return list(groups.values())


def real(name, folder, out, padded):
    started = time.time()

    def say(text):
        print("%6.0f s  %s" % (time.time() - started, text), flush=True)

    prompts = real_prompts.prompts(folder)
    model = true_float64.load(folder, torch.float32)
    sequences, in_float32 = {}, {}
    for group in groups_of(prompts, padded):
        tokens, margins = true_float64.greedy(model, [prompts[i]["ids"] for i in group], REAL_GREEDY)
        for i, t, m in zip(group, tokens, margins):
            prompts[i].update(greedy=t, margins=[rounded(x, 6) for x in m], logits=[])
            say("prompt %d, %d tokens, smallest margin %.2g" % (i, len(prompts[i]["ids"]), min(m)))
    for i, prompt in enumerate(prompts):
        if prompt.pop("exact"):
            sequence = prompt["ids"] + prompt["greedy"]
            sequences[i] = (sequence, real_positions(len(prompt["ids"]), len(sequence)))
            in_float32[i] = true_float64.logits_at(model, *sequences[i])
    del model
    exact, noise = {}, None
    with true_float64.float64_everywhere(), torch.no_grad():
        model = true_float64.load(folder, torch.float64)
        own = rounding.Model(model)
        for i, sequence in sequences.items():
            exact[i] = true_float64.logits_at(model, *sequence)
            prompts[i]["logits"] = rows(exact[i], sequence[1], ())
            say("prompt %d in float64" % i)
        shortest = min(sequences, key=lambda i: len(sequences[i][0]))
        check_own_pass(own, model, *sequences[shortest], exact[shortest])
        disturbed = [i for i in sequences if len(prompts[i]["ids"]) in real_prompts.DISTURBED_LENGTHS]
        noise = rounding.spread(own, [sequences[i] for i in disturbed], [exact[i] for i in disturbed],
                                NOISE_SEEDS_REAL)
    error = max(float((in_float32[i] - exact[i]).abs().max()) for i in sequences)
    write(out, describe(name, folder, noise, error, prompts, "float32"))
    say("done")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind in ("tiny", "real"):
        sub = kinds.add_parser(kind)
        if kind == "real":
            sub.add_argument("name")
            sub.add_argument("--padded", action="store_true",
                             help="decode prompts of like lengths as one batch: faster for large models")
        sub.add_argument("checkpoint", help="the folder TINY_DIR or CHECKPOINT")
        sub.add_argument("out")
        sub.add_argument("--only", help="names, separated by commas")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.kind == "real":
        real(args.name, args.checkpoint, args.out, args.padded)
        return 0
    for name in sorted(os.listdir(args.checkpoint)):
        # llama-f16, llama-f32 and llama-sharded are the model `llama` in another form: its references hold
        if name not in SAME_AS_LLAMA and (not args.only or name in args.only.split(",")):
            tiny(name, os.path.join(args.checkpoint, name), args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
