"""One optimizer step of a loss program: whole-step sums, then one backward per micro-batch. Knows no model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from holdfast_worker.loss.interpreter import MicroBatchValues
from holdfast_worker.loss.mismatch import mismatch
from holdfast_worker.loss.program import COUNTS, LENGTHS, LIVE, LossProgram
from holdfast_worker.loss.ragged import StepValues, ragged

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
    lengths: list[int] = field(default_factory=list)  # tokens of each row without padding, as far as they are known
    shared: list[int] = field(default_factory=list)  # tokens that a row's group begins with and that are computed once


@dataclass
class Counts:
    """Denominators of the whole step over all ranks. Sequences without a trained token count nowhere."""

    n_tokens: int
    n_sequences: int
    n_groups: int
    n_pairs: int = 0
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
    """
    What a step computed. If the loss is not `finite`, neither are its gradients, on any rank: the engine's own check of
    their norm keeps every rank from stepping. `slopes`: of each micro-batch, the places of its rows in the step and the
    loss's gradient with respect to its live inputs, by which `steepest` finds what made a norm not finite.
    """

    loss: float
    metrics: dict[str, float]
    finite: bool
    culprit: Culprit | None
    slopes: list[tuple[list[int], dict[str, Tensor]]] = field(default_factory=list, compare=False, repr=False)


def count_step(masks: Iterable[Sequence[Any]], groups: Sequence[int], *, pairs: bool = False) -> Counts:
    """
    Counts of one step from the masks [N][T] and group numbers [N] of all its sequences, in batch order. With `pairs`
    they are chosen, rejected, chosen, ...
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


class StepWork(Protocol):
    """One rank's part of a step, as the program computes it. Every rank calls `resolve` and `report`."""

    def resolve(self, forward: Forward, logp_current: str | None) -> None:
        """What the loss needs of the whole step before its gradient can be taken."""

    def share(self, mb: MicroBatch, live: Mapping[str, Tensor]) -> Tensor:
        """What a micro-batch adds to the loss, up to terms without gradient."""

    def culprit(self, kept: Sequence[Mapping[str, Tensor]]) -> Culprit:
        """The first value of this rank that is not finite. `kept`: the live inputs of each micro-batch."""

    def report(self, kept: Sequence[Mapping[str, Tensor]]) -> StepOutcome:
        """Loss and metrics of the whole step."""


