"""
Attention of models whose query heads share keys and values.

Beside a mask, transformers copies keys and values for each of their query heads, since CUDA has a
kernel without copies only where there is no mask. The CPU's kernel reads them where they are, with
the same bits; the copies took more than half of a decoding step.
"""

from __future__ import annotations

from torch import Tensor
from transformers.integrations import sdpa_attention
from transformers.integrations.sdpa_attention import use_gqa_in_sdpa


def read_groups_in_place() -> None:
    """For every model of this process whose attention is torch's own."""
    sdpa_attention.use_gqa_in_sdpa = _can_read_in_place


def _can_read_in_place(mask: Tensor | None, key: Tensor, value: Tensor) -> bool:
    return key.device.type == "cpu" or use_gqa_in_sdpa(mask, key, value)
