"""A printed torch module beside the trainer's interpreter, on one whole step."""

from __future__ import annotations

from typing import Any

import torch

from holdfast_worker.loss import run_step


class Beside:
    """
    What each is given is the same; `case` is the driver's, `recorded` gives what the interpreter
    computed last.
    """

    def __init__(self, case: Any, source: str, recorded: Any) -> None:
        self.case = case
        self.rows = list(range(len(case.sequences)))
        self.mb = case.micro_batch(self.rows)
        self.source = source
        self.recorded = recorded

    def live(self) -> dict[str, torch.Tensor]:
        """Fresh leaves [B, T], or [B] of a score; NaN where they are masked."""
        found = {}
        for name in sorted(self.case.program.live):
            width = 1 if name == "score" else self.mb.mask.shape[1]
            rows = self.case.padded(
                self.rows, width, lambda row, name=name: self.case.leaf(name, row).detach()
            )
            found[name] = (rows[:, 0] if name == "score" else rows).clone().requires_grad_()
        return found

    def interpreter(self) -> dict[str, Any]:
        live, shares = self.live(), []

        def backward(loss: torch.Tensor, boundary: bool) -> None:
            shares.append(loss.item())
            loss.backward()

        outcome = run_step(
            self.case.program,
            [self.mb],
            counts=self.case.counts,
            forward=lambda mb, need: live,
            backward=backward,
            gather=lambda value: [value],
            world_size=1,
            coef=self.case.coef,
        )
        differentiated = {"loss": shares[0], "gradients": gradients_of(live)}
        return {"differentiated": differentiated, "loss": outcome.loss, "metrics": outcome.metrics}

    def statistics(self) -> dict[str, float]:
        """The sums that the interpreter's gradient was scaled with, by the module's names."""
        return {f"s{i}": self.recorded().whole(i) for i in self.case.program.statistics}

    def module(self, sums: dict[str, float] | None) -> dict[str, Any]:
        names: dict[str, Any] = {}
        exec(compile(self.source, "printed", "exec"), names)
        live = self.live()
        columns = {**self.mb.columns, **live}
        options = {"group": torch.tensor(self.mb.groups), "coef": self.case.coef, "sums": sums}
        loss, metrics = names["loss"](columns, self.mb.mask, **options)
        loss.backward()
        differentiated = {"loss": loss.item(), "gradients": gradients_of(live)}
        return {"differentiated": differentiated, "loss": loss.item(), "metrics": metrics}


def gradients_of(live: dict[str, torch.Tensor]) -> dict[str, Any]:
    return {name: None if leaf.grad is None else leaf.grad.tolist() for name, leaf in live.items()}


def beside(case: Any, source: str, recorded: Any) -> dict[str, Any]:
    """Both outcomes; `own` is the module's with statistics that it computed itself."""
    step = Beside(case, source, recorded)
    interpreter = step.interpreter()
    return {
        "interpreter": interpreter,
        "module": step.module(step.statistics()),
        "computed": step.module(None),
    }
