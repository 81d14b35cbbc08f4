"""Frames of JSON to a process."""

from __future__ import annotations

import sys
import time

import pytest

from holdfast_worker.rewards.sandbox.interpreter import Interpreter, frame, modules
from holdfast_worker.rewards.sandbox.started import Ended, Started


def interpreter(code: str) -> Interpreter:
    process = Started([sys.executable, "-S", "-c", code], env={}, prepare=lambda: None)
    return Interpreter(process, [], time.monotonic() + 30)


def test_what_is_sent_comes_back() -> None:
    echo = interpreter("import os\nwhile data := os.read(0, 1 << 16):\n    os.write(1, data)")
    echo.send({"a": ["\ud800", 1.5]}, time.monotonic() + 30)
    assert echo.receive(time.monotonic() + 30) == {"a": ["\ud800", 1.5]}
    echo.close()


@pytest.mark.parametrize(
    ("written", "outcome"),
    [
        (b"\xff\xff\xff\xff", "output"),
        (frame("[1]"), "crash"),
        (frame("{"), "crash"),
        (frame("[" * 100_000), "crash"),
        (b"\0\0", "crash"),
    ],
)
def test_what_is_no_message_ends_it(written: bytes, outcome: str) -> None:
    liar = interpreter(
        f"import os\nos.write(1, {written!r})"
        if len(written) < 99
        else "import os\nos.write(1, b'\\0\\1\\x86\\xa0' + b'[' * 100_000)"
    )
    with pytest.raises(Ended) as ended:
        liar.receive(time.monotonic() + 30)
    assert ended.value.outcome == outcome
    liar.close()


def test_modules_have_the_sides() -> None:
    assert "holdfast_worker.rewards.sandbox.sides" in modules()
