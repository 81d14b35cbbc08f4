"""A cache with room ahead holds what a concatenating one holds."""

from __future__ import annotations

import torch

from holdfast_worker.sampler.growing_cache import GrowingLayer, positions


def states(tokens: int, *, rows: int = 2, seed: int = 0) -> torch.Tensor:
    """[B, heads, T, head_dim]"""
    return torch.randn((rows, 3, tokens, 4), generator=torch.Generator().manual_seed(seed))


def test_tokens_added_one_by_one_stand_behind_the_prompt_in_order() -> None:
    layer = GrowingLayer(2)
    parts = [states(5), *(states(1, seed=seed) for seed in range(1, 8))]
    for part in parts:
        keys, values = layer.update(part, -part)
    whole = torch.cat(parts, dim=2)
    assert torch.equal(keys, whole) and torch.equal(values, -whole)
    assert layer.get_seq_length() == 12


def test_room_is_made_ahead_and_not_for_every_token() -> None:
    layer = GrowingLayer(8)
    layer.update(states(4), states(4))
    room = layer.room
    assert room is not None and room[0].shape[-2] == 12
    for _ in range(8):
        layer.update(states(1), states(1))
    assert layer.room is room
    layer.update(states(1), states(1))
    assert layer.room is not None and layer.room[0].shape[-2] == 21


def test_rows_that_leave_take_their_tokens_with_them() -> None:
    layer = GrowingLayer(8)
    layer.update(states(4), states(4))
    layer.batch_select_indices(torch.tensor([1]))
    keys, _ = layer.update(states(1, rows=1, seed=5), states(1, rows=1, seed=5))
    assert torch.equal(keys, torch.cat([states(4)[1:], states(1, rows=1, seed=5)], dim=2))


def test_positions_begin_at_the_first_real_token() -> None:
    mask = torch.tensor([[1, 1, 1], [0, 0, 1]])
    assert positions(mask).tolist() == [[0, 1, 2], [0, 0, 0]]
