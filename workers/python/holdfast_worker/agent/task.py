"""A task as its agent holds it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from holdfast_worker.wire.frames import EngineTask, FailureReport, HeldTask


@dataclass
class Task:
    """An operation that was handed to a group, and what its ranks answered."""

    request: EngineTask
    outputs: dict[int, str] = field(default_factory=dict[int, str])  # JSON, for the engine to read.
    failures: dict[int, FailureReport] = field(default_factory=dict[int, FailureReport])
    blobs: list[bytes] = field(default_factory=list[bytes])
    cancelled: bool = False
    wanted: bool = True  # False: the engine will not ask for its answer.

    def __post_init__(self) -> None:
        self.id, self.group, self.op = self.request.task, self.request.group, self.request.op

    def held(self, state: Literal["running", "finished"]) -> HeldTask:
        request = self.request
        return HeldTask(
            task=request.task,
            group=request.group,
            generation=request.generation,
            key=request.key,
            attempt=request.attempt,
            epoch=request.epoch,
            op=request.op,
            args_hash=request.args_hash,
            cancelled=self.cancelled,
            state=state,
        )
