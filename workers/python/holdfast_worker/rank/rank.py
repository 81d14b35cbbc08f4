"""
One process of a worker group: `python -m holdfast_worker.rank.rank`, started by the agent.

The main thread runs operations, one at a time. A reader thread takes messages from the agent, so
that a cancel or the agent's death is seen while the main thread computes. Prints go to the log: the
channel has its own descriptor.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import queue
import select
import signal
import sys
import threading
from collections.abc import Mapping
from typing import Any

from holdfast_worker.faults import Faults, phase_of
from holdfast_worker.json_value import JsonValue
from holdfast_worker.limits import ANSWER_BYTES_MAX, INLINE_BYTES_MAX
from holdfast_worker.linux import PR_SET_CHILD_SUBREAPER, PR_SET_NAME, PR_SET_PDEATHSIG, prctl
from holdfast_worker.operation import Cancelled, OperationIO, TooLargeError
from holdfast_worker.private_files import keep_private
from holdfast_worker.process_table import end_below
from holdfast_worker.rank.channel import CHANNEL_VARIABLE, GUARD_VARIABLE, Channel, ChannelClosed
from holdfast_worker.rank.failures import report_of_exception
from holdfast_worker.rank.frames import (
    AskRank,
    CancelRank,
    FromRank,
    RankBlob,
    RankError,
    RankProgress,
    RankReady,
    RankResult,
    ShutDownRank,
    StartRank,
    ToRank,
    read_to_rank,
)
from holdfast_worker.wire.operation import read_arguments


def kill_own_group() -> None:
    """Ends this process and all it started (a vLLM engine's children outlive a killed parent)."""
    os.killpg(0, signal.SIGKILL)


def start_guard(fd: int, channel_fd: int) -> None:
    """
    Forks a small process that waits for the agent's end of a pipe to close and then kills this
    process group.

    It works when the rank is stopped, holds the GIL or is already dead. Must run before any thread
    starts. The pipe is not the channel, so that a rank's death still closes the channel.
    """
    if os.fork() != 0:
        os.close(fd)
        return
    os.close(channel_fd)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    prctl(PR_SET_NAME, b"holdfast-guard")
    poll = select.poll()
    poll.register(fd, 0)  # No events asked for: a hang-up always wakes it.
    while not poll.poll():
        pass
    kill_own_group()
    os._exit(0)


class Rank:
    """A rank's life after its first message: boot, then operations until it is asked to end."""

    def __init__(self, channel: Channel, start: StartRank) -> None:
        self._channel = channel
        self._module = start.module
        self._context = start.context
        self._faults = Faults.from_environment(
            self._context.role, self._context.rank, actions={"oom": raise_out_of_memory}
        )
        self._tasks: queue.SimpleQueue[tuple[AskRank, threading.Event] | None] = queue.SimpleQueue()
        self._cancelled: dict[str, threading.Event] = {}
        self._worker: Any = None

    def run(self) -> None:
        threading.Thread(target=self._read, name="holdfast-reader", daemon=True).start()
        try:
            self._worker = importlib.import_module(self._module).Worker(self._context)
            info: dict[str, JsonValue] = self._worker.boot() or {}
            checked_info(info)
        except (
            BaseException
        ) as error:  # A SystemExit of user code is a failure too; it is reported, never swallowed.
            print_traceback(error)
            failure = report_of_exception(self._context.rank, error, booting=True)
            self._send(RankError(task=None, failure=failure))
            # The agent collects the other ranks' reports and then ends this group.
            self._tasks.get()
            return
        self._send(RankReady(info=info))
        while (item := self._tasks.get()) is not None:
            self._operate(*item)
        close = getattr(self._worker, "close", None)
        if close:
            close()

    def _send(self, message: FromRank) -> None:
        self._channel.send(message.to_object())

    def _read(self) -> None:
        try:
            while True:
                self._take(read_to_rank(self._channel.receive()))
        except ChannelClosed:
            pass
        except BaseException as error:
            print_traceback(error)
            failure = report_of_exception(self._context.rank, error)
            self._send(RankError(task=None, failure=failure))
        finally:  # Whatever ended the reading: without an agent this process must not live.
            kill_own_group()

    def _take(self, message: ToRank | None) -> None:
        match message:
            case AskRank():
                cancelled = self._cancelled[message.task] = threading.Event()
                self._tasks.put((message, cancelled))
            case CancelRank(task=task) if task in self._cancelled:
                self._cancelled[task].set()
            case ShutDownRank():
                self._tasks.put(None)
            case _:
                pass  # Of a task that is done, or of a type that a later version added.

    def _operate(self, request: AskRank, cancelled: threading.Event) -> None:
        task, op = request.task, request.op
        phase = phase_of(self._context.role, op)
        io = OperationIO(
            key=request.key,
            attempt=request.attempt,
            task=task,
            artifacts_dir=self._context.artifacts_dir,
            send_progress=lambda progress: self._send(RankProgress(task=task, **vars(progress))),
            happened=lambda event: self._faults.at(event, phase),
            keep_blobs=self._context.rank == 0,
            cancelled=cancelled,
        )
        failure, output = None, ""
        try:
            self._faults.at("op", phase)
            io.check_cancelled()
            output = json.dumps(
                self._operation(op)(read_arguments(request.args, io), io), allow_nan=False
            )
            if len(output) > ANSWER_BYTES_MAX:
                raise TooLargeError(
                    f"Cannot answer '{op}' because its output has {len(output)} bytes: an answer "
                    "holds at most "
                    f"{ANSWER_BYTES_MAX}. Fix: pass it less at once"
                )
            self._faults.at("op", phase)
        except BaseException as error:
            if not isinstance(error, Cancelled):
                print_traceback(error)
            failure = report_of_exception(self._context.rank, error)
        if self._cancelled.get(task) is cancelled:
            del self._cancelled[task]
        if failure:
            self._send(RankError(task=task, failure=failure))
            return
        for index, data in enumerate(io.blobs if self._context.rank == 0 else []):
            self._send(RankBlob(task=task, index=index, data=data))
        self._send(RankResult(task=task, output=output, blobs=len(io.blobs)))

    def _operation(self, op: str) -> Any:
        operations = self._worker.operations
        if op not in operations:
            known = ", ".join(sorted(operations))
            raise LookupError(
                f"Cannot run operation '{op}' because {self._module} has no such operation: it has "
                f"{known}"
            )
        return operations[op]


def checked_info(info: Mapping[str, JsonValue]) -> None:
    """It travels in every hello."""
    size = len(json.dumps(info, allow_nan=False))
    if size > INLINE_BYTES_MAX:
        raise TooLargeError(
            f"Cannot start because what `boot` tells has {size} bytes: it may have "
            f"{INLINE_BYTES_MAX}. "
            "Fix: return less from `boot`"
        )


def raise_out_of_memory() -> None:
    """What torch raises where a device has no room."""
    import torch

    raise torch.OutOfMemoryError("CUDA out of memory, on purpose (HOLDFAST_FAULT)")


def print_traceback(error: BaseException) -> None:
    """Into the rank's log, where a person looks."""
    sys.excepthook(type(error), error, error.__traceback__)
    sys.stderr.flush()


def main() -> None:
    keep_private()
    fd = int(os.environ.pop(CHANNEL_VARIABLE))
    if os.getpgrp() != os.getpid():
        os.setsid()  # Started by hand: `kill_own_group` must not reach the shell.
    start_guard(int(os.environ.pop(GUARD_VARIABLE)), fd)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    prctl(
        PR_SET_CHILD_SUBREAPER, 1
    )  # What detaches itself stays below this process, and the agent finds it there.
    faulthandler.register(
        signal.SIGUSR1, all_threads=True
    )  # Into the log, even while C code holds the GIL.
    channel = Channel.from_fd(fd)
    try:
        Rank(channel, StartRank.of(channel.receive())).run()
    except ChannelClosed:
        kill_own_group()
    sys.stdout.flush()
    sys.stderr.flush()
    end_below(os.getpid())
    os._exit(
        0
    )  # DeepSpeed's and gloo's threads abort about half of ordinary exits after the result was handed over.


if __name__ == "__main__":
    main()
