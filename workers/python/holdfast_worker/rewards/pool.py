"""A pool of plain processes for user code: a call that takes too long, crashes or prints costs one process and one
sample, never the pool. Nothing is shared with the caller but a channel."""

from __future__ import annotations

import os
import queue
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from holdfast_worker.channel import CHANNEL_VARIABLE, Channel, ChannelClosed
from holdfast_worker.operation import UserCodeError
from holdfast_worker.process_table import descendants

IMPORT_TIMEOUT_S = 120.0  # A grader may import torch on a busy machine.
TRIES = {"error": 2, "crash": 2}  # A second throw is an answer; other outcomes are at the first.
STDERR = 2

Item = dict[str, Any]
Result = dict[str, Any]


class _Silent(Exception):
    """No answer in time."""


class PoolProcess:
    """One process, started when it is needed and again after it was killed."""

    def __init__(self) -> None:
        self._popen: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._loaded: set[str] = set()

    def load(self, source: str) -> None:
        """Imports a function. Raises UserCodeError with the user's frames if that fails."""
        if self._popen and source in self._loaded:
            return
        try:
            answer = self._ask({"type": "load", "source": source}, IMPORT_TIMEOUT_S)
        except (_Silent, ChannelClosed) as error:
            how = (
                f"took longer than {IMPORT_TIMEOUT_S} s"
                if isinstance(error, _Silent)
                else f"ended the process ({self._fate()})"
            )
            self.kill()
            raise UserCodeError(f"Cannot import reward '{source}': the import {how}") from None
        if answer["error"] is not None:
            self.kill()  # Half an import may stay in sys.modules.
            raise UserCodeError(f"Cannot import reward '{source}':\n{answer['error']}")
        self._loaded.add(source)

    def call(self, source: str, item: Item, timeout_ms: float) -> Result:
        """One call, within the time limit whatever the code does."""
        self.load(source)
        started = time.monotonic()
        try:
            return self._ask({"type": "call", "source": source, "item": item}, timeout_ms / 1000)
        except _Silent:
            text = f"no answer after {timeout_ms:g} ms: the process was killed"
            outcome = "timeout"
        except ChannelClosed:
            text, outcome = f"the process ended during the call: {self._fate()}", "crash"
        self.kill()
        ms = (time.monotonic() - started) * 1000
        return {"outcome": outcome, "score": None, "metrics": {}, "error": text, "ms": ms}

    def interrupt(self) -> None:
        """Ends the process and what it started. From any thread: who waits for an answer sees the channel close."""
        popen = self._popen
        if popen is None or popen.returncode is not None:
            return
        for pid in [popen.pid, *descendants(popen.pid)]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def kill(self) -> None:
        """The same, and waits; the next call starts another process. For the thread that uses it."""
        if self._popen is None or self._channel is None:
            return
        self.interrupt()
        self._popen.wait()
        self._channel.close()
        self._popen, self._channel, self._loaded = None, None, set()

    def _ask(self, message: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        channel = self._channel or self._start()
        channel.send(message)
        poll = select.poll()
        poll.register(channel.fileno(), select.POLLIN)
        if not poll.poll(timeout_s * 1000):
            raise _Silent
        return channel.receive()

    def _start(self) -> Channel:
        """In the caller's process group, so that it dies with it."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", "holdfast_worker.rewards.process"],
                env={**os.environ, CHANNEL_VARIABLE: str(theirs.fileno())},
                stdin=subprocess.DEVNULL,
                stdout=STDERR,  # The caller's own stdout may be data.
                pass_fds=[theirs.fileno()],
            )
        self._channel = Channel(ours)
        return self._channel

    def _fate(self) -> str:
        """How the process ended. It has closed its channel, so it is about to."""
        if self._popen is None:
            return "unknown"
        try:
            code = self._popen.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return "it closed its channel"
        return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"


class RewardPool:
    """`processes` processes; each runs one call at a time."""

    def __init__(self, processes: int) -> None:
        self._all = [PoolProcess() for _ in range(processes)]
        self._idle: queue.SimpleQueue[PoolProcess] = queue.SimpleQueue()
        for process in self._all:
            self._idle.put(process)
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="holdfast-reward")

    def score(
        self,
        source: str,
        items: list[Item],
        *,
        timeout_ms: float,
        between: Callable[[int], None] = lambda done: None,
    ) -> list[Result]:
        """Results in the order of `items`. `between(done)` is called now and then; what it raises ends the work.

        Raises UserCodeError if the function cannot be imported."""
        self._import_once(source)
        stop = threading.Event()
        futures = [self._threads.submit(self._one, stop, source, item, timeout_ms) for item in items]
        try:
            self._watch(futures, between)
        except BaseException:
            stop.set()
            while wait(futures, timeout=0.05).not_done:
                for process in self._all:
                    process.interrupt()
            raise
        return [{"id": item["id"], **future.result()} for item, future in zip(items, futures, strict=True)]

    def close(self) -> None:
        for process in self._all:
            process.kill()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _import_once(self, source: str) -> None:
        """One process first: a function that cannot be imported is one error, not one for every sample."""
        process = self._idle.get()
        try:
            process.load(source)
        finally:
            self._idle.put(process)

    def _one(self, stop: threading.Event, source: str, item: Item, timeout_ms: float) -> Result:
        process = self._idle.get()
        try:
            result: Result = {}
            tries = 0
            while not stop.is_set() and tries < TRIES.get(result.get("outcome", ""), 1):
                tries += 1
                result = process.call(source, item, timeout_ms)
            return result
        finally:
            self._idle.put(process)

    @staticmethod
    def _watch(futures: list[Future[Result]], between: Callable[[int], None]) -> None:
        open_futures = set(futures)
        while open_futures:
            done, open_futures = wait(open_futures, timeout=0.1, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
            between(len(futures) - len(open_futures))
