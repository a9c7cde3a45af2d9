#!/usr/bin/env python3
"""A checkpoint in the shape of an 8B model whose weights are zeros that take no space on disk.

    sparse_checkpoint.py TINY_CHECKPOINT OUT

The tokenizer files are those of TINY_CHECKPOINT (a Llama); config.json has the shape of Llama 3.1 8B. For measuring how long a
compile takes and how much memory: the bundle's tape is written in full (16 GB), so delete both afterwards.
"""
import json
import os
import shutil
import sys

LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD_DIM, INNER, VOCAB = 32, 4096, 32, 8, 128, 14336, 128256


def shapes():
    yield "model.embed_tokens.weight", [VOCAB, HIDDEN]
    for layer in range(LAYERS):
        at = "model.layers.%d." % layer
        yield at + "input_layernorm.weight", [HIDDEN]
        yield at + "post_attention_layernorm.weight", [HIDDEN]
        yield at + "self_attn.q_proj.weight", [HEADS * HEAD_DIM, HIDDEN]
        yield at + "self_attn.k_proj.weight", [KV_HEADS * HEAD_DIM, HIDDEN]
        yield at + "self_attn.v_proj.weight", [KV_HEADS * HEAD_DIM, HIDDEN]
        yield at + "self_attn.o_proj.weight", [HIDDEN, HEADS * HEAD_DIM]
        yield at + "mlp.gate_proj.weight", [INNER, HIDDEN]
        yield at + "mlp.up_proj.weight", [INNER, HIDDEN]
        yield at + "mlp.down_proj.weight", [HIDDEN, INNER]
    yield "model.norm.weight", [HIDDEN]
    yield "lm_head.weight", [VOCAB, HIDDEN]


def main():
    if len(sys.argv) != 3:
        print(__doc__)
        return 2
    tiny, out = sys.argv[1:]
    os.makedirs(out)
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        if os.path.exists(os.path.join(tiny, name)):
            shutil.copy(os.path.join(tiny, name), out)
    with open(os.path.join(tiny, "config.json")) as file:
        config = json.load(file)
    config.update(num_hidden_layers=LAYERS, hidden_size=HIDDEN, num_attention_heads=HEADS, num_key_value_heads=KV_HEADS,
                  head_dim=HEAD_DIM, intermediate_size=INNER, vocab_size=VOCAB, tie_word_embeddings=False)
    with open(os.path.join(out, "config.json"), "w") as file:
        json.dump(config, file)
    header, end = {}, 0
    for name, shape in shapes():
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(out, "model.safetensors"), "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)
    return 0


if __name__ == "__main__":
    sys.exit(main())
