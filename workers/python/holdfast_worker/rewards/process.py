"""One process of the reward pool: `python -m holdfast_worker.rewards.process`.

Imports a user's function and calls it on its main thread (graders that set alarms need that). What the user's code
prints goes to the log: the channel has its own descriptor.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import math
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast_worker.channel import CHANNEL_VARIABLE, Channel, ChannelClosed

ERROR_CHARS_MAX = 4_000
OWN_FRAMES = (str(Path(__file__).resolve().parent), str(Path(asyncio.__file__).parent), "<frozen importlib")


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
        raise FileNotFoundError(f"Cannot import a reward from {path} as there is no such file")
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))  # So that it can import what lies beside it.
    spec = importlib.util.spec_from_file_location(f"holdfast_reward_{path.stem}", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Dataclasses and pickles look their module up.
    spec.loader.exec_module(module)
    return module


def accepted(function: Callable[..., Any], item: dict[str, Any]) -> dict[str, Any]:
    """The keyword arguments that a function takes of `prompt`, `completion`, `row`, `tokens`."""
    given = {name: item.get(name) for name in ("prompt", "completion", "row", "tokens")}
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return given
    return {name: value for name, value in given.items() if name in {parameter.name for parameter in parameters}}


def checked(returned: Any) -> tuple[float, dict[str, float]]:
    """(score, metrics) of what a function returned: a number, or a dict with `score` and numbers beside it."""
    if not isinstance(returned, dict):
        return _number("score", returned), {}
    if "score" not in returned:
        raise BadReturn(f"returned a dict without 'score': its keys are {sorted(map(str, returned))}")
    more = {**returned, **(returned.get("metrics") or {})}
    metrics = {str(key): _number(str(key), value) for key, value in more.items() if key not in ("score", "metrics")}
    return _number("score", returned["score"]), metrics


def _number(name: str, value: Any) -> float:
    if hasattr(value, "item"):
        try:
            value = value.item()  # numpy's and torch's scalars; an array of several refuses.
        except (RuntimeError, ValueError, TypeError):
            pass
    if not isinstance(value, (int, float)):  # bool is an int: a grader may say True.
        raise BadReturn(f"returned {name} {value!r:.200}, a {type(value).__name__}: expected a number")
    if not math.isfinite(value):
        raise BadReturn(f"returned {name} {value}: expected a finite number")
    return float(value)


def user_traceback(error: BaseException) -> str:
    """The error with the user's own frames only."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(OWN_FRAMES)]
    lines = traceback.format_exception_only(type(error), error) + traceback.format_list(frames)
    return "".join(lines).rstrip()[:ERROR_CHARS_MAX]


class Process:
    """Answers `load` and `call` messages until the channel closes."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._functions: dict[str, Callable[..., Any]] = {}
        self._loop = asyncio.new_event_loop()

    def serve(self) -> None:
        handlers = {"load": self._load, "call": self._call}
        while True:
            message = self._channel.receive()
            answer = handlers[message["type"]](message)
            # An alarm that the user's code left behind would kill this process while it waits.
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._channel.send(answer)

    def _load(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            self._functions[message["source"]] = load_function(message["source"])
        except BaseException as error:  # User code runs at import: whatever it raises is the answer.
            return {"error": user_traceback(error)}
        return {"error": None}

    def _call(self, message: dict[str, Any]) -> dict[str, Any]:
        function = self._functions[message["source"]]
        started = time.perf_counter()
        score: float | None = None
        metrics: dict[str, float] = {}
        outcome, text = "ok", None
        try:
            returned = function(**accepted(function, message["item"]))
            if inspect.isawaitable(returned):
                returned = self._loop.run_until_complete(_awaited(returned))
            score, metrics = checked(returned)
        except BadReturn as error:
            outcome, text = "bad_return", str(error)
        except BaseException as error:
            outcome, text = "error", user_traceback(error)
        ms = (time.perf_counter() - started) * 1000
        return {"outcome": outcome, "score": score, "metrics": metrics, "error": text, "ms": ms}


async def _awaited(value: Any) -> Any:
    return await value


def _end_with(fd: int) -> None:
    """Ends this process when the pool is gone, also in the middle of a user's function."""
    poll = select.poll()
    poll.register(fd, 0)
    while not poll.poll():
        pass
    os._exit(0)


def main() -> None:
    channel = Channel.from_fd(int(os.environ.pop(CHANNEL_VARIABLE)))
    threading.Thread(target=_end_with, args=(channel.fileno(),), daemon=True).start()
    try:
        Process(channel).serve()
    except ChannelClosed:
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
