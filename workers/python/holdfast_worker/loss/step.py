"""One optimizer step of a loss program: whole-step sums, then one backward per micro-batch. Knows no model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from holdfast_worker.loss.program import LossProgram

Forward = Callable[["MicroBatch", set[str]], dict[str, Tensor]]
Backward = Callable[[Tensor, bool], None]
Gather = Callable[[Any], list[Any]]


@dataclass
class MicroBatch:
    """Whole sequences (or pairs: rows 2p and 2p + 1 are chosen and rejected), padded on the right."""

    tokens: Tensor  # [B, T] int64
    mask: Tensor  # [B, T] bool, 1 on trained tokens; position t is the target
    columns: dict[str, Tensor]  # token inputs [B, T], sequence inputs [B], margin [B / 2]
    sequences: list[int]  # place of each row in the step's batch order; -1: an all-masked filler
    groups: list[int]  # group number of each row


@dataclass
class Counts:
    """Denominators of the whole step over all ranks. Sequences without a trained token count nowhere."""

    n_tokens: int
    n_sequences: int
    n_groups: int
    n_pairs: int
    group_length: dict[int, int] = field(default_factory=dict)  # unmasked tokens of each group


@dataclass
class Culprit:
    """The first value that is not finite: node in computing order, place of the sequence, position of the token."""

    node: int
    text: str
    sequence: int | None
    token: int | None


@dataclass
class StepOutcome:
    """What a step computed. If not `finite`, no rank may step; its gradients are to be thrown away."""

    loss: float
    metrics: dict[str, float]
    finite: bool
    culprit: Culprit | None


def count_step(masks: Iterable[Sequence[Any]], groups: Sequence[int], *, pairs: bool = False) -> Counts:
    """
    Counts of one step from the masks [N][T] and group numbers [N] of all its sequences, in batch order. With `pairs`
    they are chosen, rejected, chosen, ...
    """
    lengths = [int(sum(bool(bit) for bit in mask)) for mask in masks]
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


def run_step(
    program: LossProgram,
    micro_batches: Sequence[MicroBatch],
    *,
    counts: Counts,
    forward: Forward,
    backward: Backward,
    gather: Gather,
    world_size: int,
    coef: Mapping[str, float] | None = None,
    logp_current: str | None = None,
) -> StepOutcome:
    """
    Gradient of one optimizer step. `forward(mb, need)` gives the live inputs [B, T] with gradient; `backward(loss,
    boundary)` gets each micro-batch's share times `world_size`, boundary on the last. All ranks bring equally many
    micro-batches. `coef`: values by name, without the prefix. `logp_current` names a column that holds `logp` under
    the parameters as they are, which saves the forward of a statistic.
    """
    raise NotImplementedError
