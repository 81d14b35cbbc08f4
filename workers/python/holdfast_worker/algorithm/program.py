"""An algorithm in Python as the trainer sees it: its parts, and the loss as a program that `run_step` can run."""

from __future__ import annotations

import pdb
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from holdfast_worker.algorithm.inputs import Inputs, Sums
from holdfast_worker.algorithm.source import AlgorithmError, AlgorithmFile, settings_json
from holdfast_worker.loss.program import COUNTS, LENGTHS, LIVE
from holdfast_worker.trainer.numerics import restore_rng_state, rng_state

VERSION = 1


class Algorithm:
    """
    A file with its settings. `recorded`: {file, source, settings}, as it is part of a recorded loss. `file` is what
    errors call it.
    """

    def __init__(self, recorded: Mapping[str, Any]) -> None:
        self.file = recorded["file"]
        with untouched_randomness():
            self.code = AlgorithmFile(recorded["source"], self.file)
        self.config = self.code.settings(recorded["settings"])
        self.settings = settings_json(self.config, self.file)

    def first_coef(self) -> dict[str, float]:
        """The coefficients that change during a run, each with its first value: `coef(c)` of the file."""
        if not self.code.has("coef"):
            return {}
        found = self.code.call("coef", self.config)
        if not isinstance(found, Mapping) or not all(isinstance(value, (int, float)) for value in found.values()):
            raise AlgorithmError(f"Cannot use what coef() of {self.file} returned: return numbers by name")
        return {str(name): float(value) for name, value in found.items()}


class PythonProgram:
    """
    One loss of a file. What it reads is found by a dry run on a synthetic step, which also checks it. With
    `old_is_current` the batch serves one step of the version that sampled it: `old_logp` is then the detached `logp`.
    """

    def __init__(self, algorithm: Algorithm, part: str = "loss", old_is_current: bool = False) -> None:
        from holdfast_worker.algorithm.dry_run import dry_run

        self.algorithm = algorithm
        self.file = algorithm.file
        self.part = part
        self.has_statistics = part == "loss" and algorithm.code.has("statistics")
        self.old_is_current = False
        self.inputs = self.live = self.statistics_live = None  # Unknown until the dry run, which may read all.
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
        if self.inputs is not None and name not in self.inputs:
            raise AlgorithmError(
                f"Cannot read '{name}' in {self.part}() of {self.file} "
                "because it was not read when the file was opened: "
                "what a loss reads may depend on settings, not on data"
            )

    def call_statistics(self, x: Inputs) -> Any:
        return self.algorithm.code.call("statistics", x, self.algorithm.config)

    def call_loss(self, x: Inputs, s: Sums) -> Any:
        return self.algorithm.code.call(self.part, x, self.algorithm.config, s)

    def open_step(self, *step: Any) -> Any:
        """This rank's part of a step, as `run_step` asks for it."""
        from holdfast_worker.algorithm.step import PythonStep

        return PythonStep(self, *step)


def recorded_program(recorded: Mapping[str, Any], old_is_current: bool = False) -> PythonProgram:
    """The program of a recorded loss {version, python: {file, source, settings, part}}."""
    if recorded.get("version") != VERSION:
        raise ValueError(f"Cannot read a loss in Python of version {recorded.get('version')!r}: this worker reads 1")
    sys.breakpointhook = _nobody_to_ask
    return PythonProgram(Algorithm(recorded["python"]), recorded["python"]["part"], old_is_current)


def _nobody_to_ask(*_: Any, **__: Any) -> None:
    raise AlgorithmError("Cannot stop at a breakpoint() in a run: try the file with `loss try FILE --batch RUN/ROUND`")


@contextmanager
def untouched_randomness() -> Iterator[None]:
    """Whatever draws random numbers inside, later draws are the same: opening a file twice must not move a run."""
    state = rng_state()
    try:
        yield
    finally:
        restore_rng_state(state)


@contextmanager
def without_breakpoints() -> Iterator[None]:
    """`breakpoint()` is meant for real data, and in a worker there is nobody to ask."""
    hook, trace = sys.breakpointhook, pdb.set_trace
    sys.breakpointhook = pdb.set_trace = lambda *_, **__: None
    try:
        yield
    finally:
        sys.breakpointhook, pdb.set_trace = hook, trace
