"""A recorded expression as a program that `run_step` can run, and one rank's part of a step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast_worker.loss.expression import COUNTS, LENGTHS, LIVE, LossExpression
from holdfast_worker.loss.interpreter import MicroBatchValues
from holdfast_worker.loss.micro_batch import Counts, MicroBatch, check_micro_batches, column
from holdfast_worker.loss.ragged import StepValues, ragged
from holdfast_worker.loss.step import Culprit, Forward, Gather, StepOutcome


class ExpressionStep:
    """
    One rank's part of a step: its micro-batches, and the same sequences as ragged float64 data.
    """

    def __init__(
        self,
        program: LossExpression,
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
        rows = [
            row for mb, mask in zip(micro_batches, self.masks) for row in zip(mb.sequences, mask)
        ]
        self.data = ragged(rows)
        self.data.inputs.update(self._known())
        for name in program.inputs & (program.columns | LENGTHS):
            kind = next(node.kind for node in program.nodes if node.name == name)
            self.data.inputs[name] = self._flat(
                [column(mb, name, kind, counts) for mb in micro_batches], kind
            )
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
                f"Cannot compute the loss because it reads '{missing[0]}': current coefficients "
                f"are {sorted(numbers)}"
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

    def _live_flat(
        self, live: Sequence[Mapping[str, Tensor]], need: Iterable[str]
    ) -> dict[str, np.ndarray]:
        return {
            name: self._flat(
                [values[name] for values in live], "sequence" if name == "score" else "token"
            )
            for name in sorted(need)
        }

    def _values(self, mb: MicroBatch, live: Mapping[str, Tensor]) -> MicroBatchValues:
        """The program on one micro-batch, computed in float32, or in float64 where the model is."""
        double = any(value.dtype == torch.float64 for value in live.values())
        kinds = {node.name: node.kind for node in self.program.nodes}
        return MicroBatchValues(
            self.program,
            mb.mask,
            read=lambda name: (
                live[name] if name in LIVE else column(mb, name, kinds[name], self.counts)
            ),
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
        # Every value is finite, so the sum itself left the range of the type: mostly by this one.
        if not found:
            found = [self._largest(kept)]
        node, sequence, token = min(found, key=lambda bad: bad[0])
        return Culprit(node, self.program.describe(node), sequence, token)

    def _largest(self, kept: Sequence[Mapping[str, Tensor]]) -> tuple[int, int | None, int | None]:
        sizes = [self._values(mb, live).largest() for mb, live in zip(self.micro_batches, kept)]
        place = max(range(len(sizes)), key=lambda i: sizes[i][0])
        _, node, index = sizes[place]
        return self._place(self.micro_batches[place], node, index)

    def _place(
        self, mb: MicroBatch, node: int, index: tuple[int, ...]
    ) -> tuple[int, int, int | None]:
        row = index[0] * (2 if self.program.nodes[node].kind == "pair" else 1)
        return node, mb.sequences[row], index[1] if len(index) > 1 else None

    def report(self, kept: Sequence[Mapping[str, Tensor]]) -> StepOutcome:
        """
        Loss and metrics in float64, added in batch order: the same bits for every cut. Costs no
        forward.
        """
        program = self.program
        self.data.inputs.update(self._live_flat(kept, program.live))
        values = StepValues(program, self.data, self.gather)
        values.sums.update(self.statistics.sums)
        roots = [program.root, *program.metrics.values()]
        values.resolve(program.sums_under(roots))
        metrics = {name: float(values.value(i)) for name, i in program.metrics.items()}
        # A metric may be 0 / 0 in a valid step; it is omitted rather than stopping the run.
        finite = {name: value for name, value in metrics.items() if math.isfinite(value)}
        return StepOutcome(float(values.value(program.root)), finite, True, None)


class LossProgram(LossExpression):
    """A loss expression that can be trained on."""

    def open_step(self, *step: Any) -> Any:
        """This rank's part of a step, as requested by `run_step`."""
        return ExpressionStep(self, *step)
