"""Values between a program and its tests: plain ones as they are, others as references."""

from __future__ import annotations

import collections
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from holdfast_worker.rewards.sandbox.values import (
    BadMessage,
    Held,
    decode,
    decode_error,
    encode,
    encode_error,
)


def there_and_back(value: Any) -> Any:
    held = Held()
    return decode(encode(value, lambda one: {"ref": held.put(one)}), lambda _, n: held.get(n))


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 1, 1.5, "a\ud800", 10**4000, b"\0x", 2j, Fraction(1, 3), Decimal("0.1")),
        *([1, [2]], (1, (2,)), {1, 2}, frozenset([1]), collections.deque([1]), range(3)),
        {(1, 2): {"a": [None]}},
    ],
)
def test_plain_values_come_back_as_they_are(value: Any) -> None:
    back = there_and_back(value)
    assert (type(back), back) == (type(value), value)


def test_a_subclass_is_what_its_base_says_and_not_what_it_says() -> None:
    class Liar(int):
        def __eq__(self, other: object) -> bool:
            return True

        def __int__(self) -> int:
            return 4

        __hash__ = int.__hash__

    class Numbers(list[int]):
        def __iter__(self) -> Any:
            return iter([4])

    assert there_and_back(Liar(3)) == 3
    assert type(there_and_back(Liar(3))) is int
    assert there_and_back(Numbers([1])) == [1]


def test_what_has_no_plain_form_stays_where_it_is() -> None:
    thing = object()
    assert there_and_back([thing])[0] is thing
    assert encode(len, lambda _: {"ref": 1}) == {"ref": 1}


@pytest.mark.parametrize(
    "data",
    [
        {},
        [1],
        {"list": 1},
        {"a": 1, "b": 2},
        {"complex": [1, 2, 3]},
        {"dict": [[1]]},
        {"eval": "1"},
    ],
)
def test_what_is_no_value_is_refused(data: Any) -> None:
    with pytest.raises(BadMessage):
        decode(data, lambda *_: Held().get(0))


def test_an_error_is_the_nearest_class_that_this_side_has() -> None:
    class Own(KeyError):
        pass

    said = encode_error(Own("x"))
    assert type(decode_error(said, {})) is KeyError
    assert type(decode_error(said, {"Own": Own})) is Own
    assert type(decode_error("nonsense", {})) is RuntimeError
    assert type(decode_error({"classes": ["eval", "print"]}, {})) is RuntimeError
