"""An algorithm in Python: a file with its settings, and each of its losses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from holdfast_worker.algorithm.inputs import Inputs, Sums
from holdfast_worker.algorithm.source import AlgorithmError, AlgorithmFile, settings_json
from holdfast_worker.rng_state import untouched_randomness


class Algorithm:
    """
    A file with its settings. `recorded`: {file, source, settings}, as in a recorded loss, or with
    the `profile` that fills settings in. `file` is its name in errors.
    """

    def __init__(self, recorded: Mapping[str, Any]) -> None:
        self.file = recorded["file"]
        with untouched_randomness():
            self.code = AlgorithmFile(recorded["source"], self.file)
        profile = self.code.profile(recorded.get("profile"))
        self.config = self.code.settings({**profile, **recorded["settings"]})
        self.settings = settings_json(self.config, self.file)

    def first_coef(self) -> dict[str, float]:
        """
        The coefficients that change during a run, each with its initial value: `coef(c)` of the
        file.
        """
        if not self.code.has("coef"):
            return {}
        found = self.code.call("coef", self.config)
        coef = cast("Mapping[Any, Any]", found) if isinstance(found, Mapping) else None
        if coef is None or not all(isinstance(value, (int, float)) for value in coef.values()):
            raise AlgorithmError(
                f"Cannot use what coef() of {self.file} returned: return numbers by name"
            )
        return {str(name): float(value) for name, value in coef.items()}


class AlgorithmLoss:
    """One loss of a file: its function `part`."""

    def __init__(self, algorithm: Algorithm, part: str) -> None:
        self.algorithm = algorithm
        self.file = algorithm.file
        self.part = part
        self.has_statistics = part == "loss" and algorithm.code.has("statistics")

    def call_statistics(self, x: Inputs) -> Any:
        return self.algorithm.code.call("statistics", x, self.algorithm.config)

    def call_loss(self, x: Inputs, s: Sums) -> Any:
        return self.algorithm.code.call(self.part, x, self.algorithm.config, s)
