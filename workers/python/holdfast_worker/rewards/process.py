"""
One process of the reward pool: `python -m holdfast_worker.rewards.process REWARD_CODE_AS_JSON`.

Imports a user's function and calls it on its main thread (graders that set alarms need that). What
the user's code prints goes to the log: the channel has its own descriptor.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import json
import math
import os
import resource
import signal
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor, thread
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from holdfast_worker.process_table import descendants, end_below, reap
from holdfast_worker.rank.channel import CHANNEL_VARIABLE, Channel, ChannelClosed
from holdfast_worker.rewards.code_digest import code_digest
from holdfast_worker.rewards.confinement import confine
from holdfast_worker.rewards.reward_code import RewardCode
from holdfast_worker.rewards.sandbox.started import CannotStart, OutOfTime
from holdfast_worker.rewards.styles.reading import BadReturn, Raised, printable
from holdfast_worker.rewards.styles.table import recognise
from holdfast_worker.rewards.styles.target import Target

if TYPE_CHECKING:
    from holdfast_worker.rewards.exchange import (
        CallAnswer,
        FunctionSample,
        Loaded,
        NotLoaded,
        SampleAnswer,
    )
    from holdfast_worker.rewards.styles.reading import Answer

ERROR_CHARS_MAX = 4_000
FRAMES_MAX = 64
THREAD_END_S = 0.05  # A thread that was joined is still listed for a moment.
NOTHING_TO_GRADE_BY = "it returned None: there is nothing to grade by"
OWN_FRAMES = (
    str(Path(__file__).resolve().parent),
    str(Path(asyncio.__file__).parent),
    "<frozen importlib",
)


def load_function(source: str) -> Any:
    """What `path.py:NAME` or `package.module:NAME` names: a function, or what a style calls."""
    place, _, name = source.rpartition(":")
    if not place:
        raise ValueError(f"Cannot import reward '{source}': expected path.py:function")
    module = _load_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    function = getattr(module, name, None)
    if function is None:
        raise AttributeError(
            f"Cannot import reward '{source}' because {place} has no function '{name}'"
        )
    return function


def _load_file(path: Path) -> Any:
    path = path.resolve()
    if not path.is_file():
        raise FileNotFoundError(f"Cannot import a reward from {path} because there is no such file")
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))  # So that it can import its neighbours.
    spec = importlib.util.spec_from_file_location(f"holdfast_reward_{path.stem}", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Dataclasses and pickles look their module up.
    spec.loader.exec_module(module)
    return module


def user_traceback(error: BaseException) -> str:
    """The error with the user's own frames only, the innermost ones."""
    every = traceback.extract_tb(error.__traceback__, limit=-FRAMES_MAX)
    frames = [frame for frame in every if not frame.filename.startswith(OWN_FRAMES)]
    lines = traceback.format_exception_only(type(error), error) + traceback.format_list(frames)
    return printable("".join(lines).rstrip(), ERROR_CHARS_MAX)


def _sent(answer: Answer) -> SampleAnswer:
    match answer:
        case BadReturn():
            outcome, text = "bad_return", printable(str(answer), ERROR_CHARS_MAX)
        case Raised(OutOfTime() as error):
            outcome, text = "timeout", str(error)
        case Raised(error):
            outcome, text = "error", user_traceback(error)
        case _ if answer.value is None:
            outcome, text = "none", NOTHING_TO_GRADE_BY
        case _:
            sent: SampleAnswer = {
                "outcome": "ok",
                "score": answer.value,
                "metrics": answer.metrics,
                "error": None,
            }
            return sent if answer.tokens is None else {**sent, "token_scores": answer.tokens}
    return {"outcome": outcome, "score": None, "metrics": {}, "error": text}


# User code may put its own things where modules hold theirs. What must not fail is held here.
_chdir, _exit, _getcwd, _getpid = os.chdir, os._exit, os.getcwd, os.getpid
_setitimer, _waitid = signal.setitimer, getattr(os, "waitid", None)
_frames = sys._current_frames  # Of every thread that runs Python, whatever started it.
_pool_worker = thread._worker.__code__
_enumerate, _monotonic, _sleep = threading.enumerate, time.monotonic, time.sleep


