"""
Packed rows: sequences one after the other in one row. Positions start again with each, and attention runs over each by
itself, so that no token sees another sequence: there is no mask of row x row tokens, and no work on padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from holdfast_worker.operation import BadDataError

ATTENTION = "holdfast_packed"  # Its name in transformers' table of attention functions.
PROBE_LENGTHS = (5, 9)
# How far a sequence's logits may be off beside another one, in the type's own precision: products are cut differently.
PROBE_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.1}


def attention(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    """torch's own attention [B, heads, T, size], over each packed sequence alone. `packed_lengths`: of a single row."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    lengths = options.pop("packed_lengths", None)
    window = options.pop("sliding_window", None)
    unknown = [name for name in ("softcap", "s_aux") if options.get(name) is not None]
    if unknown or attention_mask is not None:
        what = f"'{unknown[0]}'" if unknown else "a mask of its own"
        raise BadDataError(f"Cannot pack sequences as this model's attention has {what}: set trainer.packing: false")
    parts = []
    for q, k, v in zip(*(part.split(lengths or [part.shape[2]], dim=2) for part in (query, key, value))):
        mask = _band(q.shape[2], window, q.device)
        parts.append(sdpa_attention_forward(module, q, k, v, mask, **options)[0])
    return torch.cat(parts, dim=1), None  # [B, T, heads, size]


def _band(length: int, window: int | None, device: Any) -> Tensor | None:
    """[1, 1, T, T] what a sliding window lets a token see; None where it is all that comes before it."""
    if window is None or length <= window:
        return None
    places = torch.arange(length, device=device)
    back = places[:, None] - places[None]
    return ((back >= 0) & (back < window))[None, None]


def use_packed_attention(model: Any) -> None:
    """Makes `model` attend by `attention`. Rows that are not packed are computed as before."""
    from transformers import AttentionInterface

    AttentionInterface.register(ATTENTION, attention)
    model.set_attn_implementation(ATTENTION)


def packed_inputs(tokens: Tensor, lengths: Sequence[int]) -> tuple[dict[str, Any], Tensor]:
    """The model's arguments for rows [B, T] of these lengths, and each packed token's place in the flat rows: [L]."""
    kept = torch.cat([torch.arange(length) + row * tokens.shape[1] for row, length in enumerate(lengths)])
    positions = torch.cat([torch.arange(length) for length in lengths])[None]
    kept, positions = kept.to(tokens.device), positions.to(tokens.device)
    row = tokens.flatten()[kept][None]
    return {"input_ids": row, "position_ids": positions, "packed_lengths": list(lengths), "use_cache": False}, kept


@torch.no_grad()
def check_packing(model: Any, *, vocabulary: int, device: str) -> None:
    """
    Raises where packing would be silently wrong: a sequence's logits are as they are alone, and stay to the bit when
    its neighbour changes. Every rank runs the same forwards.
    """
    first, second = PROBE_LENGTHS
    tokens = (torch.arange(3 * second, device=device) * 7919 + 11) % vocabulary
    alone = tokens[:second][None]
    neighbours = [tokens[second : second + first], tokens[second + first : second + 2 * first]]
    try:
        expected = model(input_ids=alone, use_cache=False).logits[0].float()
        found = [_second_logits(model, neighbour, alone[0]) for neighbour in neighbours]
    except TypeError as error:
        raise BadDataError(
            f"Cannot pack sequences as this model does not take packed rows: {error}. Set trainer.packing: false"
        ) from error
    scale = PROBE_TOLERANCE[next(model.parameters()).dtype] * max(1.0, float(expected.abs().max()))
    off = float((found[0] - expected).abs().max())
    if not torch.equal(*found) or not off <= scale:
        raise BadDataError(
            "Cannot pack sequences as in this model a token sees the sequence before its own: logits are off by up to "
            f"{off:.3g} beside another sequence. Set trainer.packing: false"
        )


def _second_logits(model: Any, neighbour: Tensor, tokens: Tensor) -> Tensor:
    rows = torch.nn.utils.rnn.pad_sequence([neighbour, tokens], batch_first=True)
    inputs, _ = packed_inputs(rows, [len(neighbour), len(tokens)])
    return model(**inputs).logits[0, len(neighbour) :].float()
