"""Sizes that both ends of the line hold to."""

from __future__ import annotations

import math
import re
from pathlib import Path

from holdfast_worker import limits

ROOM = Path(__file__).parents[2] / "workers" / "line"


def _number(text: str) -> int:
    """`4 * 1024` or `2 ** 30`."""
    if "**" in text:
        base, exponent = text.split("**")
        return int(base) ** int(exponent)
    return math.prod(int(factor) for factor in text.split("*"))


def test_python_has_every_limit_of_the_engine_with_its_value() -> None:
    text = (ROOM / "limits.ts").read_text()
    found = re.findall(r"^  (\w+): ([\d *]+),$", text, re.MULTILINE)
    expected = {name.upper(): _number(value) for name, value in found}
    assert len(expected) == 5
    assert {name: getattr(limits, name) for name in expected} == expected
