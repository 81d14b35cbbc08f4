"""One optimizer step of an algorithm in Python: the counterpart of `ExpressionStep`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from holdfast_worker.algorithm.answer import (
    REDUCTIONS,
    Answer,
    Term,
    read_answer,
    same_number,
    statistics_of,
)
from holdfast_worker.algorithm.first_not_finite import FirstNotFinite
from holdfast_worker.algorithm.inputs import Inputs, Sums, kind_of, widened
from holdfast_worker.algorithm.source import AlgorithmError
from holdfast_worker.loss.expression import COUNTS, LIVE
from holdfast_worker.loss.micro_batch import Counts, MicroBatch, check_micro_batches, column
from holdfast_worker.loss.step import Culprit, Forward, StepOutcome

Parts = dict[int, float]


class CalledProgram(Protocol):
    """What a step needs from a loss: its functions, and what they read."""

    file: str
    part: str
    has_statistics: bool
    has_pairs: bool
    old_is_current: bool
    statistics_live: set[str]

    def check_known(self, name: str) -> None:
        """Raises if the loss did not read this input when it was opened."""

    def call_statistics(self, x: Inputs) -> Any: ...

    def call_loss(self, x: Inputs, s: Sums) -> Any: ...


class PythonStep:
    """
    One rank's part of a step. `statistics` and `loss` of the file are called once for each
    micro-batch. Sums over the step are added in float64 in batch order, regardless of the split.
    """

    def __init__(
        self,
        program: CalledProgram,
        micro_batches: Sequence[MicroBatch],
        counts: Counts,
        coef: dict[str, float],
        gather: Callable[[Any], list[Any]],
    ) -> None:
        self.program = program
        self.micro_batches = micro_batches
        self.counts = counts
        self.coef = coef
        self.gather = gather
        self.sums: dict[str, float] = {}
        self.reductions: list[str] = []  # Of the terms of the loss.
        self.loss_parts: list[Parts] = []  # Of the same terms.
        self.metric_parts: dict[str, tuple[str, Parts] | float] = {}
        check_micro_batches(micro_batches, gather(len(micro_batches)), pairs=program.has_pairs)

    def resolve(self, forward: Forward, logp_current: str | None) -> None:
        """The sums of `statistics`, without gradient. All ranks call it."""
        if not self.program.has_statistics:
            return
        parts: dict[str, Parts] = {}
        for mb in self.micro_batches:
            for name, term in self._statistics(mb, forward, logp_current).items():
                parts.setdefault(name, {}).update(term.parts(mb.sequences))
        everyone = self.gather(parts)
        self.sums = {
            name: summed([rank.get(name, {}) for rank in everyone]) for name in sorted(parts)
        }

    @torch.no_grad()
    def _statistics(
        self, mb: MicroBatch, forward: Forward, logp_current: str | None
    ) -> dict[str, Term]:
        need = set(self.program.statistics_live)
        live: dict[str, Tensor] = {}
        if need == {"logp"} and logp_current is not None:
            live["logp"] = column(mb, logp_current, "token", self.counts)
        elif need:
            live = forward(mb, need)
        return self._statistics_of(mb, live)

    def _statistics_of(self, mb: MicroBatch, live: Mapping[str, Tensor]) -> dict[str, Term]:
        x = self._inputs(mb, live, torch.float64)
        return statistics_of(
            x, self.program.call_statistics(x), f"statistics() of {self.program.file}"
        )

    def share(self, mb: MicroBatch, live: Mapping[str, Tensor]) -> Tensor:
        """Also keeps what the micro-batch adds to the report."""
        x, answer = self._answer(mb, live)
        self._keep(mb, answer)
        share = sum(
            (term.share() / self._count(term.reduction) for term in answer.terms), torch.zeros(())
        )
        if (
            not share.requires_grad
        ):  # It read nothing live of these sequences: its gradient is 0, not an error.
            share = share + 0.0 * sum(x._trained(name, live[name]).sum() for name in sorted(live))
        return share

    def _answer(self, mb: MicroBatch, live: Mapping[str, Tensor]) -> tuple[Inputs, Answer]:
        double = any(value.dtype == torch.float64 for value in live.values())
        x = self._inputs(mb, live, torch.float64 if double else torch.float32)
        returned = self.program.call_loss(x, Sums(self.sums, mb.mask.device))
        return x, read_answer(x, returned, f"{self.program.part}() of {self.program.file}")

    def _inputs(self, mb: MicroBatch, live: Mapping[str, Tensor], dtype: torch.dtype) -> Inputs:
        def read(name: str) -> Tensor:
            self.program.check_known(name)
            if name in LIVE:
                return live[name]
            if name not in COUNTS and not name.startswith("coef."):
                return column(mb, name, kind_of(name), self.counts)
            number = self._coefficient(name) if name not in COUNTS else getattr(self.counts, name)
            return torch.tensor(float(number), dtype=torch.float64, device=mb.mask.device)

        return Inputs(mb.mask, read, dtype=dtype, old_is_current=self.program.old_is_current)

    def _coefficient(self, name: str) -> float:
        if name[5:] not in self.coef:
            raise KeyError(
                f"Cannot compute the loss because it reads '{name}': current coefficients are "
                f"{sorted(self.coef)}"
            )
        return self.coef[name[5:]]

    def _count(self, reduction: str) -> int:
        name = REDUCTIONS[reduction]
        count = 1 if name is None else getattr(self.counts, name)
        if count == 0:
            raise AlgorithmError(
                f"Cannot reduce by {reduction} because {name} of the step is 0: use another "
                "reduction"
            )
        return count

    def _keep(self, mb: MicroBatch, answer: Answer) -> None:
        self.reductions = [term.reduction for term in answer.terms]
        self.loss_parts = self.loss_parts or [{} for _ in answer.terms]
        for parts, term in zip(self.loss_parts, answer.terms, strict=True):
            parts.update(term.parts(mb.sequences))
        for name, value in answer.metrics.items():
            if isinstance(value, Term):
                kept = self.metric_parts.setdefault(name, (value.reduction, {}))
                kept[1].update(value.parts(mb.sequences))
            elif not same_number(self.metric_parts.setdefault(name, value), value):
                raise AlgorithmError(
                    f"Cannot report the metric '{name}' of {self.program.file} because it differs "
                    "in each "
                    'micro-batch: return ("token_mean", tensor) instead'
                )

    def loss_by_sequence(self) -> np.ndarray:
        """
        What each row (or each pair's first row) of this rank's only micro-batch adds to the loss.
        """
        (mb,) = self.micro_batches
        parts = [
            (one, self._count(reduction))
            for one, reduction in zip(self.loss_parts, self.reductions)
        ]
        return np.array(
            [sum(one.get(place, 0.0) / count for one, count in parts) for place in mb.sequences]
        )

    def report(self, kept: Sequence[Mapping[str, Tensor]]) -> StepOutcome:
        """Loss and metrics over the whole step. Costs no forward and no call."""
        everyone = self.gather((self.loss_parts, self.metric_parts))
        loss = 0.0
        for i, reduction in enumerate(self.reductions):
            loss += summed([rank[0][i] for rank in everyone]) / self._count(reduction)
        metrics: dict[str, float] = {}
        for name, value in self.metric_parts.items():
            if isinstance(value, float):
                metrics[name] = value
            else:
                metrics[name] = summed([rank[1][name][1] for rank in everyone]) / self._count(
                    value[0]
                )
        finite = {name: value for name, value in sorted(metrics.items()) if math.isfinite(value)}
        return StepOutcome(loss, finite, True, None)

    def culprit(self, kept: Sequence[Mapping[str, Tensor]]) -> Culprit:
        """Named by the line of the file that computed it."""
        found: list[Culprit] = []
        for mb, live in zip(self.micro_batches, kept):
            with FirstNotFinite(self.program.file, mb.sequences, widened(mb.mask)) as watch:
                if self.program.has_statistics:
                    self._statistics_of(mb, live)
                self._answer(mb, live)
            found += [] if watch.culprit is None else [watch.culprit]
        # Every value is finite, so a sum left the range of the type.
        overflow = Culprit(
            0, f"a sum that {self.program.part}() of {self.program.file} asks for", None, None
        )
        return min(found, key=lambda one: one.node, default=overflow)


def summed(parts: Sequence[Parts]) -> float:
    """The sum over all ranks, in batch order."""
    everything = {place: part for rank in parts for place, part in rank.items()}
    return float(np.array([everything[place] for place in sorted(everything)], np.float64).sum())