class Program(Protocol):
    """A loss that can be trained on: `LossProgram`, or an algorithm in Python."""

    live: set[str]
    columns: set[str]

    def open_step(
        self, micro_batches: Sequence[MicroBatch], counts: Counts, coef: dict[str, float], gather: Gather
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
    clip: Mapping[str, Any] | None = None,
) -> StepOutcome:
    """
    Gradient of one optimizer step. `forward(mb, need)` gives the live inputs [B, T] with gradient; `backward(loss,
    boundary)` gets each micro-batch's share times `world_size`, boundary on the last. All ranks bring equally many
    micro-batches. `coef`: values by name, without the prefix. `logp_current` names a column that holds `logp` under
    the parameters as they are, which saves the forward of a statistic. `clip`: `mismatch` is among the metrics, unless
    the loss has one of that name; None: it is not.
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
            culprits = gather(None if bool(torch.isfinite(torch.stack(shares)).all()) else work.culprit(kept))
            found = sorted((culprit for culprit in culprits if culprit is not None), key=_order)
        backward(_not_finite(live) if found else share * world_size, last)
    if found:
        return StepOutcome(math.nan, {}, False, found[0])
    outcome = work.report(kept)
    outcome.slopes = slopes
    if clip is not None:
        outcome.metrics = {**mismatch(micro_batches, kept, clip=clip, gather=gather), **outcome.metrics}
    return outcome


def _watched(live: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Filled by the backward that follows: the gradient of each live input. None that it does not reach."""
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
    The live input with the largest gradient over all ranks, not a number above all. `node` is -1: the loss is sound.
    """
    found: list[tuple[float, str, int, int | None]] = []
    for sequences, slopes in outcome.slopes:
        for name, slope in slopes.items():
            sizes = torch.nan_to_num(slope.float().abs(), nan=math.inf, posinf=math.inf)
            place = [int(x) for x in torch.unravel_index(sizes.argmax(), sizes.shape)]
            found.append((float(sizes.max()), name, sequences[place[0]], place[1] if len(place) > 1 else None))
    most = max(found, key=lambda one: one[0], default=None)
    candidates = [one for one in gather(most) if one is not None]
    if not candidates:
        return None
    _, name, sequence, token = max(candidates, key=lambda one: one[0])
    return Culprit(-1, name, sequence, token)


def check_micro_batches(micro_batches: Sequence[MicroBatch], numbers: list[int], *, pairs: bool) -> None:
    """What would hang or be silently wrong later. `numbers`: how many each rank brings."""
    if len(set(numbers)) != 1 or numbers[0] == 0:
        raise ValueError(f"Cannot run a step because ranks bring different numbers of micro-batches: {numbers}")
    if pairs and any(len(mb.sequences) % 2 for mb in micro_batches):
        raise ValueError(
            "Cannot run a step of pairs because a micro-batch has an odd number of rows: pairs are never cut"
        )


def column(mb: MicroBatch, name: str, kind: str, counts: Counts) -> Tensor:
    """A non-live input as token [B, T], sequence [B] or pair [B / 2]."""
    if name == "length":
        return mb.mask.sum(-1)
    if name == "group_length":
        return torch.tensor([counts.group_length.get(group, 0) for group in mb.groups], device=mb.mask.device)
    if name == "margin" and name not in mb.columns:
        return torch.zeros(len(mb.sequences) // 2, device=mb.mask.device)
    if name not in mb.columns:
        raise KeyError(f"Cannot compute the loss because it reads '{name}': current columns are {sorted(mb.columns)}")
    values = mb.columns[name]
    return values.unsqueeze(-1).expand(mb.mask.shape) if kind == "token" and values.dim() == 1 else values


def _order(culprit: Culprit) -> tuple[int, ...]:
    return tuple(-1 if part is None else part for part in (culprit.node, culprit.sequence, culprit.token))


class ExpressionStep:
    """One rank's part of a step: its micro-batches, and the same sequences as ragged float64 data."""

    def __init__(
        self,
        program: LossProgram,
        micro_batches: Sequence[MicroBatch],
        counts: Counts,
        coef: dict[str, float],
        gather: Gather,
    ) -> None:
        self.program = program
        self.micro_batches = micro_batches
        self.counts = counts
        self.coef = coef
        self.gather = gather
        check_micro_batches(micro_batches, gather(len(micro_batches)), pairs=program.has_pairs)
        self.masks = [mb.mask.cpu().numpy() for mb in micro_batches]
        rows = [row for mb, mask in zip(micro_batches, self.masks) for row in zip(mb.sequences, mask)]
        self.data = ragged(rows)
        self.data.inputs.update(self._known())
        for name in program.inputs & (program.columns | LENGTHS):
            kind = next(node.kind for node in program.nodes if node.name == name)
            self.data.inputs[name] = self._flat([column(mb, name, kind, counts) for mb in micro_batches], kind)
        self.statistics = StepValues(program, self.data, gather)

    def resolve(self, forward: Forward, logp_current: str | None) -> None:
        if self.program.live_statistics:
            self.data.inputs.update(self._live_columns(forward, logp_current))
        self.statistics.resolve(self.program.statistics)

    def share(self, mb: MicroBatch, live: Mapping[str, Tensor]) -> Tensor:
        return self._values(mb, live).share()

    def _known(self) -> dict[str, float]:
        """The inputs that are one number per step."""
        numbers = {f"coef.{name}": float(value) for name, value in self.coef.items()}
        missing = sorted(self.program.coef - set(numbers))
        if missing:
            raise KeyError(
                f"Cannot compute the loss because it reads '{missing[0]}': current coefficients are {sorted(numbers)}"
            )
        return {**numbers, **{name: float(getattr(self.counts, name)) for name in COUNTS}}

    def _flat(self, tensors: Sequence[Tensor], kind: str) -> np.ndarray:
        """Float64 values of the real rows: token [n], sequence [S] or pair [P]."""
        parts = [np.zeros(0)]
        for mb, mask, tensor in zip(self.micro_batches, self.masks, tensors, strict=True):
            real = np.array(mb.sequences) >= 0
            array = tensor.detach().to("cpu", torch.float64).numpy()
            keep = {"token": mask & real[:, None], "sequence": real, "pair": real[::2]}[kind]
            parts.append(array[keep])
        return np.concatenate(parts)

    def _live_columns(self, forward: Forward, logp_current: str | None) -> dict[str, np.ndarray]:
        """The live inputs that statistics read: one forward without gradient over the step."""
        below = self.program.below(self.program.statistics)
        need = {self.program.nodes[i].name for i in below} & LIVE
        if need == {"logp"} and logp_current is not None:
            current = [column(mb, logp_current, "token", self.counts) for mb in self.micro_batches]
            return {"logp": self._flat(current, "token")}
        with torch.no_grad():
            return self._live_flat([forward(mb, set(need)) for mb in self.micro_batches], need)

    def _live_flat(self, live: Sequence[Mapping[str, Tensor]], need: Iterable[str]) -> dict[str, np.ndarray]:
        return {
            name: self._flat([values[name] for values in live], "sequence" if name == "score" else "token")
            for name in sorted(need)
        }

    def _values(self, mb: MicroBatch, live: Mapping[str, Tensor]) -> MicroBatchValues:
        """The program on one micro-batch, computed in float32, or in float64 where the model is."""
        double = any(value.dtype == torch.float64 for value in live.values())
        kinds = {node.name: node.kind for node in self.program.nodes}
        return MicroBatchValues(
            self.program,
            mb.mask,
            read=lambda name: live[name] if name in LIVE else column(mb, name, kinds[name], self.counts),
            whole=lambda i: float(self.statistics.value(i)),
            dtype=torch.float64 if double else torch.float32,
        )

    @torch.no_grad()
    def culprit(self, kept: Sequence[Mapping[str, Tensor]]) -> Culprit:
        found: list[tuple[int, int | None, int | None]] = []
        for mb, live in zip(self.micro_batches, kept):
            bad = self._values(mb, live).first_not_finite()
            if bad is not None:
                found.append(self._place(mb, *bad))
        whole = self.statistics.first_not_finite()
        found += [] if whole is None else [whole]
        if not found:  # Every value is finite, so the sum itself left the range of the type: mostly by this one.
            found = [self._largest(kept)]
        node, sequence, token = min(found, key=lambda bad: bad[0])
        return Culprit(node, self.program.describe(node), sequence, token)

    def _largest(self, kept: Sequence[Mapping[str, Tensor]]) -> tuple[int, int | None, int | None]:
        sizes = [self._values(mb, live).largest() for mb, live in zip(self.micro_batches, kept)]
        place = max(range(len(sizes)), key=lambda i: sizes[i][0])
        _, node, index = sizes[place]
        return self._place(self.micro_batches[place], node, index)

    def _place(self, mb: MicroBatch, node: int, index: tuple[int, ...]) -> tuple[int, int, int | None]:
        row = index[0] * (2 if self.program.nodes[node].kind == "pair" else 1)
        return node, mb.sequences[row], index[1] if len(index) > 1 else None

    def report(self, kept: Sequence[Mapping[str, Tensor]]) -> StepOutcome:
        """Loss and metrics in float64, added in batch order: the same bits for every cut. Costs no forward."""
        program = self.program
        self.data.inputs.update(self._live_flat(kept, program.live))
        values = StepValues(program, self.data, self.gather)
        values.sums.update(self.statistics.sums)
        roots = [program.root, *program.metrics.values()]
        values.resolve(program.sums_under(roots))
        metrics = {name: float(values.value(i)) for name, i in program.metrics.items()}
        # A metric may be 0 / 0 in a step that is sound; it is left out rather than stopping the run.
        finite = {name: value for name, value in metrics.items() if math.isfinite(value)}
        return StepOutcome(float(values.value(program.root)), finite, True, None)
