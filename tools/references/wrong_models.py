#!/usr/bin/env python3
"""Would a wrong program be noticed? Changes one thing in a copy of a tiny checkpoint, runs transformers in float32
and prints how far the logits move from tests/golden/models, in units of the float32 tolerance (right: below 1).

    wrong_models.py TINY_DIR GOLDEN_DIR
"""
import json
import os
import shutil
import sys
import tempfile

import torch

import true_float64


def changed(**values):
    return lambda config: config.update(values)


def zeroed(part):
    def change(model):
        names = [name for name, p in model.named_parameters() if part in name]
        assert names, part
        for name in names:
            model.get_parameter(name).data.zero_()
    return change


# (checkpoint, what is wrong, change of config.json, change of the loaded model)
CASES = [
    ("llama", "nothing", None, None),
    ("llama", "norm epsilon 1e-5 for 1e-6", changed(rms_norm_eps=1e-5), None),
    ("llama", "rotary base 10,001 for 10,000", changed(rope_theta=10001.0), None),
    ("llama-mha", "biases of the output projection dropped", None, zeroed("o_proj.bias")),
    ("llama-rope3", "no rope scaling", changed(rope_scaling=None), None),
    ("llama-linear", "no rope scaling", changed(rope_scaling=None), None),
    ("llama-yarn", "no rope scaling", changed(rope_scaling=None), None),
    ("mistral", "window of 9 for 8", changed(sliding_window=9), None),
    ("qwen2", "biases of K dropped", None, zeroed("k_proj.bias")),
    ("gemma3", "nothing", None, None),
    ("gemma3", "window of 9 for 8", changed(sliding_window=9), None),
    ("gemma3", "one rotary base for all layers", changed(rope_local_base_freq=1e6), None),
    ("gemma3-linear", "query scale by head size", changed(query_pre_attn_scalar=32), None),
    ("gemma3-softcap", "no attention soft cap", changed(attn_logit_softcapping=None), None),
    ("gemma3-softcap", "no final soft cap", changed(final_logit_softcapping=None), None),
]


def largest_error(folder, golden):
    worst = 0.0
    with true_float64.gemma3_attention_softcap(true_float64.attention_softcap(folder)):
        model = true_float64.load(folder, torch.float32)
        yield model
        for prompt in golden["prompts"]:
            rows = prompt["logits"]
            got = true_float64.logits_at(model, prompt["ids"] + prompt["greedy"], [r["position"] for r in rows])
            for row, want in zip(got, rows):
                error = row[torch.tensor(want["top_ids"])] - torch.tensor(want["top_logits"], dtype=torch.float64)
                worst = max(worst, float(error.abs().max()))
    yield worst


def main():
    tiny, golden_dir = sys.argv[1:]
    for name, what, change_config, change_model in CASES:
        with open(os.path.join(golden_dir, name + ".json"), encoding="utf-8") as f:
            golden = json.load(f)
        with tempfile.TemporaryDirectory() as tmp:
            folder = shutil.copytree(os.path.join(tiny, name), os.path.join(tmp, name))
            path = os.path.join(folder, "config.json")
            with open(path, encoding="utf-8") as f:
                config = json.load(f)
            if change_config:
                change_config(config)
                with open(path, "w", encoding="utf-8") as f:
                    json.dump(config, f)
            run = largest_error(folder, golden)
            model = next(run)
            if change_model:
                change_model(model)
            error = next(run)
        print("%-15s %-42s %.2g, %.2g times the tolerance" %
              (name, what, error, error / golden["tolerance"]["float32"]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
