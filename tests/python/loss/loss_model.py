"""A model for tests of losses: its log-probabilities are given."""

from __future__ import annotations

import math
from typing import Any

import torch

from holdfast_worker.loss import Counts, LossProgram, MicroBatch, StepOutcome, count_step, run_step

LENGTHS = [5, 2, 7, 3, 4]


class Model:
    """
    Log-probabilities by sequence, in float32, as a model would give them: padded, garbage where it
    is masked.
    """

    def __init__(
        self, rows: list[list[float]], columns: dict[str, list[list[float]]] | None = None
    ) -> None:
        self.rows = [torch.tensor(row, dtype=torch.float32) for row in rows]
        self.columns = columns or {}
        self.weight = torch.zeros((), requires_grad=True)
        self.calls: list[tuple[set[str], bool]] = []
        self.losses: list[tuple[float, bool]] = []

    @staticmethod
    def random(**columns: float) -> Model:
        generator = torch.Generator().manual_seed(3)
        rows = [(-2 * torch.rand(length, generator=generator)).tolist() for length in LENGTHS]
        shift = lambda row, size: [x + size * math.sin(7 * i + x) for i, x in enumerate(row)]  # noqa: E731
        return Model(
            rows, {name: [shift(row, size) for row in rows] for name, size in columns.items()}
        )

    def micro_batch(self, sequences: list[int], padding: int = 0) -> MicroBatch:
        width = max([1, *(len(self.rows[s]) for s in sequences if s >= 0)]) + padding
        mask = torch.zeros(len(sequences), width, dtype=torch.bool)
        columns = {name: torch.full((len(sequences), width), math.nan) for name in self.columns}
        for row, s in enumerate(sequences):
            if s >= 0:
                mask[row, : len(self.rows[s])] = True
                for name, values in self.columns.items():
                    columns[name][row, : len(self.rows[s])] = torch.tensor(values[s])
        return MicroBatch(mask.long(), mask, columns, sequences, [max(s, 0) for s in sequences])

    def forward(self, mb: MicroBatch, need: set[str]) -> dict[str, torch.Tensor]:
        self.calls.append((set(need), torch.is_grad_enabled()))
        logp = torch.full(mb.mask.shape, math.nan)
        for row, s in enumerate(mb.sequences):
            if s >= 0:
                logp[row, : len(self.rows[s])] = self.rows[s]
        return {"logp": logp + self.weight}

    def backward(self, loss: torch.Tensor, boundary: bool) -> None:
        self.losses.append((float(loss.detach()), boundary))
        loss.backward()

    def counts(self) -> Counts:
        return count_step([[1] * len(row) for row in self.rows], list(range(len(self.rows))))

    def step(
        self, program: LossProgram, cut: list[list[int]], padding: int = 0, **options: Any
    ) -> StepOutcome:
        options = {
            "counts": self.counts(),
            "gather": lambda value: [value],
            "world_size": 1,
            **options,
        }
        batches = [self.micro_batch(rows, padding) for rows in cut]
        return run_step(program, batches, forward=self.forward, backward=self.backward, **options)


WHOLE = [[0, 1, 2, 3, 4]]
