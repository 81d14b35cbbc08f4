"""A task as its agent holds it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from holdfast_worker.wire.frames import EngineTask, FailureReport, HeldTask


@dataclass
class Task:
    """An operation that was handed to a group, and what its ranks answered."""

    asked: EngineTask
    outputs: dict[int, str] = field(default_factory=dict[int, str])  # JSON, for the engine to read.
    failures: dict[int, FailureReport] = field(default_factory=dict[int, FailureReport])
    blobs: list[bytes] = field(default_factory=list[bytes])
    cancelled: bool = False
    wanted: bool = True  # False: the engine will not ask for its answer.

    def __post_init__(self) -> None:
        self.id, self.group, self.op = self.asked.task, self.asked.group, self.asked.op

    def held(self, state: Literal["running", "finished"]) -> HeldTask:
        asked = self.asked
        return HeldTask(
            task=asked.task,
            group=asked.group,
            generation=asked.generation,
            key=asked.key,
            attempt=asked.attempt,
            epoch=asked.epoch,
            op=asked.op,
            args_hash=asked.args_hash,
            cancelled=self.cancelled,
            state=state,
        )
