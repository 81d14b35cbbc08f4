"""
One optimizer step of a loss program: whole-step sums, then one backward per micro-batch. Knows no
model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from holdfast_worker.loss.micro_batch import Counts, MicroBatch
from holdfast_worker.loss.mismatch import mismatch
from holdfast_worker.wire.types import RatioBounds

Forward = Callable[[MicroBatch, set[str]], dict[str, Tensor]]
Backward = Callable[[Tensor, bool], None]
Gather = Callable[[Any], list[Any]]


@dataclass
class Culprit:
    """
    The first value that is not finite: node in computing order, place of the sequence, position of
    the token.
    """

    node: int
    text: str
    sequence: int | None
    token: int | None


@dataclass
class StepOutcome:
    """
    What a step computed. If the loss is not `finite`, neither are its gradients, on any rank: the
    engine's own check of their norm keeps every rank from stepping. `slopes`: of each micro-batch,
    the places of its rows in the step and the loss's gradient with respect to its live inputs, by
    which `steepest` finds what made a norm not finite.
    """

    loss: float
    metrics: dict[str, float]
    finite: bool
    culprit: Culprit | None
    slopes: list[tuple[list[int], dict[str, Tensor]]] = field(
        default_factory=list, compare=False, repr=False
    )


class StepWork(Protocol):
    """
    One rank's part of a step, as the program computes it. Every rank calls `resolve` and `report`.
    """

    def resolve(self, forward: Forward, logp_current: str | None) -> None:
        """What the loss needs of the whole step before its gradient can be taken."""

    def share(self, mb: MicroBatch, live: Mapping[str, Tensor]) -> Tensor:
        """What a micro-batch adds to the loss, up to terms without gradient."""

    def culprit(self, kept: Sequence[Mapping[str, Tensor]]) -> Culprit:
        """
        The first value of this rank that is not finite. `kept`: the live inputs of each
        micro-batch.
        """

    def report(self, kept: Sequence[Mapping[str, Tensor]]) -> StepOutcome:
        """Loss and metrics of the whole step."""


class Program(Protocol):
    """A loss that can be trained on: `LossProgram`, or an algorithm in Python."""

    live: set[str]
    columns: set[str]

    def open_step(
        self,
        micro_batches: Sequence[MicroBatch],
        counts: Counts,
        coef: dict[str, float],
        gather: Gather,
    ) -> StepWork: ...


def run_step(
    program: Program,
    micro_batches: Sequence[MicroBatch],
    *,
    counts: Counts,
    forward: Forward,
    backward: Backward,
    gather: Gather,
    world_size: int,
    coef: Mapping[str, float] | None = None,
    logp_current: str | None = None,
    clip: RatioBounds | None = None,
) -> StepOutcome:
    """
    Gradient of one optimizer step. `forward(mb, need)` gives the live inputs [B, T] with gradient;
    `backward(loss, boundary)` gets each micro-batch's share times `world_size`, boundary on the
    last. All ranks bring equally many micro-batches. `coef`: values by name, without the prefix.
    `logp_current` names a column that holds `logp` under the parameters as they are, which saves
    the forward of a statistic. `clip`: `mismatch` is among the metrics, unless the loss has one of
    that name; None: it is not.
    """
    work = program.open_step(micro_batches, counts, dict(coef or {}), gather)
    work.resolve(forward, logp_current)
    shares: list[Tensor] = []
    kept: list[dict[str, Tensor]] = []
    slopes: list[tuple[list[int], dict[str, Tensor]]] = []
    found: list[Culprit] = []
    for i, mb in enumerate(micro_batches):
        live = forward(mb, set(program.live))
        share = work.share(mb, live)
        shares.append(share.detach())
        kept.append({name: value.detach() for name, value in live.items()})
        slopes.append((mb.sequences, _watched(live)))
        last = i == len(micro_batches) - 1
        if last:  # Before the last gradient, which the engines take for the whole step's.
            culprits = gather(
                None if bool(torch.isfinite(torch.stack(shares)).all()) else work.culprit(kept)
            )
            found = sorted((culprit for culprit in culprits if culprit is not None), key=_order)
        backward(_not_finite(live) if found else share * world_size, last)
    if found:
        return StepOutcome(math.nan, {}, False, found[0])
    outcome = work.report(kept)
    outcome.slopes = slopes
    if clip is not None:
        outcome.metrics = {
            **mismatch(micro_batches, kept, clip=clip, gather=gather),
            **outcome.metrics,
        }
    return outcome


def _watched(live: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """
    Filled by the backward that follows: the gradient of each live input. None that it does not
    reach.
    """
    slopes: dict[str, Tensor] = {}
    for name, value in live.items():
        if value.requires_grad:
            value.register_hook(lambda slope, name=name: slopes.update({name: slope.detach()}))
    return slopes


def _not_finite(live: Mapping[str, Tensor]) -> Tensor:
    """A loss whose gradient is not a number for every parameter, whatever is masked."""
    return torch.stack([value.sum() for value in live.values()]).sum() * math.nan


def steepest(outcome: StepOutcome, gather: Gather) -> Culprit | None:
    """
    The live input with the largest gradient over all ranks, not a number above all. `node` is -1:
    the loss is sound.
    """
    found: list[tuple[float, str, int, int | None]] = []
    for sequences, slopes in outcome.slopes:
        for name, slope in slopes.items():
            sizes = torch.nan_to_num(slope.float().abs(), nan=math.inf, posinf=math.inf)
            place = [int(x) for x in torch.unravel_index(sizes.argmax(), sizes.shape)]
            found.append(
                (
                    float(sizes.max()),
                    name,
                    sequences[place[0]],
                    place[1] if len(place) > 1 else None,
                )
            )
    most = max(found, key=lambda one: one[0], default=None)
    candidates = [one for one in gather(most) if one is not None]
    if not candidates:
        return None
    _, name, sequence, token = max(candidates, key=lambda one: one[0])
    return Culprit(-1, name, sequence, token)


def _order(culprit: Culprit) -> tuple[int, ...]:
    return tuple(
        -1 if part is None else part for part in (culprit.node, culprit.sequence, culprit.token)
    )
