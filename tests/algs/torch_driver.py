"""Cases as JSON on stdin, outcomes on stdout: the interpreter in float64 under several cuts and simulated ranks."""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
from simulated_ranks import in_ranks

from holdfast_worker.loss import LossProgram, MicroBatch, count_step, run_step

SEQUENCE_INPUTS = ("score", "staleness")
NAN = float("nan")


def numbers(values: Any, length: int) -> list[float]:
    column = values if isinstance(values, list) else [values] * length
    return [NAN if value is None else value for value in column]


class Case:
    def __init__(self, case: dict[str, Any]) -> None:
        self.program = LossProgram(case["expression"], old_is_current=case.get("old_is_current", False))
        self.sequences = case["step"]["sequences"]
        self.coef = case["step"].get("coef", {})
        self.counts = count_step(
            [one["mask"] for one in self.sequences],
            [one["group"] for one in self.sequences],
            pairs=self.program.has_pairs,
        )

    def leaf(self, name: str, row: int) -> torch.Tensor:
        values = self.sequences[row]["inputs"][name]
        length = 1 if name in SEQUENCE_INPUTS else len(self.sequences[row]["mask"])
        return torch.tensor(numbers(values, length), dtype=torch.float64, requires_grad=True)

    def padded(self, rows: list[int], width: int, read: Any, weight: Any = None) -> torch.Tensor:
        """[B, width]; fillers and padding are NaN, which must not matter. `weight` stands for a model's."""
        full = torch.full((len(rows), width), NAN, dtype=torch.float64)
        if weight is not None:
            full = full + weight
        for at, row in enumerate(rows):
            if row >= 0:
                values = read(row)
                full[at, : len(values)] = values
        return full

    def micro_batch(self, rows: list[int]) -> MicroBatch:
        width = max([2, *(len(self.sequences[row]["mask"]) for row in rows if row >= 0)])
        mask = torch.zeros(len(rows), width, dtype=torch.bool)
        for at, row in enumerate(rows):
            if row >= 0:
                mask[at, : len(self.sequences[row]["mask"])] = torch.tensor(
                    self.sequences[row]["mask"], dtype=torch.bool
                )
        columns = {}
        for name in self.program.columns:
            if name == "margin":
                pairs = [self.sequences[row]["inputs"].get(name, 0.0) if row >= 0 else NAN for row in rows[::2]]
                columns[name] = torch.tensor(pairs, dtype=torch.float64)
            elif name in SEQUENCE_INPUTS:
                columns[name] = self.padded(rows, 1, lambda row: self.leaf(name, row).detach())[:, 0]
            else:
                columns[name] = self.padded(rows, width, lambda row: self.leaf(name, row).detach())
        groups = [self.sequences[row]["group"] if row >= 0 else -1 for row in rows]
        return MicroBatch(torch.zeros_like(mask, dtype=torch.int64), mask, columns, rows, groups)

    def run(self, cut: list[list[list[int]]]) -> dict[str, Any]:
        leaves = [
            {name: [self.leaf(name, row) for row in range(len(self.sequences))] for name in self.program.live}
            for _ in cut
        ]

        # Fillers and padding depend on it alone: it must get a gradient of exactly 0.
        weights = [torch.zeros((), dtype=torch.float64, requires_grad=True) for _ in cut]

        def rank(index: int, gather: Any) -> Any:
            def forward(mb: MicroBatch, need: set[str]) -> dict[str, torch.Tensor]:
                width = mb.mask.shape[1]
                live = {}
                for name in need:
                    size = 1 if name in SEQUENCE_INPUTS else width
                    rows = self.padded(mb.sequences, size, leaves[index][name].__getitem__, weights[index])
                    live[name] = rows[:, 0] if name in SEQUENCE_INPUTS else rows
                return live

            return run_step(
                self.program,
                [self.micro_batch(rows) for rows in cut[index]],
                counts=self.counts,
                forward=forward,
                backward=lambda loss, boundary: loss.backward(),
                gather=gather,
                world_size=len(cut),
                coef=self.coef,
            )

        outcomes = in_ranks(len(cut), rank)
        assert all(outcome == outcomes[0] for outcome in outcomes), "ranks disagree"
        assert outcomes[0].finite, outcomes[0].culprit
        assert all(weight.grad == 0 for weight in weights), "a filler has a gradient"
        gradients = {
            name: [self.mean_over_ranks([rank[name][row] for rank in leaves]) for row in range(len(self.sequences))]
            for name in sorted(self.program.live)
        }
        return {"loss": outcomes[0].loss, "metrics": outcomes[0].metrics, "gradients": gradients}

    def mean_over_ranks(self, leaves: list[torch.Tensor]) -> list[float]:
        """As data parallelism averages."""
        grads = [leaf.grad if leaf.grad is not None else torch.zeros_like(leaf) for leaf in leaves]
        return (torch.stack(grads).sum(0) / len(leaves)).tolist()


def main() -> None:
    torch.set_num_threads(1)
    cases = json.load(sys.stdin)
    outcomes = []
    for content in cases:
        case = Case(content)
        outcomes.append([case.run(cut) for cut in content["cuts"]])
    json.dump(outcomes, sys.stdout, allow_nan=False)


main()
