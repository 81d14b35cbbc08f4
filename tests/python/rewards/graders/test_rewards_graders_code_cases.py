"""Cases in the shapes that data sets have."""

from __future__ import annotations

import base64
import json
import os
import pickle
import zlib
from typing import Any

import pytest

from holdfast_worker.rewards.graders.code_cases import Calls, Scripts, Tests, cases_of

LIVE = [{"input": "[1]\n2", "output": "[3]", "testtype": "functional"}]
HIDDEN = base64.b64encode(zlib.compress(pickle.dumps(json.dumps(LIVE)))).decode()
META = {"metadata": json.dumps({"func_name": "f"})}
CALL = ([[1], 2], [[3], "[3]"])


@pytest.mark.parametrize(
    ("row", "cases"),
    [
        ({"test_cases": [{"input": "1", "output": "2"}]}, Scripts([("1", "2")])),
        ({"input_output": '{"inputs": ["1", ["2", "3"]], "outputs": ["2", 4]}'},
         Scripts([("1", "2"), ("2\n3", "4")])),
        ({"input_output": {"inputs": [[1, 2]], "outputs": [[3]], "fn_name": "f"}},
         Calls("f", [([1, 2], [[3], 3])])),
        ({"public_test_cases": json.dumps(LIVE), **META}, Calls("f", [CALL])),
        ({"public_test_cases": LIVE, "private_test_cases": HIDDEN, **META},
         Calls("f", [CALL, CALL])),
        ({"verification_info": {"test_cases": [{"input": "1", "output": "2"}]}},
         Scripts([("1", "2")])),
        ({"test_list": ["assert f(1)"], "test_imports": ["import re"], "test_setup_code": "x = 1"},
         Tests("import re\nx = 1", ["assert f(1)"], None)),
        ({"test": "def check(c): pass", "entry_point": "f"},
         Tests("\n", ["def check(c): pass"], "f")),
        ({"answer": '{"inputs": ["1"], "outputs": ["2"]}'}, Scripts([("1", "2")])),
    ],
)  # fmt: skip
def test_cases_of_reads_the_shape(row: dict[str, Any], cases: Any) -> None:
    found = cases_of(row, None)
    if isinstance(found, Tests) and isinstance(cases, Tests):
        assert found.setup.strip() == cases.setup.strip()
        assert (found.texts, found.entry) == (cases.texts, cases.entry)
    else:
        assert found == cases


def test_cases_of_a_named_column() -> None:
    row = {"mine": [{"input": "1", "output": "2"}], "tests": "assert 1"}
    assert cases_of(row, "mine") == Scripts([("1", "2")])


class Evil:
    def __reduce__(self) -> Any:
        return (os.system, ("true",))


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({}, "the row has no cases: none of test_cases"),
        ({"tests": 3}, "'tests' has no cases: expected"),
        ({"input_output": {"inputs": [1], "outputs": []}}, "1 inputs and 0 outputs"),
        ({"test_cases": [{"input": "1"}]}, "'output'"),
        ({"test_cases": [{"input": "1", "output": "1", "type": "function_call"}]}, "neither"),
        ({"public_test_cases": LIVE, **META,
          "private_test_cases": base64.b64encode(zlib.compress(pickle.dumps(Evil()))).decode()},
         "it names posix.system"),
    ],
)  # fmt: skip
def test_cases_of_says_what_is_wrong_with_a_row(row: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=r"Cannot score with code because .*" + why):
        cases_of(row, None)
