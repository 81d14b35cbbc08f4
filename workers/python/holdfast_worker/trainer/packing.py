"""
Packed rows: sequences one after the other in one row, without padding. Positions restart with each
sequence, and attention covers each separately, so no token sees another sequence. The common
beginning of a group's rows appears once (`families.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer.model.families import Kernel, PackedFamilies, band
from holdfast_worker.trainer.model.output_head import ModelInputs

ATTENTION = "holdfast_packed"  # Its name in transformers' table of attention functions.
PROBE_LENGTHS = (5, 9)
PROBE_SHARED = 3
# How much a sequence's logits may differ next to another one, in the type's precision, because
# products are split differently.
PROBE_TOLERANCE = {torch.float32: 1e-4, torch.float16: 0.02, torch.bfloat16: 0.1}


def attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **options: Any,
) -> tuple[Tensor, None]:
    """
    torch's own attention [B, heads, T, size]. `packed`: how the sequences are laid out in a single
    row.
    """
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    layout = options.pop("packed", None) or OneByOne([query.shape[2]])
    window = options.pop("sliding_window", None)
    unknown = [name for name in ("softcap", "s_aux") if options.get(name) is not None]
    if unknown or attention_mask is not None:
        what = f"'{unknown[0]}'" if unknown else "a custom mask"
        raise BadDataError(
            f"Cannot pack sequences because this model's attention has {what}: set trainer.packing: false"
        )

    def kernel(query: Tensor, key: Tensor, value: Tensor, mask: Any) -> Tensor:
        return sdpa_attention_forward(module, query, key, value, mask, **options)[0]

    return layout.attend(kernel, query, key, value, window=window), None  # [B, T, heads, size]


class PackedRows(Protocol):
    """
    The part of a micro-batch that packing reads. If `shared` is empty, rows have nothing in common.
    """

    tokens: Tensor  # [B, T] int64, right padded

    @property
    def lengths(self) -> Sequence[int]:
        """[B] tokens without padding."""
        ...

    @property
    def groups(self) -> Sequence[int]:
        """[B]"""
        ...

    @property
    def shared(self) -> Sequence[int]:
        """[B] tokens that a row's family starts with; empty: none."""
        ...


class OneByOne:
    """
    Sequences that have nothing in common: attention costs as much as for separate sequences, and no
    mask of row x row tokens is created.
    """

    def __init__(self, lengths: Sequence[int]) -> None:
        self.lengths = list(lengths)

    def attend(self, kernel: Kernel, *parts: Tensor, window: int | None) -> Tensor:
        sequences = zip(*(part.split(self.lengths, dim=2) for part in parts))
        return torch.cat(
            [kernel(*one, band(one[0].shape[2], window, one[0].device)) for one in sequences], dim=1
        )


def use_packed_attention(model: Any) -> None:
    """Makes `model` use `attention`. Rows that are not packed are computed as before."""
    from transformers import AttentionInterface

    AttentionInterface.register(ATTENTION, attention)
    model.set_attn_implementation(ATTENTION)


@dataclass
class PackedRow:
    """The model's arguments, and where packed tokens come from: L of B rows of at most T."""

    inputs: ModelInputs
    kept: Tensor  # [L] place of each in the flat rows
    where: Tensor  # [B, T] place of each token in the packed row; for padding, any place of its row


def packed_row(rows: PackedRows) -> PackedRow:
    """All tokens of the rows, each family's common beginning once."""
    layout = PackedFamilies(rows.lengths, rows.groups, rows.shared or [0] * len(rows.lengths))
    device = rows.tokens.device
    kept, positions = layout.kept.to(device), layout.positions.to(device)
    where = torch.from_numpy(layout.where).to(device)
    row = rows.tokens.flatten()[kept][None]
    how = layout.to(device) if any(layout.shared) else OneByOne(layout.lengths)
    inputs = {"input_ids": row, "position_ids": positions[None], "packed": how, "use_cache": False}
    return PackedRow(inputs, kept, where)


@dataclass
class _Rows:
    tokens: Tensor
    lengths: list[int]
    groups: list[int]
    shared: list[int]


@torch.no_grad()
def check_packing(model: Any, *, vocabulary: int, device: str) -> None:
    """
    Raises if packing would be silently wrong: a sequence's logits must equal those it has alone,
    and stay bit-identical when the other sequence changes, whether or not that belongs to its
    family. Every rank runs the same forwards.
    """
    first, second = PROBE_LENGTHS
    tokens = (torch.arange(3 * second, device=device) * 7919 + 11) % vocabulary
    alone = tokens[:second]
    neighbours = [tokens[second : second + first], tokens[second + first : second + 2 * first]]
    try:
        expected = model(input_ids=alone[None], use_cache=False).logits[0].float()
        for shared in (0, PROBE_SHARED):
            found = [
                _logits_beside(model, torch.cat([alone[:shared], neighbour]), alone, shared)
                for neighbour in neighbours
            ]
            _check(found, expected, PROBE_TOLERANCE[next(model.parameters()).dtype])
    except TypeError as error:
        raise BadDataError(
            f"Cannot pack sequences because this model does not accept packed rows: {error}. Set trainer.packing: false"
        ) from error


def _check(found: list[Tensor], expected: Tensor, tolerance: float) -> None:
    off = float((found[0] - expected).abs().max())
    if not torch.equal(*found) or not off <= tolerance * max(1.0, float(expected.abs().max())):
        raise BadDataError(
            "Cannot pack sequences because in this model a token sees the sequence before its own: "
            f"logits differ by up to {off:.3g} next to another sequence. Set trainer.packing: false"
        )


def _logits_beside(model: Any, neighbour: Tensor, tokens: Tensor, shared: int) -> Tensor:
    """[T, V] of `tokens` after a neighbour that starts with the same `shared` tokens."""
    rows = torch.nn.utils.rnn.pad_sequence([neighbour, tokens], batch_first=True)
    groups = [0, 0] if shared else [0, 1]
    row = packed_row(_Rows(rows, [len(neighbour), len(tokens)], groups, [shared] * 2))
    return model(**row.inputs).logits[0].float()[row.where[1, : len(tokens)]]
