"""The reward `code` on rows of each shape."""

from __future__ import annotations

import json
from typing import Any

import pytest

from code_settings import code_settings, fenced
from holdfast_worker.rewards.graders.code_answer import grader
from holdfast_worker.rewards.sandbox import walls
from holdfast_worker.rewards.sandbox.started import CannotStart, OutOfTime

DOUBLE = "print(2 * int(input()))"
ADD = "def add(a, b):\n    return a + b"
CASES = {"inputs": ["1", "2", "3"], "outputs": ["2", "4.0", "7"]}


@pytest.mark.parametrize(
    ("program", "row", "score"),
    [
        (DOUBLE, {"input_output": json.dumps(CASES)}, 2 / 3),
        (ADD, {"test_list": ["assert add(1, 2) == 3", "assert add(1, 2) == 4"]}, 0.5),
        (ADD, {"test": "def check(f):\n    assert f(1, 2) == 3", "entry_point": "add"}, 1.0),
        ("class Solution:\n    def f(self, x: List[int]):\n        return tuple(x)",
         {"test_cases": [{"input": "[1]", "output": "[1]", "fn_name": "f"}]}, 1.0),
        ("import sys\nclass Add:\n    def f(self): return 1", {"tests":
         "from solution import Add\ndef test_a(): assert Add().f() == 1"}, 1.0),
    ],
)  # fmt: skip
def test_grade_gives_the_share_of_right_cases(program: str, row: Any, score: float) -> None:
    grade = grader(code_settings(sandbox="process"))
    assert grade(fenced(program), row)["score"] == pytest.approx(score)


def test_grade_pays_all_or_nothing_and_counts_how_cases_ended() -> None:
    grade = grader(code_settings(sandbox="process", credit="all"))
    row = {"input_output": {"inputs": ["1", "x"], "outputs": ["2", "2"]}}
    said = grade(fenced(DOUBLE), row)
    assert (said["score"], said["error"], said["no_program"]) == (0.0, 0.5, 0.0)
    assert grade("no program", row)["no_program"] == 1.0
    with pytest.raises(ValueError, match="has no cases"):
        grade(fenced(DOUBLE), {})
    with pytest.raises(ValueError, match="the row's tests do not run: SyntaxError"):
        grade(fenced(DOUBLE), {"tests": "assert ("})


def test_grader_refuses_a_machine_without_namespaces_unless_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(_: int) -> None:
        raise PermissionError("Operation not permitted")

    monkeypatch.setattr(walls, "unshare", refused)
    monkeypatch.setattr(walls, "_become_nobody", lambda: None)
    settings = code_settings(sandbox="process", processes_max=1000)
    with pytest.raises(CannotStart, match="does not let it have namespaces.*Fix: use `sandbox"):
        grader(settings)
    accepting = code_settings(sandbox="process", without_namespaces="accept", processes_max=100_000)
    row = {"test_cases": [{"input": "1", "output": "2"}]}
    assert grader(accepting)(fenced(DOUBLE), row)["score"] == 1.0


def test_a_program_that_works_too_long_is_wrong_and_one_that_waits_is_not_known() -> None:
    grade = grader(code_settings(sandbox="process", case_timeout_ms=300, slowed=1))
    row = {"test_cases": [{"input": "1", "output": "2"}]}
    busy = grade(fenced("while True: pass"), row)
    assert (busy["score"], busy["timeout"]) == (0.0, 1.0)
    with pytest.raises(OutOfTime, match="took too long by the clock"):
        grade(fenced("import time\ntime.sleep(1000)"), row)
    tested = {"test_list": ["assert f() == 1"]}
    assert grade(fenced("def f():\n    while True: pass"), tested)["timeout"] == 1.0
    with pytest.raises(OutOfTime):
        grade(fenced("import time\ndef f(): time.sleep(1000)"), tested)
