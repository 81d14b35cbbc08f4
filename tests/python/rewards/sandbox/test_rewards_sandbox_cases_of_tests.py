"""Which cases a text of tests has, without running it."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast_worker.rewards.sandbox.cases_of_tests import cases_of


def outcomes(*texts: str, setup: str = "", entry: str | None = None, **space: Any) -> list[str]:
    said: list[str] = []
    for case in cases_of(setup, list(texts), entry=entry, space=space):
        try:
            case()
            said.append("right")
        except BaseException as error:
            said.append(type(error).__name__)
    return said


def test_each_assert_is_a_case_after_what_stands_before_it() -> None:
    assert outcomes("assert f() == 1", "x = 2\nassert x == 2\nassert x == 3", f=lambda: 1) == [
        "right",
        "right",
        "AssertionError",
    ]


def test_a_check_function_is_one_case_whether_or_not_the_text_calls_it() -> None:
    text = "def check(candidate):\n    assert candidate(1) == 2\n"
    assert outcomes(text, entry="f", f=lambda x: x + 1) == ["right"]
    assert outcomes(text + "check(f)", entry="f", f=lambda x: x) == ["AssertionError"]
    assert outcomes(text, entry="g") == ["KeyError"]
    with pytest.raises(ValueError, match="entry_point"):
        outcomes(text)


def test_test_functions_and_methods_are_cases() -> None:
    text = (
        "import unittest\n"
        "def test_one(): assert True\n"
        "def helper(): assert False\n"
        "class Some(unittest.TestCase):\n"
        "    def setUp(self): self.x = 1\n"
        "    def test_a(self): self.assertEqual(self.x, 1)\n"
        "    def test_b(self): self.assertEqual(self.x, 2)\n"
        "class TestPlain:\n"
        "    def test_c(self): assert True\n"
    )
    assert outcomes(text) == ["right", "right", "AssertionError", "right"]


def test_what_fails_before_the_cases_fails_each() -> None:
    assert outcomes("assert 1\nassert 2", setup="1 / 0") == ["ZeroDivisionError"] * 2


@pytest.mark.parametrize("text", ["x = 1", "def test_a(tmp_path): pass", "def f(:"])
def test_a_text_that_cannot_be_run_alone_is_refused(text: str) -> None:
    with pytest.raises((ValueError, SyntaxError)):
        outcomes(text)
