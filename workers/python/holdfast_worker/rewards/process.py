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
import math
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast_worker.channel import CHANNEL_VARIABLE, Channel, ChannelClosed
from holdfast_worker.process_table import descendants, end_below, reap
from holdfast_worker.rewards.confinement import confine
from holdfast_worker.rewards.reward_code import RewardCode

ERROR_CHARS_MAX = 4_000
FRAMES_MAX = 64
METRICS_MAX = 100
NAME_CHARS_MAX = 200
GIVEN = ("prompt", "completion", "row", "tokens")
NOTHING_TO_GRADE_BY = "it returned None: there is nothing to grade by"
OWN_FRAMES = (
    str(Path(__file__).resolve().parent),
    str(Path(asyncio.__file__).parent),
    "<frozen importlib",
)


class BadReturn(Exception):
    """The function returned something that is not a finite score."""


def load_function(source: str) -> Callable[..., Any]:
    """The function of `path.py:function`, or of `package.module:function`."""
    place, _, name = source.rpartition(":")
    if not place:
        raise ValueError(f"Cannot import reward '{source}': expected path.py:function")
    module = _load_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    function = getattr(module, name, None)
    if not callable(function):
        raise AttributeError(f"Cannot import reward '{source}' as {place} has no function '{name}'")
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


@dataclass(frozen=True)
class Parameters:
    """
    What a function takes by name: of a sample (`GIVEN`), and columns of its row, of which some have
    a default.
    """

    given: tuple[str, ...]
    columns: tuple[str, ...]
    needs: tuple[str, ...]

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Parameters:
        every = inspect.signature(function).parameters.values()
        takes_all = any(one.kind is one.VAR_KEYWORD for one in every)
        by_place = [
            one.name
            for one in every
            if one.kind is one.POSITIONAL_ONLY and one.default is one.empty
        ]
        if by_place:
            raise TypeError(
                f"Cannot call it because it takes {by_place[0]!r} by its place only: arguments are given by name"
            )
        by_name = [
            one for one in every if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
        ]
        names = {one.name for one in by_name}
        columns = [one for one in by_name if one.name not in GIVEN]
        return cls(
            given=tuple(name for name in GIVEN if takes_all or name in names),
            columns=tuple(one.name for one in columns),
            needs=tuple(one.name for one in columns if one.default is one.empty),
        )

    def accepted(self, item: dict[str, Any]) -> dict[str, Any]:
        """The keyword arguments for a sample."""
        row = item.get("row") or {}
        return {name: item.get(name) for name in self.given} | {
            name: row[name] for name in self.columns if name in row
        }


def checked(returned: Any) -> tuple[float | None, dict[str, float]]:
    """(score, metrics) of what a function returned: a number, or a dict with `score` and numbers
    beside it. None as the score: there is nothing to grade by, and the other numbers are ignored.
    """
    if returned is None or (isinstance(returned, dict) and returned.get("score", 0) is None):
        return None, {}
    if not isinstance(returned, dict):
        return _number("score", returned), {}
    if "score" not in returned:
        raise BadReturn(
            f"returned a dict without 'score': its keys are {sorted(map(str, returned))}"
        )
    inner = returned.get("metrics") or {}
    if not isinstance(inner, dict):
        raise BadReturn(
            f"returned metrics that are a {type(inner).__name__}: expected a dict of numbers"
        )
    more = {**returned, **inner}
    if len(more) > METRICS_MAX:
        raise BadReturn(f"returned {len(more)} numbers: expected at most {METRICS_MAX}")
    named = {printable(str(key), NAME_CHARS_MAX): value for key, value in more.items()}
    metrics = {
        name: _number(name, value)
        for name, value in named.items()
        if name not in ("score", "metrics")
    }
    return _number("score", returned["score"]), metrics


def _number(name: str, value: Any) -> float:
    if hasattr(value, "item"):
        try:
            value = value.item()  # numpy's and torch's scalars; an array of several refuses.
        except (RuntimeError, ValueError, TypeError):
            pass
    if not isinstance(value, (int, float)):  # bool is an int: a grader may say True.
        raise BadReturn(
            f"returned {name} {value!r:.200}, a {type(value).__name__}: expected a number"
        )
    try:
        number = float(value)
    except OverflowError:
        raise BadReturn(
            f"returned {name}, an integer that no float can hold: expected a finite number"
        ) from None
    if not math.isfinite(number):
        raise BadReturn(f"returned {name} {number}: expected a finite number")
    return number


