"""
The worker's interpreter in float64 under several cuts and simulated ranks, as `answer_lines`
speaks.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any

import torch

import printed_module
import python_probe
from answer_lines import answer_lines
from holdfast_worker.algorithm import inputs
from holdfast_worker.loss import LossProgram, MicroBatch, count_step, program, run_step
from holdfast_worker.loss.interpreter import MicroBatchValues
from simulated_ranks import in_ranks

SEQUENCE_INPUTS = ("score", "staleness", "label")
SIDED = ("clamp", "minimum", "maximum", "lt", "le")
NAN = float("nan")


def numbers(values: Any, length: int) -> list[float]:
    column = values if isinstance(values, list) else [values] * length
    return [NAN if value is None else value for value in column]


class Recorded(MicroBatchValues):
    """
    Keeps the values of the last micro-batch, for those who ask what torch computed on the way.
    """

    last: MicroBatchValues

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        Recorded.last = self


program.MicroBatchValues = Recorded  # type: ignore[misc]


class Case:
    def __init__(self, case: dict[str, Any]) -> None:
        make = python_probe.opened if "python" in case["expression"] else LossProgram
        self.program = make(case["expression"], case.get("old_is_current", False))
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
        """
        [B, width]; fillers and padding are NaN, which must not matter. `weight` stands for a
        model's.
        """
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
                pairs = [
                    self.sequences[row]["inputs"].get(name, 0.0) if row >= 0 else NAN
                    for row in rows[::2]
                ]
                columns[name] = torch.tensor(pairs, dtype=torch.float64)
            elif name in SEQUENCE_INPUTS:
                columns[name] = self.padded(
                    rows, 1, lambda row, name=name: self.leaf(name, row).detach()
                )[:, 0]
            else:
                columns[name] = self.padded(
                    rows, width, lambda row, name=name: self.leaf(name, row).detach()
                )
        groups = [self.sequences[row]["group"] if row >= 0 else -1 for row in rows]
        return MicroBatch(torch.zeros_like(mask, dtype=torch.int64), mask, columns, rows, groups)

    def live_rows(
        self, name: str, mb: MicroBatch, leaves: list[torch.Tensor], weight: Any = None
    ) -> torch.Tensor:
        size = 1 if name in SEQUENCE_INPUTS else mb.mask.shape[1]
        rows = self.padded(mb.sequences, size, leaves.__getitem__, weight)
        return rows[:, 0] if name in SEQUENCE_INPUTS else rows

    def run(self, cut: list[list[list[int]]]) -> dict[str, Any]:
        leaves = [
            {
                name: [self.leaf(name, row) for row in range(len(self.sequences))]
                for name in self.program.live
            }
            for _ in cut
        ]

        # Fillers and padding depend on it alone: it must get a gradient of exactly 0.
        weights = [torch.zeros((), dtype=torch.float64, requires_grad=True) for _ in cut]

        def rank(index: int, gather: Any) -> Any:
            def forward(mb: MicroBatch, need: set[str]) -> dict[str, torch.Tensor]:
                return {
                    name: self.live_rows(name, mb, leaves[index][name], weights[index])
                    for name in need
                }

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
        first = outcomes[0]
        assert all((o.loss, o.metrics) == (first.loss, first.metrics) for o in outcomes), (
            "ranks disagree"
        )
        assert outcomes[0].finite, outcomes[0].culprit
        assert all(weight.grad == 0 for weight in weights), "a filler has a gradient"
        gradients = {
            name: [
                self.mean_over_ranks([rank[name][row] for rank in leaves])
                for row in range(len(self.sequences))
            ]
            for name in sorted(self.program.live)
        }
        return {"loss": outcomes[0].loss, "metrics": outcomes[0].metrics, "gradients": gradients}

    def mean_over_ranks(self, leaves: list[torch.Tensor]) -> list[float]:
        """As data parallelism averages."""
        grads = [leaf.grad if leaf.grad is not None else torch.zeros_like(leaf) for leaf in leaves]
        return (torch.stack(grads).sum(0) / len(leaves)).tolist()


def corners(values: MicroBatchValues) -> list[dict[str, Any]]:
    """
    The operations with sides that the gradient ran through, as torch computed them, on one
    micro-batch.
    """
    program = values.program
    found = []
    for i in sorted(values.memo):
        node = program.nodes[i]
        if node.op not in SIDED:
            continue
        mask = values.masks[node.kind]
        args = [values._as(node, arg).expand(mask.shape)[mask] for arg in node.args]
        if node.op == "clamp":
            distances = [args[0] - bound for bound in (node.lo, node.hi) if bound is not None]
            low = args[0] < (-math.inf if node.lo is None else node.lo)
            high = args[0] > (math.inf if node.hi is None else node.hi)
            sides = high.int() - low.int()
        else:
            distances = [args[0] - args[1]]
            sides = torch.sign(distances[0])
        branch = {"sides": sides.tolist(), "distances": [d.tolist() for d in distances]}
        found.append({"name": f"node {i} {node.op}", "branches": [], **branch})
    return found


def run(cases: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    outcomes = []
    for content in cases:
        case = Case(content)
        if "python" in content["expression"]:
            watches = python_probe.Watches(case.program)
            with watches.watching() if content.get("corners") else nullcontext():
                found = [case.run(cut) for cut in content["cuts"]]
        else:
            found = [case.run(cut) for cut in content["cuts"]]
        if content.get("corners"):
            ((ranks,),) = content["cuts"]
            assert len(ranks) == 1, "one micro-batch on one rank"
            found[0]["corners"] = (
                watches.corners() if "python" in content["expression"] else corners(Recorded.last)
            )
        outcomes.append(found)
    return outcomes


def printed(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [printed_module.beside(Case(one), one["source"], lambda: Recorded.last) for one in cases]


COMMANDS = {
    "run": run,
    "printed": printed,
    "probe": lambda argument: python_probe.probe(argument, Case),
    "describe_file": python_probe.describe_file,
    "credit": python_probe.credit,
    "kinds": lambda _: inputs.KINDS,
}


def main() -> None:
    torch.set_num_threads(1)
    answer_lines(COMMANDS)


main()
