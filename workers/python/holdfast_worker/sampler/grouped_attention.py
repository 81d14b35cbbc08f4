"""
Attention of models whose query heads share keys and values, on the CPU.

Beside a mask, transformers copies keys and values for each of their query heads, since CUDA has a
kernel without copies only where there is no mask. The CPU's kernel reads them where they are, with
the same bits; the copies took more than half of a decoding step. In 16 bits that kernel also packs
the keys again for each query head, so there the queries of a group go through as the rows of one
head: a decoding step of SmolLM2 spent 0.68 s in attention, and 0.15 s so.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers.integrations import sdpa_attention
from transformers.integrations.sdpa_attention import use_gqa_in_sdpa
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS


def read_groups_in_place() -> None:
    """For every model of this process whose attention is torch's own."""
    sdpa_attention.use_gqa_in_sdpa = _can_read_in_place
    ALL_ATTENTION_FUNCTIONS.register("sdpa", attention)


def _can_read_in_place(mask: Tensor | None, key: Tensor, value: Tensor) -> bool:
    return key.device.type == "cpu" or use_gqa_in_sdpa(mask, key, value)


def attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **how: Any,
) -> tuple[Tensor, None]:
    """
    As transformers', which models call with names, too: `query` [B, H, Q, D], `key` and `value`
    [B, H / G, K, D], `attention_mask` [B, 1, Q, K] -> [B, Q, H, D].
    """
    is_plain = dropout == 0 and how.get("position_bias") is None and how.get("cache") is None
    if not is_plain or not _are_rows_of_one_head(query, key, attention_mask):
        forward = sdpa_attention.sdpa_attention_forward
        return forward(module, query, key, value, attention_mask, dropout, scaling, **how)
    rows = query.unflatten(1, (key.shape[1], -1)).squeeze(3)  # [B, H / G, G, D]
    seen = functional.scaled_dot_product_attention(
        rows, key, value, attn_mask=attention_mask, scale=scaling
    )
    return seen.reshape(query.shape[0], 1, query.shape[1], -1), None


def _are_rows_of_one_head(query: Tensor, key: Tensor, mask: Tensor | None) -> bool:
    """Whether there is one query, with a mask that all heads share, whose groups save packing."""
    return (
        query.device.type == "cpu"
        and query.dtype != torch.float32
        and query.shape[2] == 1
        and query.shape[1] != key.shape[1]
        and (mask is None or mask.shape[1] == 1)
    )
