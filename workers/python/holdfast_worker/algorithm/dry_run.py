"""A loss tried on a synthetic step: what it reads, and whether it can be trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast_worker.algorithm.algorithm import AlgorithmLoss
from holdfast_worker.algorithm.inputs import KINDS, Inputs, kind_of
from holdfast_worker.algorithm.source import AlgorithmError
from holdfast_worker.algorithm.step import PythonStep
from holdfast_worker.loss.expression import LIVE
from holdfast_worker.loss.micro_batch import MicroBatch, count_step
from holdfast_worker.loss.step import StepOutcome, run_step

# Groups and pairs of unequal lengths; a hole in a mask.
GROUPS = [0, 0, 0, 0, 1, 1]
LENGTHS = [5, 3, 7, 4, 6, 8]
WHOLE = [[0, 1, 2, 3, 4, 5]]
CUT = [[4, 5], [-1, -1], [2, 3], [0, 1]]
PADDING = 3
LIVE_OF = {"loss": LIVE - {"values"}, "value_loss": {"values"}}
TOLERANCE = 1e-9  # In float64: what is left is rounding.


@dataclass
class Found:
    """`inputs`: all inputs that were read; `statistics_inputs`: those that `statistics` read."""

    inputs: set[str]
    statistics_inputs: set[str]
    metrics: list[str]
    has_pairs: bool


def dry_run(program: AlgorithmLoss) -> Found:
    """
    Runs the loss on the step as a whole and in pieces. Raises AlgorithmError if it cannot be
    trained on.
    """
    step = SyntheticStep(program)
    whole = step.run(WHOLE, padding=0)
    other = sorted(step.read & LIVE - LIVE_OF[program.part])
    if other:
        raise AlgorithmError(
            f"Cannot use {program.part}() of {program.file} "
            f"because it reads '{other[0]}', which a different model computes: "
            "only the value model's loss, value_loss(x, c, s), reads x.values"
        )
    if not any(np.any(gradient != 0) for gradient in whole.gradients.values()):
        raise AlgorithmError(
            f"Cannot train on {program.part}() of {program.file} "
            "because no gradient flows from it to the model: it must "
            f"depend on one of {', '.join(f'x.{name}' for name in sorted(LIVE_OF[program.part]))} "
            "without .detach()"
        )
    if not whole.outcome.finite or not all(
        np.isfinite(gradient).all() for gradient in whole.gradients.values()
    ):
        culprit = whole.outcome.culprit
        place = f": first at {culprit.text}" if culprit else ": its gradient is not"
        raise AlgorithmError(
            f"Cannot train on {program.part}() of {program.file} because it is not finite{place}"
        )
    pieces = step.run(CUT, padding=PADDING)
    different = _differences(whole, pieces)
    if different:
        raise AlgorithmError(
            f"Cannot train on {program.part}() of {program.file} because {different} depends on "
            "how a step is "
            "split into micro-batches: values of the whole step come from statistics(x, c) and the "
            "counts x.n_tokens, x.n_sequences, ...; a tensor's own mean() or sum() sees one "
            "micro-batch only"
        )
    return Found(step.read, step.statistics_read, sorted(whole.outcome.metrics), step.has_pairs())


@dataclass
class Outcome:
    outcome: StepOutcome
    gradients: dict[str, np.ndarray]


def _differences(a: Outcome, b: Outcome) -> str:
    if not b.outcome.finite or not _near(a.outcome.loss, b.outcome.loss):
        return "it"
    if not all(_near(a.gradients[name], b.gradients[name]) for name in a.gradients):
        return "its gradient"
    other = [
        name
        for name, value in a.outcome.metrics.items()
        if not _near(value, b.outcome.metrics.get(name))
    ]
    return f"its metric '{other[0]}'" if other else ""


def _near(a: Any, b: Any) -> bool:
    return b is not None and bool(np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE))


class SyntheticStep:
    """
    Plausible numbers for every input, NaN at all masked positions. It remembers what was read.
    """

    def __init__(self, program: AlgorithmLoss) -> None:
        self.program = program
        self.read: set[str] = set()
        self.statistics_read: set[str] = set()
        self.inputs: list[Inputs] = []
        random = np.random.default_rng(1)
        self.masks = [np.arange(length) > 0 for length in LENGTHS]
        self.masks[2][3] = False
        self.values = {
            name: self._column(name, random) for name, kind in KINDS.items() if kind != "step"
        }

    def has_pairs(self) -> bool:
        """Whether a call read or returned anything of pairs."""
        return any(x._pairs for x in self.inputs)

    def _column(self, name: str, random: np.random.Generator) -> list[np.ndarray]:
        """Per sequence: one number a token, or one."""
        spread = {"logp": 0.0, "old_logp": 0.5, "behaviour_logp": 0.7, "ref_logp": 0.5}
        if name in spread:
            base = np.random.default_rng(2)
            return [
                -0.2 - 2 * base.random(length) + spread[name] * (2 * random.random(length) - 1)
                for length in LENGTHS
            ]
        if name == "advantage":
            return [
                np.full(length, value)
                for length, value in zip(LENGTHS, (1.3, -0.7, 0.4, -1.6, 0.9, -0.9))
            ]
        if name == "staleness":
            return [np.array([float(place % 3)]) for place in range(len(LENGTHS))]
        if name == "label":
            return [np.array([float(place % 3 - 1)]) for place in range(len(LENGTHS))]
        positive = name in ("entropy", "margin")
        sizes = LENGTHS if kind_of(name) == "token" else [1] * len(LENGTHS)
        return [
            random.random(size) + 0.1 if positive else 2 * random.random(size) - 1 for size in sizes
        ]

    def run(self, cut: Sequence[Sequence[int]], *, padding: int) -> Outcome:
        leaves = {
            name: [torch.tensor(row, requires_grad=True) for row in self.values[name]]
            for name in LIVE
        }
        width = max(LENGTHS) + padding
        batches = [self._micro_batch(rows, width) for rows in cut]
        watched = Watched(self)
        outcome = run_step(
            watched,
            batches,
            counts=count_step(self.masks, GROUPS, pairs=True),
            forward=lambda mb, need: {
                name: self._padded(mb.sequences, name, width, leaves[name]) for name in LIVE
            },
            backward=lambda loss, boundary: loss.backward() if loss.requires_grad else None,
            gather=lambda value: [value],
            world_size=1,
            coef=self.program.algorithm.first_coef(),
        )
        zero = lambda leaf: torch.zeros_like(leaf) if leaf.grad is None else leaf.grad  # noqa: E731
        gradients = {
            name: np.concatenate([zero(leaf).numpy() for leaf in rows])
            for name, rows in leaves.items()
        }
        return Outcome(outcome, gradients)

    def _micro_batch(self, rows: Sequence[int], width: int) -> MicroBatch:
        mask = torch.zeros(len(rows), width, dtype=torch.bool)
        for at, row in enumerate(rows):
            if row >= 0:
                mask[at, : LENGTHS[row]] = torch.from_numpy(self.masks[row])
        brought = [name for name in self.values if name not in LIVE]
        columns = {name: self._padded(rows, name, width, self.values[name]) for name in brought}
        groups = [GROUPS[row] if row >= 0 else -1 for row in rows]
        return MicroBatch(mask.long(), mask, columns, list(rows), groups)

    def _padded(self, rows: Sequence[int], name: str, width: int, values: Sequence[Any]) -> Tensor:
        """Token [B, width], sequence [B] or pair [B / 2]; NaN if there is nothing."""
        kind = kind_of(name)
        full = torch.full(
            (len(rows), width if kind == "token" else 1), torch.nan, dtype=torch.float64
        )
        for at, row in enumerate(rows):
            if row < 0:
                continue
            value = torch.as_tensor(values[row])
            if kind == "token":
                value = torch.where(torch.from_numpy(self.masks[row]), value, torch.nan)
            full[at, : len(value)] = value
        return full if kind == "token" else full[:: 2 if kind == "pair" else 1, 0]


class Watched:
    """The program of a synthetic step: it has every input and remembers what was read."""

    def __init__(self, step: SyntheticStep) -> None:
        self.step = step
        self.file, self.part = step.program.file, step.program.part
        self.has_statistics, self.old_is_current = step.program.has_statistics, False
        self.has_pairs = True
        self.live = set(LIVE)
        self.columns: set[str] = set()
        self.statistics_live = set(LIVE)
        self._reading: set[str] = step.read

    def check_known(self, name: str) -> None:
        self._reading.add(name)
        self.step.read.add(name)

    def call_statistics(self, x: Any) -> Any:
        self._reading = self.step.statistics_read
        self.step.inputs.append(x)
        return self.step.program.call_statistics(x)

    def call_loss(self, x: Any, s: Any) -> Any:
        self._reading = self.step.read
        self.step.inputs.append(x)
        return self.step.program.call_loss(x, s)

    def open_step(self, *step: Any) -> PythonStep:
        return PythonStep(self, *step)
