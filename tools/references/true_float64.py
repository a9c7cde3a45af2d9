"""transformers in float64 all the way, and in float32, from a checkpoint's files.

transformers drops to float32 inside norms, softmaxes and rotary tables whatever the model's dtype. While
float64_everywhere() is active, torch.float32 means float64 inside transformers' modules, so that the result
is exact to about 1e-13 and serves as the reference of every kernel.
"""
import contextlib
import functools
import sys
import types

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.gemma3 import modeling_gemma3
# imported here so that float64_everywhere() finds them loaded
from transformers.models.llama import modeling_llama  # noqa: F401
from transformers.models.mistral import modeling_mistral  # noqa: F401
from transformers.models.qwen2 import modeling_qwen2  # noqa: F401
from transformers.models.qwen3 import modeling_qwen3  # noqa: F401


class Torch64(types.ModuleType):
    """The torch module, except that its float32 is float64."""

    def __init__(self):
        super().__init__("torch")

    def __getattr__(self, name):
        return torch.float64 if name in ("float32", "float") else getattr(torch, name)


@contextlib.contextmanager
def float64_everywhere():
    proxy, patched = Torch64(), []
    for name, module in list(sys.modules.items()):
        if name.startswith("transformers.") and getattr(module, "__dict__", {}).get("torch") is torch:
            module.torch = proxy
            patched.append(module)
    as_float = torch.Tensor.float
    torch.Tensor.float = lambda self, *args, **kwargs: self.double()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)
        torch.Tensor.float = as_float
        for module in patched:
            module.torch = torch


@contextlib.contextmanager
def gemma3_attention_softcap(cap):
    """transformers 5.24 reads attn_logit_softcapping into Gemma3Attention and has the formula in its eager
    attention, but does not pass the value on. A config that sets it means Gemma 2's formula: pass it."""
    if cap is None:
        yield
        return
    plain = modeling_gemma3.eager_attention_forward
    modeling_gemma3.eager_attention_forward = functools.partial(plain, softcap=cap)
    try:
        yield
    finally:
        modeling_gemma3.eager_attention_forward = plain


def load(folder, dtype):
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    model, info = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager",
                                                       output_loading_info=True)
    if info["missing_keys"] or info["unexpected_keys"]:
        raise SystemExit("%s: missing %s, unexpected %s" %
                         (folder, info["missing_keys"], info["unexpected_keys"]))
    dtypes = {p.dtype for p in model.parameters()} | {b.dtype for b in model.buffers() if b.is_floating_point()}
    if dtypes != {dtype}:
        raise SystemExit("%s: loaded with %s, wanted %s alone" % (folder, dtypes, dtype))
    return model.eval()


def attention_softcap(folder):
    return getattr(AutoConfig.from_pretrained(folder), "attn_logit_softcapping", None)


def logits_at(model, ids, positions):
    """[len(positions), vocabulary] logits of one uncached run over ids."""
    with torch.no_grad():
        out = model(input_ids=torch.tensor([ids]), use_cache=False, logits_to_keep=torch.tensor(positions))
    return out.logits[0].double()


def greedy(model, prompts, count):
    """For each prompt `count` greedy tokens (no token ends the text) and the margin of the best over the second at
    each step, with transformers' own KV cache. Several prompts run as one batch, padded on the left."""
    longest = max(len(ids) for ids in prompts)
    step = torch.tensor([[0] * (longest - len(ids)) + ids for ids in prompts])
    mask = torch.tensor([[0] * (longest - len(ids)) + [1] * len(ids) for ids in prompts])
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    tokens, margins, cache = [[] for _ in prompts], [[] for _ in prompts], None
    with torch.no_grad():
        for _ in range(count):
            padding = {"attention_mask": mask, "position_ids": positions} if len(prompts) > 1 else {}
            out = model(input_ids=step, cache=cache, use_cache=True, logits_to_keep=1, **padding)
            cache = out.cache
            values, indices = out.logits[:, -1].double().topk(2)
            for i in range(len(prompts)):
                tokens[i].append(int(indices[i, 0]))
                margins[i].append(float(values[i, 0] - values[i, 1]))
            step = indices[:, :1]
            mask = torch.cat((mask, torch.ones_like(step)), -1)
            positions = positions[:, -1:] + 1
    return tokens, margins
