"""Whether a program gave what was wanted."""

from typing import Any

import pytest

from holdfast_worker.rewards.graders.code_compare import same_output, same_value


@pytest.mark.parametrize(
    ("printed", "wanted", "same"),
    [
        ("1 2\n3\n\n", "1 2  \n3", True),
        ("1.0 x", "1 x", True),
        ("1e400000000", "1e400000001", False),
        ("nan", "NaN", False),
        ("1\n\n2", "1\n2", False),
        ("a", "A", False),
        ("1" * 2000, "1" * 2000, True),
        ("1" * 2000, "1" * 2000 + ".0", False),
        ("", "", True),
    ],
)
def test_same_output(printed: str, wanted: str, same: bool) -> None:
    assert same_output(printed, wanted) is same


@pytest.mark.parametrize(
    ("returned", "wanted", "same"),
    [
        ((1, [2]), [1, [2]], True),
        ({1: 2}, {"1": 2}, True),
        (1.0, 1, True),
        (True, 1, False),
        ("1", 1, False),
        (None, None, True),
    ],
)
def test_same_value(returned: Any, wanted: Any, same: bool) -> None:
    assert same_value(returned, wanted) is same
