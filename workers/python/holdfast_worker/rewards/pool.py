"""
A pool of processes for one reward function: a call that takes too long, crashes or prints costs one
process and one sample, never the pool. Nothing is shared with the caller but a channel.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import TypeVar

from holdfast_worker.operation import UserCodeError
from holdfast_worker.process_table import process_tree
from holdfast_worker.rewards.exchange import FunctionSample, Loaded
from holdfast_worker.rewards.pool_process import PoolProcess, Scored
from holdfast_worker.rewards.reward_code import RewardCode
from holdfast_worker.wire.answers import ScoredItem

# A second throw is an answer; what ends a process may have been started by the previous call.
# Others are at the first.
TRIES = {"error": 2, "crash": 2, "bad_answer": 2}
WATCH_S = 0.1
BOUND_S = 0.25
HOPELESS_CALLS_MIN = 4

T = TypeVar("T")


class RewardPool:
    """`processes` processes; each runs one call at a time."""

    def __init__(self, code: RewardCode, processes: int) -> None:
        self._code = code
        self._all = [PoolProcess(code) for _ in range(processes)]
        self._idle: queue.SimpleQueue[PoolProcess] = queue.SimpleQueue()
        for process in self._all:
            self._idle.put(process)
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="holdfast-reward")
        self._bounded_at = time.monotonic()
        self._timeouts = 0
        self._answered = False

    def load(self, between: Callable[[int], None] = lambda done: None) -> Loaded:
        """As `PoolProcess.load`, in one of the processes."""
        (loaded,) = self._run([lambda _: self._with_one(lambda process: process.load())], between)
        return loaded

    def score(
        self,
        items: list[FunctionSample],
        *,
        timeout_ms: float,
        between: Callable[[int], None] = lambda done: None,
    ) -> list[ScoredItem]:
        """Results in the order of `items`, which are all samples of one prompt: a function of a
        group is called once for them all. `between(done)` is called regularly; what it raises ends
        the work.

        Raises UserCodeError if the function cannot be imported, or if its first calls all take too
        long.
        """
        # A function that cannot be imported is one error, not one for every sample.
        unit = self.load(lambda _: between(0))["unit"]
        calls = [items] if unit == "group" and items else [[item] for item in items]
        work = [partial(self._scored, call, timeout_ms) for call in calls]
        results = self._run(work, between)
        return [
            {"id": item["id"], **result}
            for call, scored in zip(calls, results, strict=True)
            for item, result in zip(call, scored, strict=bool(scored))
        ]

    @property
    def left_behind(self) -> str | None:
        """A sentence about what a call has left behind in its process; None: nothing."""
        return next((process.left_behind for process in self._all if process.left_behind), None)

    def close(self) -> None:
        for process in self._all:
            process.end()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _run(
        self, work: list[Callable[[threading.Event], T]], between: Callable[[int], None]
    ) -> list[T]:
        stop = threading.Event()
        futures = [self._threads.submit(part, stop) for part in work]
        try:
            self._watch(futures, between)
        except BaseException:
            stop.set()
            while wait(futures, timeout=0.05).not_done:
                for process in self._all:
                    process.interrupt()
            raise
        return [future.result() for future in futures]

    def _with_one(self, use: Callable[[PoolProcess], T]) -> T:
        process = self._idle.get()
        try:
            return use(process)
        finally:
            self._idle.put(process)

    def _scored(
        self, items: list[FunctionSample], timeout_ms: float, stop: threading.Event
    ) -> list[Scored]:
        """What one call says; nothing if the work was stopped before."""
        results: list[Scored] = []
        tries = 0
        while not stop.is_set() and tries < _tries(results):
            tries += 1
            results = self._with_one(lambda process: process.call(items, timeout_ms))
            if not stop.is_set():
                self._judge(results, timeout_ms)
        return results

    def _judge(self, results: list[Scored], timeout_ms: float) -> None:
        """Stops if each process has timed out once and no call was ever answered: the rest would
        time out too.
        """
        # A grader that says itself that a program took too long has answered.
        if all(one["outcome"] == "timeout" and "code" not in one for one in results):
            self._timeouts += 1
        else:
            self._answered = True
        if not self._answered and self._timeouts >= max(HOPELESS_CALLS_MIN, len(self._all)):
            raise UserCodeError(
                f"Cannot score with reward '{self._code.function}': each of its first "
                f"{self._timeouts} calls took longer "
                f"than {timeout_ms:g} ms. Fix: look for an endless loop, or raise its timeout_ms"
            )

    def _watch(self, futures: list[Future[T]], between: Callable[[int], None]) -> None:
        open_futures = set(futures)
        while open_futures:
            done, open_futures = wait(open_futures, timeout=WATCH_S, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
            if time.monotonic() - self._bounded_at > BOUND_S:
                tree = process_tree()
                for process in self._all:
                    process.bound(tree)
                self._bounded_at = time.monotonic()
            between(len(futures) - len(open_futures))


def _tries(results: list[Scored]) -> int:
    """How often a call is made that ended so; if a part of its samples failed, it has answered."""
    outcomes = {result["outcome"] for result in results}
    return TRIES.get(outcomes.pop(), 1) if len(outcomes) == 1 else 1
