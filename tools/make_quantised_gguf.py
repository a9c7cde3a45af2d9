#!/usr/bin/env python3
"""Write a GGUF file whose matrices are all of one type, for measuring.

    make_quantised_gguf.py SOURCE.gguf TYPE OUT.gguf    the matrices of another file, dequantised and quantised again
    make_quantised_gguf.py llama-1b TYPE OUT.gguf       the shape of Llama-3.2-1B with random weights

TYPE is Q8_0, Q4_0 or BF16. Needs the packages gguf and numpy (tools/fixtures/requirements.txt).
"""
import sys

import gguf
import numpy as np

TYPES = {name: getattr(gguf.GGMLQuantizationType, name) for name in ("Q8_0", "Q4_0", "BF16")}
# Keys that GGUFWriter writes itself.
OWN_KEYS = ("GGUF.", "general.architecture", "general.alignment")


def add(writer, name, values, kind):
    """A matrix in blocks of `kind`, anything else in f32."""
    if values.ndim < 2:
        writer.add_tensor(name, values.astype(np.float32))
        return
    writer.add_tensor(name, gguf.quants.quantize(values.astype(np.float32), kind), raw_dtype=kind)


def copy(source, kind, out):
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(out, reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if not field.name.startswith(OWN_KEYS):
            inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=inner)
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        add(writer, tensor.name, values.reshape(tuple(reversed(tensor.shape.tolist()))), kind)
    return writer


def llama_1b(kind, out):
    hidden, inner, layers, heads, kv_heads, vocab = 2048, 8192, 16, 32, 8, 128256
    head_dim = hidden // heads
    writer = gguf.GGUFWriter(out, "llama")
    writer.add_name("llama-1b-shape")
    writer.add_context_length(131072)
    writer.add_embedding_length(hidden)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(500000.0)
    writer.add_rope_dimension_count(head_dim)
    writer.add_vocab_size(vocab)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")
    # Words that mean nothing: nothing is made of text here.
    writer.add_token_list(["a", "b", "ab"] + ["<%d>" % i for i in range(3, vocab)])
    writer.add_token_types([1, 1, 1] + [3] * (vocab - 3))
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(3)
    writer.add_eos_token_id(4)
    random = np.random.default_rng(1)

    def matrix(name, rows, cols):
        add(writer, name, random.standard_normal((rows, cols), dtype=np.float32) / np.sqrt(cols, dtype=np.float32), kind)

    matrix("token_embd.weight", vocab, hidden)
    writer.add_tensor("output_norm.weight", np.ones(hidden, np.float32))
    for layer in range(layers):
        prefix = "blk.%d." % layer
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(prefix + norm + ".weight", np.ones(hidden, np.float32))
        matrix(prefix + "attn_q.weight", hidden, hidden)
        matrix(prefix + "attn_k.weight", kv_heads * head_dim, hidden)
        matrix(prefix + "attn_v.weight", kv_heads * head_dim, hidden)
        matrix(prefix + "attn_output.weight", hidden, hidden)
        matrix(prefix + "ffn_gate.weight", inner, hidden)
        matrix(prefix + "ffn_up.weight", inner, hidden)
        matrix(prefix + "ffn_down.weight", hidden, inner)
    return writer


def main():
    if len(sys.argv) != 4 or sys.argv[2] not in TYPES:
        sys.exit(__doc__)
    source, kind, out = sys.argv[1], TYPES[sys.argv[2]], sys.argv[3]
    writer = llama_1b(kind, out) if source == "llama-1b" else copy(source, kind, out)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