class Process:
    """Answers `load` and `call` messages until the channel closes."""

    def __init__(self, channel: Channel, code: RewardCode, *, isolated: bool) -> None:
        self._channel = channel
        self._code = code
        self._isolated = isolated
        self._pid = _getpid()
        self._cwd = _getcwd()
        # What the import started: processes and threads.
        self._helpers: frozenset[int] = frozenset()
        self._threads: frozenset[int] = frozenset(_frames())
        self._loop = asyncio.new_event_loop()

    def serve(self) -> None:
        while True:
            message = self._channel.receive()
            loads = message["type"] == "load"
            answer = self._load() if loads else self._call(message["items"])
            if _getpid() != self._pid:
                _exit(
                    0
                )  # A child that the user's code forked and that returned as if it were its parent.
            leftover = self._clear_up(keep=loads)
            reply = {**answer, "leftover": leftover} if leftover else answer
            self._channel.send({**reply, "nonce": message["nonce"]})
            if leftover:
                _exit(0)

    def _load(self) -> Loaded | NotLoaded:
        try:
            function = load_function(self._code.function)
            if self._code.settings is not None:
                function = function(json.loads(self._code.settings))
            target = Target.of(function)
            style, why = recognise(target, self._code.style)
            self._scorer = style.bind(target)
            code = code_digest(self._code.function, style=style.name, settings=self._code.settings)
        except CannotStart as why:
            return {"error": str(why), "is_whole": True}
        except (
            BaseException
        ) as error:  # User code runs at import: whatever it raises is the answer.
            return {"error": user_traceback(error)}
        return {
            "error": None,
            "needs": list(self._scorer.needs),
            "isolated": self._isolated,
            "style": style.name,
            "unit": style.unit,
            "why": why,
            "code": code,
        }

    def _call(self, samples: list[FunctionSample]) -> CallAnswer:
        try:
            self._allow_cpu()
            try:
                answers = self._scorer.score(samples, self._settled)
            finally:
                # A leftover alarm would kill this process while it waits.
                _setitimer(signal.ITIMER_REAL, 0)
            return {"whole": None, "samples": [_sent(answer) for answer in answers]}
        except BadReturn as bad:
            whole = _sent(bad)
        except BaseException as error:
            whole = _sent(Raised(error))
        if len(samples) > 1:
            whole["error"] = f"{whole['error']}\n(one call for {len(samples)} samples: all fail)"
        return {"whole": whole, "samples": []}

    def _settled(self, returned: Any) -> Any:
        return self._awaited(returned) if inspect.isawaitable(returned) else returned

    def _awaited(self, awaitable: Any) -> Any:
        """One loop for all calls, because clients that a module keeps belong to it. Tasks end with
        their call.
        """
        if self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
        threads = ThreadPoolExecutor()  # The loop's own would stay: name resolution uses it.
        self._loop.set_default_executor(threads)
        try:
            return self._loop.run_until_complete(_result_of(awaitable))
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            if tasks:
                self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))

    def _allow_cpu(self) -> None:
        """This much from now on: the system's limit counts from the process's start."""
        if self._code.cpu_s is None:
            return
        used = resource.getrusage(resource.RUSAGE_SELF)
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        soft = math.ceil(used.ru_utime + used.ru_stime + self._code.cpu_s)
        resource.setrlimit(
            resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard)
        )

    def _clear_up(self, *, keep: bool) -> str:
        """Removes what a call leaves behind, its directory and its processes, before the next one.
        What the import started stays (`keep`). Not empty: what is left that only ends with this
        process.
        """
        try:
            _chdir(self._cwd)
        except OSError:
            pass  # The user's code removed it; the next call works there, too.
        if keep:
            self._threads = frozenset(_frames())
            self._helpers = frozenset(descendants(self._pid) if _has_children() else ())
            return ""
        if not self._end_processes():
            return "processes"
        return self._remaining_threads()

    def _end_processes(self) -> bool:
        """Whether all that a call started have ended."""
        if not _has_children():
            return True
        children = [pid for pid in descendants(self._pid) if pid not in self._helpers]
        end_below(self._pid, spared=self._helpers)
        for child in children if self._helpers else [-1]:  # -1: every one.
            reap(child)
        return len(self._helpers) > 0 or not _has_children()

    def _remaining_threads(self) -> str:
        """The names of threads that a call started and that still run: one could read the next request
        and answer it. Those of libraries, which run no Python, are none; nor are those that wait
        for work, of a pool that a module keeps.
        """
        deadline = _monotonic() + THREAD_END_S
        while remaining := {
            ident
            for ident, frame in _frames().items()
            if ident not in self._threads and not _is_idle(frame)
        }:
            if _monotonic() > deadline:
                names = sorted(one.name for one in _enumerate() if one.ident in remaining)
                return f"threads ({', '.join(names)})" if names else "threads"
            _sleep(0.001)
        return ""


def _is_idle(frame: FrameType) -> bool:
    """Whether a thread waits for work in a `ThreadPoolExecutor`, or is tqdm's, which only looks."""
    waits = frame.f_code.co_filename == threading.__file__ and frame.f_code.co_name == "wait"
    while waits and frame.f_back and frame.f_code.co_filename == threading.__file__:
        frame = frame.f_back
    return frame.f_code is _pool_worker or (
        waits and frame.f_code.co_filename.endswith("/tqdm/_monitor.py")
    )


def _has_children() -> bool:
    """Orphans of calls among them, as this process is a subreaper."""
    if _waitid is None:
        return True
    try:
        _waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


async def _result_of(value: Any) -> Any:
    return await value


def main() -> None:
    channel_fd = int(os.environ.pop(CHANNEL_VARIABLE))
    code = RewardCode.from_json(sys.argv[1])
    isolated = confine(code, channel_fd=channel_fd)
    channel = Channel.from_fd(channel_fd)
    os.register_at_fork(after_in_child=channel.close)
    try:
        Process(channel, code, isolated=isolated).serve()
    except ChannelClosed:
        pass
    _exit(0)


if __name__ == "__main__":
    main()
