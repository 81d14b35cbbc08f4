"""Tests and a program in one process, each behind its side: what a test may believe."""

from __future__ import annotations

import pytest

from holdfast_worker.rewards.sandbox.program_side import ProgramSide
from holdfast_worker.rewards.sandbox.tests_side import TestsSide

PROGRAM = """
import math
class Wrong(ValueError):
    pass
class Point:
    def __init__(self, x): self.x = x
    def __eq__(self, other): return True
    def __hash__(self): return 1
    def __lt__(self, other): return True
    def __sub__(self, other): return 0.0
    def __len__(self): return 2
    def __getitem__(self, at): return [1, 2][at]
def make(x): return Point(x)
def add(a, b=1): return a + b
def sort(values): values.sort()
def apply(function, x): return function(x)
def numbers(): yield from (1, 2)
def fail(): raise Wrong("no")
def abs(x): return 0
"""


def answers(tests: list[str], *, setup: str = "", entry: str | None = None) -> list[bool | str]:
    side = TestsSide(lambda message: program.answer(message))  # noqa: PLW0108 - a cycle.
    program = ProgramSide(side.answer_program)
    loaded = side.answer({"op": "load", "setup": setup, "tests": tests, "entry": entry})
    if "broken" in loaded:
        return [loaded["broken"]]
    names = program.answer({"op": "load", "source": PROGRAM})["names"]
    side.answer({"op": "names", "names": names, "entry": entry})
    said = [side.answer({"op": "run", "case": case}) for case in range(loaded["cases"])]
    return [one["broken"] if "broken" in one else one["right"] for one in said]


@pytest.mark.parametrize(
    "test",
    [
        "assert add(1) == 2 and add(1, b=4) == 5",
        "values = [2, 1]\nsort(values)\nassert values == [1, 2]",
        "assert apply(lambda x: x + add(x), 3) == 7",
        "assert list(numbers()) == [1, 2]",
        "assert isinstance(make(1), Point) and make(3).x == 3",
        "assert make(1) == Point(2) and len(make(1)) == 2 and make(1)[1] == 2",
        "try:\n    fail()\nexcept Wrong as error:\n    caught = str(error)\nassert caught == 'no'",
        "from solution import add as plus\nassert plus(1) == 2",
        "assert math.isclose(add(1), 2) and abs(-3) == 3",
    ],
)
def test_a_right_program_is_right(test: str) -> None:
    assert answers([test]) == [True]


@pytest.mark.parametrize(
    "test",
    [
        "assert make(1) == 1",
        "assert 1 == make(1)",
        "assert make(1) in [1, 2]",
        "assert make(1) < 2",
        "assert abs(make(1) - 3) < 1",
        "assert 1 in make(1)",
        "assert isinstance(make(1), int)",
        "from solution import nothing\nassert True",
    ],
)
def test_an_object_of_the_program_passes_for_no_plain_value(test: str) -> None:
    assert answers([test]) == [False]


def test_tests_that_do_not_run_are_the_rows_fault() -> None:
    assert answers(["assert (1"])[0].startswith("SyntaxError")
    (said,) = answers(["import no_such_module\nassert True"])
    assert said == "ModuleNotFoundError: No module named 'no_such_module'"
