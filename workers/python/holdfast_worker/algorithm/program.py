"""
An algorithm in Python as the trainer sees it: its parts, and the loss as a program that `run_step`
can run.
"""

from __future__ import annotations

import pdb
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from holdfast_worker.algorithm.algorithm import Algorithm, AlgorithmLoss
from holdfast_worker.algorithm.dry_run import dry_run
from holdfast_worker.algorithm.source import AlgorithmError
from holdfast_worker.algorithm.step import PythonStep
from holdfast_worker.loss.expression import COUNTS, LENGTHS, LIVE
from holdfast_worker.loss.program import LossProgram
from holdfast_worker.rng_state import untouched_randomness

VERSION = 1


class PythonProgram(AlgorithmLoss):
    """
    One loss of a file. What it reads is found by a dry run on a synthetic step, which also checks
    it. With `old_is_current` the batch serves one step of the version that sampled it: `old_logp`
    is then the detached `logp`.
    """

    def __init__(
        self, algorithm: Algorithm, part: str = "loss", old_is_current: bool = False
    ) -> None:
        super().__init__(algorithm, part)
        with untouched_randomness(), without_breakpoints():
            found = dry_run(self)
        self.read = found.inputs  # By the names that the file uses.
        self.metrics = found.metrics
        self.has_pairs = found.has_pairs
        self.old_is_current = old_is_current and "old_logp" in found.inputs
        self.inputs = self._renamed(found.inputs)
        self.live = self.inputs & LIVE
        self.statistics_live = self._renamed(found.statistics_inputs) & LIVE
        self.coef = {name for name in self.inputs if name.startswith("coef.")}
        self.columns = self.inputs - LIVE - COUNTS - LENGTHS - self.coef

    def _renamed(self, names: set[str]) -> set[str]:
        return {"logp" if self.old_is_current and name == "old_logp" else name for name in names}

    def check_known(self, name: str) -> None:
        if name not in self.inputs:
            raise AlgorithmError(
                f"Cannot read '{name}' in {self.part}() of {self.file} "
                "because it was not read when the file was opened: "
                "what a loss reads may depend on settings, not on data"
            )

    def open_step(self, *step: Any) -> Any:
        """This rank's part of a step, as requested by `run_step`."""
        return PythonStep(self, *step)


def program_of(recorded: Mapping[str, Any], *, old_is_current: bool = False) -> Any:
    """A recorded loss: an expression, or a function of a file. `old_is_current`: of both."""
    if "python" in recorded:
        return recorded_program(recorded, old_is_current)
    return LossProgram(recorded, old_is_current=old_is_current)


def recorded_program(recorded: Mapping[str, Any], old_is_current: bool = False) -> PythonProgram:
    """The program of a recorded loss {version, python: {file, source, settings, part}}."""
    if recorded.get("version") != VERSION:
        raise ValueError(
            f"Cannot read a loss in Python of version {recorded.get('version')!r}: this worker "
            "reads 1"
        )
    sys.breakpointhook = _nobody_to_ask
    return PythonProgram(Algorithm(recorded["python"]), recorded["python"]["part"], old_is_current)


def _nobody_to_ask(*_: Any, **__: Any) -> None:
    raise AlgorithmError(
        "Cannot stop at a breakpoint() in a run: try the file with `loss try FILE --batch "
        "RUN/ROUND`"
    )


@contextmanager
def without_breakpoints() -> Generator[None, None, None]:
    """`breakpoint()` is meant for real data, and in a worker nobody could answer."""
    hook, trace = sys.breakpointhook, pdb.set_trace
    sys.breakpointhook = pdb.set_trace = lambda *_, **__: None
    try:
        yield
    finally:
        sys.breakpointhook, pdb.set_trace = hook, trace
