"""The loop of an interpreter, over lists in place of pipes."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from holdfast_worker.rewards.sandbox.sides import serve


def served(side: Literal["program", "tests", "script"], *received: Any, script: Any = None) -> Any:
    requests, sent = list(received), list[Any]()
    with pytest.raises(IndexError):
        serve(
            side,
            lambda: json.dumps(requests.pop(0)),
            lambda text: sent.append(json.loads(text)),
            script,
        )
    assert sent.pop(0) == {"up": side}
    return sent


def test_the_programs_side_is_asked_and_answers() -> None:
    load = {"ask": {"op": "load", "source": "x = 1"}}
    assert served("program", load) == [{"answer": {"names": {"x": 1}}}]


def test_the_tests_side_asks_the_program_before_its_verdict() -> None:
    load = {"op": "load", "setup": "", "tests": ["assert f(1) == 2"], "entry": None}
    names = {"op": "names", "names": {"f": {"ref": 5}}, "entry": None}
    sent = served("tests", load, names, {"op": "run", "case": 0}, {"answer": {"value": 2}})
    call = {"op": "call", "of": {"ref": 5}, "args": [1], "named": {}}
    right = {"right": True, "why": ""}
    assert sent == [{"verdict": {"cases": 1}}, {"verdict": {}}, {"ask": call}, {"verdict": right}]


def test_a_script_is_called_with_each_message() -> None:
    assert served("script", 1, 2, script=lambda message: message + 1) == [2, 3]
