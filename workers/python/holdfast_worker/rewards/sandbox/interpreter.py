"""An interpreter in a sandbox, and what it is asked: frames of JSON with a length before them."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from holdfast_worker.rewards.sandbox.cpu_time import CpuTime
from holdfast_worker.rewards.sandbox.started import Ended, Started

HEADER = struct.Struct(">I")
FRAME_BYTES_MAX = 8 << 20
PACKAGE = "holdfast_worker.rewards.sandbox"
INSIDE = ("values", "cases_of_tests", "program_side", "tests_side", "sides")
Side = Literal["program", "tests", "script"]


def frame(text: str) -> bytes:
    body = text.encode(errors="replace")
    return HEADER.pack(len(body)) + body


def modules() -> str:
    """What runs inside, by name. In their order, each is imported by those after it."""
    here = Path(__file__).parent
    return json.dumps({f"{PACKAGE}.{name}": (here / f"{name}.py").read_text() for name in INSIDE})


class Interpreter:
    """Messages to one process, each with a deadline (time.monotonic). Raises Ended."""

    def __init__(self, started: Started, texts: list[str], deadline: float) -> None:
        """`texts`: what it receives before any message."""
        self._started = started
        for text in texts:
            started.send(frame(text), deadline)

    def wait_until_up(self, deadline: float) -> None:
        """Until it answers messages."""
        if "up" not in self.receive(deadline):
            raise Ended("crash", "it wrote what is no message")

    def send(self, message: Any, deadline: float) -> None:
        self._started.send(frame(json.dumps(message)), deadline)

    def receive(self, deadline: float) -> dict[str, Any]:
        (length,) = HEADER.unpack(self._started.receive(HEADER.size, deadline))
        if length > FRAME_BYTES_MAX:
            raise Ended("output", f"it returned more than {FRAME_BYTES_MAX} bytes")
        body = self._started.receive(length, deadline)
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            raise Ended("crash", "it wrote what is no message")
        return cast("dict[str, Any]", message)

    def close(self) -> None:
        self._started.end()


class Scripts(Protocol):
    """Runs one program again and again, each time with another input."""

    def ready(self) -> None:
        """Starts what a run needs, outside of its time. Raises CannotStart."""
        ...

    def run(self, stdin: str, deadline: float) -> str:
        """What it printed. Raises Ended."""
        ...

    def close(self) -> None: ...


class Sandbox(Protocol):
    """Starts processes in which programs run. Starting one is not in a program's time. What they
    use counts in `cpu`.
    """

    def scripts(self, program: str, cpu: CpuTime | None = None) -> Scripts: ...

    def interpreter(
        self, side: Literal["program", "tests"], cpu: CpuTime | None = None
    ) -> Interpreter: ...

    def close(self) -> None: ...
