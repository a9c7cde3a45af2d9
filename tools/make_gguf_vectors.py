#!/usr/bin/env python3
"""Write the files of src/checkpoint/testdata: what the package `gguf` makes of GGUF's formats.

    python3 -m venv V && V/bin/pip install gguf==0.19.0
    V/bin/python tools/make_gguf_vectors.py src/checkpoint/testdata

TYPE.vec, one for each block format that is read:
    u32 number of blocks, the blocks, then as many float32 as they hold, by gguf.quants.dequantize.
tiny_llama.gguf, tiny_gemma3.gguf: small models by gguf.GGUFWriter, with what llama.cpp's converter does to values (rows
of Q and K interleaved, 1 added to norms). Before that, value i of a tensor is model_value(salt, i), salt counting the
tensors; the tests compute the same.
"""
import os
import struct
import sys

import gguf
import numpy as np

T = gguf.GGMLQuantizationType
# Where the float16 fields of a block are: these must be finite; all other bytes may be anything.
SCALES = {T.F32: [], T.F16: [0], T.BF16: [], T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0],
          T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208]}


def finite_f16(rng):
    """Any finite float16: normal, subnormal or zero, of either sign."""
    kind = rng.integers(8)
    if kind == 0:
        bits = rng.integers(0x0400)  # subnormal or zero
    elif kind == 1:
        bits = 0x7BFF  # the largest
    else:
        bits = rng.integers(0x7C00)
    return np.uint16(bits | (0x8000 if rng.integers(2) else 0))


def vector(kind, rng):
    values, size = gguf.GGML_QUANT_SIZES[kind]
    n = 64 if values == 1 else 8 if values == 32 else 3
    blocks = rng.integers(256, size=(n, size), dtype=np.uint8)
    if kind == T.F32:
        blocks[:, 3] &= 0x3F  # a NaN's bits need not survive
    if kind == T.BF16:
        blocks[:, 1] &= 0x3F
    for at in SCALES[kind]:
        for b in blocks:
            b[at:at + 2] = np.frombuffer(finite_f16(rng).tobytes(), np.uint8)
    out = gguf.quants.dequantize(blocks.reshape(1, -1), kind).astype(np.float32)
    assert out.size == n * values and np.isfinite(out).all()
    return struct.pack("<I", n) + blocks.tobytes() + out.astype("<f4").tobytes()


def model_value(salt, i):
    """Small multiples of 1/64, exact in float16, also with 1 added."""
    return ((i * 37 + salt * 11) % 127 - 63) / 64.0


def interleave(w, heads):
    """llama.cpp's LlamaModel.permute."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def add_tokenizer(w, tokens, kind):
    w.add_tokenizer_model(kind)
    w.add_token_list(tokens)
    w.add_token_types([3, 3, 3] + [1] * (len(tokens) - 3))
    if kind == "gpt2":
        w.add_tokenizer_pre("smollm")
        w.add_token_merges(["a b", "ab c"])
    else:
        w.add_token_scores([-float(i) / 4 for i in range(len(tokens))])
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    w.add_pad_token_id(0)
    w.add_add_bos_token(True)
    w.add_chat_template("{{ messages[0]['content'] }}")


def tiny_model(path, arch):
    gemma = arch == "gemma3"
    hidden, heads, kv_heads, head_dim, inner, layers, vocab = 16, 4, 2, 4, 8, 2, 12
    w = gguf.GGUFWriter(path, arch)
    w.add_name("tiny")
    w.add_context_length(128)
    w.add_embedding_length(hidden)
    w.add_block_count(layers)
    w.add_feed_forward_length(inner)
    w.add_head_count(heads)
    w.add_head_count_kv(kv_heads)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_rope_freq_base(1000000.0)
    if gemma:
        w.add_key_length(head_dim)
        w.add_value_length(head_dim)
        w.add_sliding_window(16)
        w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        w.add_rope_scaling_factor(8.0)
    else:
        w.add_rope_dimension_count(head_dim)
        w.add_vocab_size(vocab)
    names = ["<pad>", "<s>", "</s>", "a", "b", "c", "ab", "abc", "\u0120", "\u00e9", "\u4e2d", "x"]
    if gemma:
        names[11] = "<end_of_turn>"
    add_tokenizer(w, names, "llama" if gemma else "gpt2")

    salt = 0

    def add(name, *shape):
        nonlocal salt
        n = int(np.prod(shape))
        t = np.array([model_value(salt, i) for i in range(n)], np.float32).reshape(shape)
        salt += 1
        if arch == "llama" and (".attn_q." in name or ".attn_k." in name):
            t = interleave(t, heads if ".attn_q." in name else kv_heads)
        if gemma and "norm" in name:
            t = t + np.float32(1)
        w.add_tensor(name, t if len(shape) == 1 else t.astype(np.float16))

    add("token_embd.weight", vocab, hidden)
    add("output_norm.weight", hidden)
    if not gemma:
        add("output.weight", vocab, hidden)
    for i in range(layers):
        b = "blk.%d." % i
        add(b + "attn_norm.weight", hidden)
        add(b + "attn_q.weight", heads * head_dim, hidden)
        add(b + "attn_k.weight", kv_heads * head_dim, hidden)
        add(b + "attn_v.weight", kv_heads * head_dim, hidden)
        add(b + "attn_output.weight", hidden, heads * head_dim)
        if gemma:
            add(b + "attn_q_norm.weight", head_dim)
            add(b + "attn_k_norm.weight", head_dim)
            add(b + "post_attention_norm.weight", hidden)
            add(b + "post_ffw_norm.weight", hidden)
        else:
            add(b + "attn_q.bias", heads * head_dim)
        add(b + "ffn_norm.weight", hidden)
        add(b + "ffn_gate.weight", inner, hidden)
        add(b + "ffn_up.weight", inner, hidden)
        add(b + "ffn_down.weight", hidden, inner)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    rng = np.random.default_rng(20)
    for kind in SCALES:
        with open(os.path.join(out, kind.name + ".vec"), "wb") as f:
            f.write(vector(kind, rng))
    for arch in ("llama", "gemma3"):
        tiny_model(os.path.join(out, "tiny_%s.gguf" % arch), arch)


if __name__ == "__main__":
    main()
