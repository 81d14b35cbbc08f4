"""`math_verify_pairs.jsonl` has the pairs of math-verify 0.9.0's own tests (Apache-2.0), from its
source distribution on PyPI: test_all, test_boxed, test_numina_cases, test_open_thoughts and
test_strict. Each has the settings of its test where they are not the defaults.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast_worker.rewards.exchange import FunctionSample
from holdfast_worker.rewards.graders.math_answer import grade
from holdfast_worker.rewards.pool import RewardPool
from holdfast_worker.rewards.reward_code import RewardCode

PAIRS: list[dict[str, Any]] = [
    json.loads(line)
    for line in Path(__file__).with_name("math_verify_pairs.jsonl").read_text().splitlines()
]
SOURCE = "holdfast_worker.rewards.graders.math_answer:grade"
# Their tests change a setting that `math` does not have: only one form, fewer digits, not strict.
OTHERWISE = {
    ("1,22", "1.22"),
    ("$9$", "Answer $ \n 9 \n $"),
    ("$9$", "Answer \\( \n 9 \n \\)"),
    ("$\\frac{1}{3}$", "0.3333$"),
    (
        "$(\\begin{pmatrix}\\frac{1}{3}\\\\ \\frac{1}{5} \\end{pmatrix})$",
        "$\\begin{pmatrix}0.33\\\\0.2 \\end{pmatrix}$",
    ),
    ("$(\\frac{3}{5},\\frac{8}{3}]$", "$(0.6,2.6667]$"),
    ("$x \\in [-2,7]$", "$-2 \\\\le x \\\\le 7$"),
    ("$f(x)$", "$f(y)$"),
}


def code() -> RewardCode:
    return RewardCode(
        function=SOURCE,
        style="holdfast",
        env=(),
        memory_gib=8,
        cpu_s=60,
        file_mib=1024,
        processes_max=64,
        isolate=True,
    )


def test_grade_agrees_with_math_verify_on_its_own_pairs() -> None:
    assert len(PAIRS) == 262
    differ = {
        (pair["gold"], pair["pred"])
        for pair in PAIRS
        if grade(pair["pred"], pair["gold"]) != pair["expected"]
    }
    assert differ == OTHERWISE
    changed = {(pair["gold"], pair["pred"]) for pair in PAIRS if "settings" in pair}
    assert differ <= changed


@pytest.mark.parametrize(
    ("answer", "completion", "score"),
    [
        ("\\frac{1}{2}", "It is \\boxed{0.5}.", 1),
        ("2\\sqrt{3}", "so $\\sqrt{12}$", 1),
        ("2\\sqrt{3}", "so 2", 0),
        ("1,042", "The answer is 1042", 1),
        ("12", "", 0),
        ("12", "I do not know", 0),
        ("x=3", "\\boxed{3}", 1),
    ],
)
def test_grade_reads_an_answer_without_dollar_signs_as_tex(
    answer: str, completion: str, score: int
) -> None:
    assert grade(completion, answer) == score


def test_an_answer_without_content_is_a_broken_row() -> None:
    with pytest.raises(ValueError, match="no mathematics: ''"):
        grade("1", "")


def test_a_grader_that_does_not_end_is_one_timeout_and_the_next_call_has_a_new_process() -> None:
    pool = RewardPool(code(), 1)
    try:
        items: list[FunctionSample] = [
            {"id": str(i), "prompt": "?", "completion": completion, "columns": {}, "answer": "4"}
            for i, completion in enumerate(["\\boxed{4}", "$9^{9^{9^{9}}}$", "$2+2$"])
        ]
        results = pool.score(items, timeout_ms=4_000)
    finally:
        pool.close()
    assert [(r["outcome"], r["score"]) for r in results] == [
        ("ok", 1.0),
        ("timeout", None),
        ("ok", 1.0),
    ]


def test_an_environment_without_math_verify_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "math_verify", None)
    monkeypatch.delitem(sys.modules, "holdfast_worker.rewards.graders.math_answer")
    with pytest.raises(ImportError, match=r"has no math-verify.*Fix: install math-verify\[antlr4"):
        __import__("holdfast_worker.rewards.graders.math_answer")
