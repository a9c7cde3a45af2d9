"""How far rounding moves a model's logits: a second float64 forward pass, of our own, in which every value
that an interpreter stores between operators can be disturbed as float32 or bf16 arithmetic would disturb it.

docs/numerics.md derives each term. The undisturbed pass is checked against transformers by the caller.
"""
import math

import torch

UNIT = 2.0 ** -24  # unit roundoff of float32: |fl(x) - x| <= UNIT |x|


class Exact:
    """No disturbance: the reference itself."""

    def stored(self, x, roundings=1):
        return x

    def row_factor(self, x, terms):
        return x

    def product(self, y, magnitude, terms):
        return y

    def linear_input(self, x):
        return x

    def cached(self, x):
        return x


class Float32Noise(Exact):
    """Random errors of the size that float32 arithmetic makes, from a seed."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def _normal(self, shape):
        return torch.randn(shape, generator=self.generator, dtype=torch.float64)

    def stored(self, x, roundings=1):
        """An element-wise result after so many roundings (or units in the last place of a library function)."""
        return x * (1 + UNIT * math.sqrt(roundings) * self._normal(x.shape))

    def row_factor(self, x, terms):
        """A factor common to a row, from a float32 sum of `terms` squares."""
        return x * (1 + 0.5 * UNIT * math.sqrt(terms / 12) * self._normal(x.shape[:-1] + (1,)))

    def product(self, y, magnitude, terms):
        """Dot products y of `terms` products, whose sum of squares is magnitude()."""
        size = (magnitude() + y * y).sqrt()
        return y + UNIT * math.sqrt(terms / 12 + 1) * size * self._normal(y.shape)


class RoundedCache(Exact):
    """Keys and values are stored in bf16, everything else is exact."""

    def cached(self, x):
        return x.to(torch.bfloat16).double()


class RoundedInputs(RoundedCache):
    """Besides, every matrix product reads its activations in bf16 (what bf16 dot instructions take)."""

    def linear_input(self, x):
        return x.to(torch.bfloat16).double()


class Model:
    """A decoder of the Llama, Mistral, Qwen2, Qwen3 or Gemma-3 family over transformers' parameters."""

    def __init__(self, reference):
        self.config = reference.config
        self.gemma = self.config.model_type == "gemma3_text"
        self.weights = dict(reference.named_parameters())
        self.weights.setdefault("lm_head.weight", self.weights["model.embed_tokens.weight"])
        self.rotary = reference.model.rotary_emb
        heads = self.config.num_attention_heads
        self.heads, self.kv_heads = heads, self.config.num_key_value_heads
        self.head_dim = getattr(self.config, "head_dim", None) or self.config.hidden_size // heads
        scalar = self.config.query_pre_attn_scalar if self.gemma else self.head_dim
        self.score_scale = scalar ** -0.5

    def linear(self, x, name, noise):
        w = self.weights[name + ".weight"]
        x = noise.linear_input(x)
        y = noise.product(x @ w.T, lambda: (x * x) @ (w * w).T, w.shape[1])
        bias = self.weights.get(name + ".bias")
        return y if bias is None else noise.stored(y + bias)

    def norm(self, x, name, noise):
        w = self.weights[name + ".weight"]
        r = (x.square().mean(-1, keepdim=True) + self.config.rms_norm_eps).rsqrt()
        y = x * r * (1 + w if self.gemma else w)
        # scale by r (itself rounded), multiply by the weight (1 + w is rounded too)
        return noise.row_factor(noise.stored(y, roundings=4), x.shape[-1])

    def rope(self, x, layer_type, noise):
        angles = torch.arange(x.shape[1])[None]
        table = self.rotary(x, angles, layer_type) if self.gemma else self.rotary(x, angles)
        cos, sin = (noise.stored(t[0]) for t in table)
        low, high = x.chunk(2, dim=-1)
        return noise.stored(x * cos + torch.cat((-high, low), -1) * sin, roundings=2)

    def mask(self, n, layer_type):
        query, key = torch.arange(n)[:, None], torch.arange(n)[None]
        allowed = key <= query
        window = getattr(self.config, "sliding_window", None)
        if window and layer_type == "sliding_attention":
            allowed &= query - key < window
        return allowed

    def attention(self, x, prefix, layer_type, noise):
        n = x.shape[0]

        def heads_of(name, count):
            return self.linear(x, prefix + name, noise).view(n, count, self.head_dim).transpose(0, 1)

        q, k, v = heads_of("q_proj", self.heads), heads_of("k_proj", self.kv_heads), heads_of("v_proj", self.kv_heads)
        if prefix + "q_norm.weight" in self.weights:
            q, k = self.norm(q, prefix + "q_norm", noise), self.norm(k, prefix + "k_norm", noise)
        q, k = self.rope(q, layer_type, noise), noise.cached(self.rope(k, layer_type, noise))
        v = noise.cached(v)
        k, v = (t.repeat_interleave(self.heads // self.kv_heads, 0) for t in (k, v))
        scores = noise.product(q @ k.mT, lambda: (q * q) @ (k * k).mT, self.head_dim) * self.score_scale
        cap = getattr(self.config, "attn_logit_softcapping", None) if self.gemma else None
        if cap:
            scores = noise.stored(cap * torch.tanh(scores / cap), roundings=4)
        scores = noise.stored(scores).masked_fill(~self.mask(n, layer_type), -math.inf)
        p = noise.stored(scores.softmax(-1), roundings=4)
        y = noise.product(p @ v, lambda: (p * p) @ (v * v), n)
        return self.linear(y.transpose(0, 1).reshape(n, -1), prefix + "o_proj", noise)

    def mlp(self, x, prefix, noise):
        gate, up = self.linear(x, prefix + "gate_proj", noise), self.linear(x, prefix + "up_proj", noise)
        if self.gemma:
            gate = torch.nn.functional.gelu(gate, approximate="tanh")
        else:
            gate = torch.nn.functional.silu(gate)
        return self.linear(noise.stored(gate * up, roundings=5), prefix + "down_proj", noise)

    def layer_type(self, layer):
        types = getattr(self.config, "layer_types", None)
        if types:
            return types[layer]
        return "sliding_attention" if getattr(self.config, "sliding_window", None) else "full_attention"

    def logits(self, ids, positions, noise):
        x = self.weights["model.embed_tokens.weight"][torch.tensor(ids)]
        if self.gemma:
            x = noise.stored(x * self.config.hidden_size ** 0.5)
        for layer in range(self.config.num_hidden_layers):
            prefix = "model.layers.%d." % layer
            y = self.norm(x, prefix + "input_layernorm", noise)
            y = self.attention(y, prefix + "self_attn.", self.layer_type(layer), noise)
            if self.gemma:
                y = self.norm(y, prefix + "post_attention_layernorm", noise)
            x = noise.stored(x + y)
            before_mlp = "pre_feedforward_layernorm" if self.gemma else "post_attention_layernorm"
            y = self.mlp(self.norm(x, prefix + before_mlp, noise), prefix + "mlp.", noise)
            if self.gemma:
                y = self.norm(y, prefix + "post_feedforward_layernorm", noise)
            x = noise.stored(x + y)
        x = self.norm(x[torch.tensor(positions)], "model.norm", noise)
        y = self.linear(x, "lm_head", noise)
        cap = getattr(self.config, "final_logit_softcapping", None) if self.gemma else None
        return noise.stored(cap * torch.tanh(y / cap), roundings=4) if cap else y


def spread(model, prompts, exact, seeds):
    """For each kind of rounding: sigma (the largest over positions of the root mean square logit error) and the
    largest error seen. prompts: [(ids, positions)]; exact: their undisturbed logits."""
    kinds = {"float32": [Float32Noise(s) for s in seeds], "kv_bf16": [RoundedCache()], "bf16": [RoundedInputs()]}
    result = {}
    for kind, noises in kinds.items():
        sigma, largest = 0.0, 0.0
        for (ids, positions), want in zip(prompts, exact):
            square = 0.0
            for noise in noises:
                error = model.logits(ids, positions, noise) - want
                square = square + error.square().mean(-1) / len(noises)
                largest = max(largest, float(error.abs().max()))
            sigma = max(sigma, float(square.max()) ** 0.5)
        result[kind] = {"sigma": sigma, "max": largest}
    return result
