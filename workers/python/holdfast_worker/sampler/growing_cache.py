"""A key-value cache for one slab: space is allocated ahead in blocks, so that a token does not copy
all earlier ones.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer

BLOCK_TOKENS = 64


class GrowingLayer(DynamicLayer):
    """As its parent [B, heads, T, head_dim], with spare room behind T."""

    def __init__(self, ahead: int) -> None:
        super().__init__()
        self.ahead = ahead
        self.room: tuple[Tensor, Tensor] | None = None

    def update(
        self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        length = self.get_seq_length()
        end = length + key_states.shape[-2]
        if self.room is None or self.room[0].shape[-2] < end:
            self._make_room(length, end, key_states)
        keys, values = self.room
        keys[:, :, length:end] = key_states
        values[:, :, length:end] = value_states
        self.keys, self.values = keys[:, :, :end], values[:, :, :end]
        return self.keys, self.values

    def _make_room(self, length: int, end: int, like: Tensor) -> None:
        # Grows by a quarter each time, so that long completions copy a bounded number of times.
        capacity = end + max(self.ahead, end // 4)
        batch, heads, _, width = like.shape
        room = (
            like.new_empty((batch, heads, capacity, width)),
            like.new_empty((batch, heads, capacity, width)),
        )
        if length:
            room[0][:, :, :length] = self.keys
            room[1][:, :, :length] = self.values
        self.room = room

    def batch_repeat_interleave(self, repeats: int) -> None:
        super().batch_repeat_interleave(repeats)
        self.room = None

    def batch_select_indices(self, indices: Tensor) -> None:
        super().batch_select_indices(indices)
        self.room = None


def new_cache(config: Any, tokens_max: int) -> Cache:
    """
    What the library makes for the model, with growing layers in place of its concatenating ones.
    """
    ahead = min(tokens_max, BLOCK_TOKENS)
    cache = DynamicCache(config=config)
    cache.layers = [
        GrowingLayer(ahead) if type(layer) is DynamicLayer else layer for layer in cache.layers
    ]
    return cache


def positions(mask: Tensor) -> Tensor:
    """Position ids [B, T] of left-padded rows: 0 for the first real token."""
    return (torch.cumsum(mask, dim=-1) - 1).clamp_(min=0)
