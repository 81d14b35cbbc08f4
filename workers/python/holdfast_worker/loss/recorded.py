"""A recorded loss as a program that `run_step` can run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast_worker.loss.program import LossProgram


def program_of(recorded: Mapping[str, Any], *, old_is_current: bool = False) -> Any:
    """An expression, or a function of an algorithm's file. `old_is_current`: see `LossProgram`."""
    if "python" not in recorded:
        return LossProgram(recorded, old_is_current=old_is_current)
    from holdfast_worker.algorithm import recorded_program  # Only who uses it pays for its imports.

    return recorded_program(recorded, old_is_current)