def user_traceback(error: BaseException) -> str:
    """The error with the user's own frames only, the innermost ones."""
    every = traceback.extract_tb(error.__traceback__, limit=-FRAMES_MAX)
    frames = [frame for frame in every if not frame.filename.startswith(OWN_FRAMES)]
    lines = traceback.format_exception_only(type(error), error) + traceback.format_list(frames)
    return printable("".join(lines).rstrip(), ERROR_CHARS_MAX)


def printable(text: str, chars_max: int) -> str:
    """A text that can be sent: half of a surrogate pair is not UTF-8."""
    return text[:chars_max].encode("utf-8", "backslashreplace").decode()


# User code may put its own things where modules hold theirs. What must not fail is held here.
_chdir, _exit, _getcwd, _getpid = os.chdir, os._exit, os.getcwd, os.getpid
_setitimer, _waitid = signal.setitimer, getattr(os, "waitid", None)


class Process:
    """Answers `load` and `call` messages until the channel closes."""

    def __init__(self, channel: Channel, code: RewardCode, *, isolated: bool) -> None:
        self._channel = channel
        self._code = code
        self._isolated = isolated
        self._pid = _getpid()
        self._cwd = _getcwd()
        self._helpers: frozenset[int] = frozenset()
        self._loop = asyncio.new_event_loop()

    def serve(self) -> None:
        handlers = {"load": self._load, "call": self._call}
        while True:
            message = self._channel.receive()
            answer = handlers[message["type"]](message)
            if _getpid() != self._pid:
                _exit(
                    0
                )  # A child that the user's code forked and that returned as if it were its parent.
            is_clear = self._clear_up(keep=message["type"] == "load")
            self._channel.send({**answer, "nonce": message["nonce"]})
            if not is_clear:
                _exit(0)

    def _load(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            self._function = load_function(self._code.function)
            self._parameters = Parameters.of(self._function)
        except (
            BaseException
        ) as error:  # User code runs at import: whatever it raises is the answer.
            return {"error": user_traceback(error)}
        return {"error": None, "needs": list(self._parameters.needs), "isolated": self._isolated}

    def _call(self, message: dict[str, Any]) -> dict[str, Any]:
        score: float | None = None
        metrics: dict[str, float] = {}
        outcome, text = "ok", None
        try:
            self._allow_cpu()
            try:
                score, metrics = checked(self._returned(message["item"]))
                if score is None:
                    outcome, text = "none", NOTHING_TO_GRADE_BY
            finally:
                # A leftover alarm would kill this process while it waits.
                _setitimer(signal.ITIMER_REAL, 0)
        except BadReturn as error:
            outcome, text = "bad_return", printable(str(error), ERROR_CHARS_MAX)
        except BaseException as error:
            outcome, text = "error", user_traceback(error)
        return {"outcome": outcome, "score": score, "metrics": metrics, "error": text}

    def _returned(self, item: dict[str, Any]) -> Any:
        returned = self._function(**self._parameters.accepted(item))
        return self._awaited(returned) if inspect.isawaitable(returned) else returned

    def _awaited(self, awaitable: Any) -> Any:
        """One loop for all calls, because clients that a module keeps belong to it. Tasks end with
        their call.
        """
        if self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
        try:
            return self._loop.run_until_complete(_result_of(awaitable))
        finally:
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            if left:
                self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))

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

    def _clear_up(self, *, keep: bool) -> bool:
        """Removes what a call leaves behind, its directory and its processes, before the next one.
        What the import started stays (`keep`). False: something is left that cannot be caught, and
        must end with this process.
        """
        try:
            _chdir(self._cwd)
        except OSError:
            pass  # The user's code removed it; the next call works there, too.
        if not _has_children():
            return True
        if keep:
            self._helpers = frozenset(descendants(self._pid))
            return True
        left = [pid for pid in descendants(self._pid) if pid not in self._helpers]
        end_below(self._pid, spared=self._helpers)
        for child in left if self._helpers else [-1]:  # -1: every one.
            reap(child)
        return len(self._helpers) > 0 or not _has_children()


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
