"""The input of one optimizer step: micro-batches, and the counts of the whole step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass
class MicroBatch:
    """
    Whole sequences (or pairs: rows 2p and 2p + 1 are chosen and rejected), padded on the right.
    """

    tokens: Tensor  # [B, T] int64
    mask: Tensor  # [B, T] bool, 1 on trained tokens; position t is the target
    columns: dict[str, Tensor]  # token inputs [B, T], sequence inputs [B], margin [B / 2]
    sequences: list[int]  # place of each row in the step's batch order; -1: an all-masked filler
    groups: list[int]  # group number of each row
    lengths: list[int] = field(
        default_factory=list[int]
    )  # tokens of each row without padding, where known
    # Of each row: the tokens that its group starts with, computed once.
    shared: list[int] = field(default_factory=list[int])


@dataclass
class Counts:
    """
    Denominators of the whole step over all ranks. Sequences without a trained token count nowhere.
    """

    n_tokens: int
    n_sequences: int
    n_groups: int
    n_pairs: int = 0
    group_length: dict[int, int] = field(
        default_factory=dict[int, int]
    )  # unmasked tokens of each group


def count_step(
    masks: Iterable[Sequence[Any] | NDArray[Any]], groups: Sequence[int], *, pairs: bool = False
) -> Counts:
    """
    Counts of one step from the masks [N][T] and group numbers [N] of all its sequences, in batch
    order. With `pairs` they are chosen, rejected, chosen, ...
    """
    lengths = [int(np.count_nonzero(np.asarray(mask))) for mask in masks]
    group_length: dict[int, int] = {}
    for length, group in zip(lengths, groups, strict=True):
        group_length[group] = group_length.get(group, 0) + length
    return Counts(
        n_tokens=sum(lengths),
        n_sequences=sum(length > 0 for length in lengths),
        n_groups=sum(length > 0 for length in group_length.values()),
        n_pairs=sum(min(both) > 0 for both in zip(lengths[::2], lengths[1::2])) if pairs else 0,
        group_length=group_length,
    )


def check_micro_batches(
    micro_batches: Sequence[MicroBatch], numbers: list[int], *, pairs: bool
) -> None:
    """Refuses what would later hang or be silently wrong. `numbers`: how many each rank has."""
    if len(set(numbers)) != 1 or numbers[0] == 0:
        raise ValueError(
            f"Cannot run a step because ranks bring different numbers of micro-batches: {numbers}"
        )
    if pairs and any(len(mb.sequences) % 2 for mb in micro_batches):
        raise ValueError(
            "Cannot run a step of pairs because a micro-batch has an odd number of rows: pairs are "
            "never cut"
        )


def column(mb: MicroBatch, name: str, kind: str, counts: Counts) -> Tensor:
    """A non-live input as token [B, T], sequence [B] or pair [B / 2]."""
    if name == "length":
        return mb.mask.sum(-1)
    if name == "group_length":
        return torch.tensor(
            [counts.group_length.get(group, 0) for group in mb.groups], device=mb.mask.device
        )
    if name == "margin" and name not in mb.columns:
        return torch.zeros(len(mb.sequences) // 2, device=mb.mask.device)
    if name not in mb.columns:
        raise KeyError(
            f"Cannot compute the loss because it reads '{name}': current columns are "
            f"{sorted(mb.columns)}"
        )
    values = mb.columns[name]
    return (
        values.unsqueeze(-1).expand(mb.mask.shape)
        if kind == "token" and values.dim() == 1
        else values
    )
