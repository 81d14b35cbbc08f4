"""
One more token for every row: the model's own weights and kernels in its own order, without the
Python around them.

A small model spends a good part of a decoding step between kernels: module calls, masks, keyword
checks. This walks the layers of Llama-shaped models by hand. It is used only where every layer sees all
tokens and it gives the bits of the model's own forward, which is tried when a model is opened, and
it keeps no copy of any weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.masking_utils import create_causal_mask

from holdfast_worker.sampler.grouped_attention import attention
from holdfast_worker.sampler.growing_cache import GrowingLayer, new_cache, positions

ARCHITECTURES = ("LlamaForCausalLM", "Qwen2ForCausalLM")


@dataclass
class _Layer:
    """References to what a layer computes with; the tensors stay the model's."""

    attention: Any
    mlp: Any
    before: tuple[Tensor, float]  # weight and epsilon of the norm before attention
    between: tuple[Tensor, float]
    projections: tuple[
        tuple[Tensor, Tensor | None], ...
    ]  # query, key, value, output, gate, up, down


class Decoder:
    """`forward` of one token per row. `model`: as transformers made it."""

    def __init__(self, model: Any) -> None:
        inner = model.model
        self.config = model.config
        self.embedding = inner.embed_tokens.weight
        self.rotary = inner.rotary_emb
        self.layers = [_layer(layer) for layer in inner.layers]
        self.norm = _norm_of(inner.norm)
        self.head = _linear_of(model.lm_head)

    def forward(self, ids: Tensor, position: Tensor, cache: Any, mask: Tensor | None) -> Tensor:
        """
        Logits [B, V] after `ids` [B, 1] at `position` [B, 1]. `mask`: [B, T] 1 on real tokens;
        None: no padding.
        """
        hidden = functional.embedding(ids, self.embedding)
        if mask is not None:
            mask = create_causal_mask(self.config, hidden, mask, cache, position)
        cos, sin = (turn.unsqueeze(1) for turn in self.rotary(hidden, position))
        for place, layer in enumerate(self.layers):
            query, key, value, output, gate, up, down = layer.projections
            normed = _normed(hidden, layer.before)
            shape = (*normed.shape[:-1], -1, layer.attention.head_dim)
            q = _turned(functional.linear(normed, *query).view(shape).transpose(1, 2), cos, sin)
            k = _turned(functional.linear(normed, *key).view(shape).transpose(1, 2), cos, sin)
            keys, values = cache.layers[place].update(
                k, functional.linear(normed, *value).view(shape).transpose(1, 2)
            )
            scaling = layer.attention.scaling
            seen, _ = attention(layer.attention, q, keys, values, mask, scaling=scaling)
            hidden = hidden + functional.linear(seen.reshape(*hidden.shape[:-1], -1), *output)
            normed = _normed(hidden, layer.between)
            wide = layer.mlp.act_fn(functional.linear(normed, *gate)) * functional.linear(
                normed, *up
            )
            hidden = hidden + functional.linear(wide, *down)
        return functional.linear(_normed(hidden, self.norm), *self.head)[:, -1]


def _linear_of(module: Any) -> tuple[Tensor, Tensor | None]:
    return module.weight, module.bias


def _norm_of(module: Any) -> tuple[Tensor, float]:
    return module.weight, module.variance_epsilon


def _layer(layer: Any) -> _Layer:
    attention, mlp = layer.self_attn, layer.mlp
    linears = (attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj)
    return _Layer(
        attention,
        mlp,
        _norm_of(layer.input_layernorm),
        _norm_of(layer.post_attention_layernorm),
        tuple(
            _linear_of(linear) for linear in (*linears, mlp.gate_proj, mlp.up_proj, mlp.down_proj)
        ),
    )


def _normed(hidden: Tensor, norm: tuple[Tensor, float]) -> Tensor:
    weight, epsilon = norm
    wide = hidden.to(torch.float32)
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon)
    return weight * wide.to(hidden.dtype)


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding."""
    first, second = x.chunk(2, dim=-1)
    return (x * cos) + (torch.cat((-second, first), dim=-1) * sin)


def decoder_of(model: Any) -> Decoder | None:
    """A decoder that was tested to have this model's own bits; None if there is none."""
    if type(model).__name__ not in ARCHITECTURES or model.config._attn_implementation != "sdpa":
        return None
    linears = (
        part for name, part in model.named_modules() if name.endswith("_proj") or name == "lm_head"
    )
    if any(
        type(linear) is not nn.Linear for linear in linears
    ):  # An adapter wraps it and changes its output.
        return None
    if not _sees_everything(model.config):
        return None
    decoder = Decoder(model)
    return decoder if all(_agrees(decoder, model, padded) for padded in (False, True)) else None


def _sees_everything(config: Any) -> bool:
    """
    Whether every layer attends to all tokens before. The decoder gives all layers one mask, and a
    trial of a few tokens cannot tell a window from everything.
    """
    return all(type(layer) is GrowingLayer for layer in new_cache(config, 1).layers)


@torch.inference_mode()
def _agrees(decoder: Decoder, model: Any, padded: bool) -> bool:
    """Whether two steps after a prompt of three tokens have the same logits, bit for bit."""
    device = model.device
    ids = torch.arange(12, device=device).view(4, 3) % model.config.vocab_size
    mask = torch.ones_like(ids)
    mask[0, 0] = 0 if padded else 1
    caches = [new_cache(model.config, 2) for _ in range(2)]
    for cache in caches:
        model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions(mask),
            past_key_values=cache,
            use_cache=True,
        )
    for _ in range(2):
        mask = torch.cat([mask, mask.new_ones(4, 1)], dim=-1)
        attention, last = mask if padded else None, ids[:, -1:]
        position = mask.sum(-1, keepdim=True) - 1
        how = {
            "attention_mask": attention,
            "position_ids": position,
            "past_key_values": caches[0],
            "use_cache": True,
        }
        expected = model(input_ids=last, **how).logits[:, -1]
        if not torch.equal(decoder.forward(last, position, caches[1], attention), expected):
            return False
    return True
