"""Whether what a program printed or returned is what was wanted."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any, cast

from holdfast_worker.rewards.sandbox.values import is_dict, is_list

DIGITS_MAX = 1000


def same_output(printed: str, wanted: str) -> bool:
    """Line by line, without white space at the ends of lines and of the text. Words are equal as
    texts or as decimal numbers.
    """
    lines, others = printed.strip().splitlines(), wanted.strip().splitlines()
    return len(lines) == len(others) and all(map(_same_line, lines, others))


def _same_line(line: str, other: str) -> bool:
    if line.strip() == other.strip():
        return True
    words, others = line.split(), other.split()
    return len(words) == len(others) and all(map(_same_word, words, others))


def _same_word(word: str, other: str) -> bool:
    if word == other:
        return True
    if max(len(word), len(other)) > DIGITS_MAX:
        return False
    try:
        one, two = Decimal(word), Decimal(other)
    except InvalidOperation:
        return False
    return one.is_finite() and two.is_finite() and one == two


def same_value(returned: Any, wanted: Any) -> bool:
    """`wanted` came from JSON, which has no tuples and only texts as keys."""
    return _as_json(returned) == _as_json(wanted)


def _as_json(value: Any) -> Any:
    if isinstance(value, tuple) or is_list(value):
        return [_as_json(one) for one in cast("list[Any]", value)]
    if is_dict(value):
        return {str(key): _as_json(one) for key, one in value.items()}
    return (type(value) is bool, value) if isinstance(value, bool | int | float) else value
