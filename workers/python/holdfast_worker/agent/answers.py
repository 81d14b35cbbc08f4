"""
What came of an agent's tasks: sent, and kept until the engine releases it, as the engine may die
before it has a row of it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from holdfast_worker.agent.link import UNSENDABLE, Link, Reliable
from holdfast_worker.agent.task import Task
from holdfast_worker.limits import ANSWER_BYTES_MAX, BLOBS_MAX, INLINE_BYTES_MAX
from holdfast_worker.rank.failures import fitting, report
from holdfast_worker.wire.frames import (
    AgentError,
    AgentResult,
    BlobRef,
    FailureReport,
    Output,
)


@dataclass
class Answer:
    """What came of a task, and how it was sent last."""

    task: Task
    frame: AgentResult | AgentError
    blobs: list[bytes]
    sent: Reliable


class Answers:
    """Those of tasks that are finished and not released, by the task's id."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._kept: dict[str, Answer] = {}

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._kept

    def tasks(self) -> list[Task]:
        return [answer.task for answer in self._kept.values()]

    def send_result(self, task: Task) -> None:
        """All ranks' outputs; an error where they are too large together."""
        blobs = list(task.blobs)
        outputs = [carried(output, blobs) for _, output in sorted(task.outputs.items())]
        size = sum(map(len, blobs))
        if len(blobs) > BLOBS_MAX or size > ANSWER_BYTES_MAX:
            message = (
                f"Cannot send the answer of '{task.op}' because it has {len(blobs)} blobs of "
                f"{size} bytes together: the "
                f"limit is {BLOBS_MAX} of {ANSWER_BYTES_MAX}. Fix: pass it less at once"
            )
            failures = [report(rank, cause="bad_data", message=message) for rank in task.outputs]
            self.send_error(task, failures)
            return
        named = [
            BlobRef(sha256=hashlib.sha256(data).hexdigest(), bytes=len(data)) for data in blobs
        ]
        self._send(task, AgentResult(task=task.id, outputs=outputs, blobs=named), blobs)

    def send_error(self, task: Task, failures: list[FailureReport]) -> None:
        self._send(task, AgentError(task=task.id, failures=fitting(failures)), [])

    def _send(self, task: Task, frame: AgentResult | AgentError, blobs: list[bytes]) -> None:
        try:
            sent = self._link.send(frame, blobs)
        except UNSENDABLE as error:  # Its own task fails, and by name: the line is everybody's.
            text = f"Cannot send the answer of '{task.op}': {error}"
            failure = report(0, cause="other", message=text)
            frame, blobs = AgentError(task=task.id, failures=[failure]), []
            sent = self._link.send(frame)
        if task.wanted:
            self._kept[task.id] = Answer(task, frame, blobs, sent)

    def deliver(self, task_id: str) -> None:
        """
        An answer that came before this engine, or since the hello, unless the line has it already.
        """
        answer = self._kept.get(task_id)
        if answer and not self._link.is_kept(answer.sent):
            answer.sent = self._link.send(answer.frame, answer.blobs)

    def drop(self, task_id: str) -> None:
        """The engine does not want it, not even what waits to be sent."""
        self._link.forget(self._kept.pop(task_id).sent)

    def release(self, task_id: str) -> None:
        """The engine has it durably."""
        self._kept.pop(task_id, None)


def carried(output: str, blobs: list[bytes]) -> Output:
    """
    An output as the protocol has it: what is too long for the result's message is added to the
    blobs.
    """
    if len(output) <= INLINE_BYTES_MAX:
        return Output(json=output)
    blobs.append(output.encode())
    return Output(blob=len(blobs) - 1)
