"""Values off the line are of the declared types, or refused by place, value and what belongs there."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

import pytest

from holdfast_worker.wire.check import check_of


class Inner(TypedDict):
    n: int
    label: NotRequired[str]


class Other(TypedDict):
    text: str


class Outer(TypedDict):
    items: list[Inner]
    one: Inner | None


def said(hint: Any, value: Any) -> str | None:
    misfit = check_of(hint)(value)
    return misfit and f"{misfit.where} {misfit.what}"


@pytest.mark.parametrize(
    ("hint", "values"),
    [
        (str, ["", "a"]),
        (bool, [True, False]),
        (int, [0, -1, 2**53]),
        (float, [0, 0.5]),
        (Any, [None, 1, [object()]]),
        (Literal["a", "b"], ["a", "b"]),
        (str | None, ["a", None]),
        (list[float], [[], [1, 2.5]]),
        (dict[str, int], [{}, {"a": 1}]),
        (dict[str, Any], [{"a": object()}]),
        (Literal["all"] | list[str], ["all", ["q"]]),
        (str | list[Inner], ["text", [{"n": 1}]]),
        (Inner, [{"n": 1}, {"n": 1, "label": "x"}]),
        (Inner | Other, [{"n": 1}, {"text": "x"}]),
        (Outer, [{"items": [{"n": 1}], "one": None}]),
    ],
)
def test_values_of_the_type_pass(hint: Any, values: list[Any]) -> None:
    assert [said(hint, value) for value in values] == [None] * len(values)


@pytest.mark.parametrize(
    ("hint", "value", "words"),
    [
        (str, 1, " is 1, not text"),
        (int, 1.5, " is 1.5, not a whole number"),
        (int, True, " is true, not a whole number"),
        (float, False, " is false, not a number"),
        (float, "0.1", ' is "0.1", not a number'),
        (bool, 1, " is 1, not true or false"),
        (bool, None, " is null, not true or false"),
        (Literal["a", "b"], "c", ' is "c", not "a" or "b"'),
        (str | None, 1, " is 1, not text or null"),
        (list[str], "ab", ' is "ab", not a list'),
        (list[float], [1, "2", 3], '[1] is "2", not a number'),
        (dict[str, int], {"a": 1, "b": None}, ".b is null, not a whole number"),
        (dict[str, int], [], " is [], not an object"),
        (Literal["all"] | list[str], "some", ' is "some", not "all" or a list'),
        (Inner, [], " is [], not an object"),
        (Inner, {"label": "x"}, " has no field 'n'"),
        (Inner, {"n": 1, "m": 2}, " has an unknown field 'm'"),
        (Inner, {"n": 1, "label": None}, ".label is null, not text"),
        (
            Outer,
            {"items": [{"n": 1}, {"n": "2"}], "one": None},
            '.items[1].n is "2", not a whole number',
        ),
        (Outer, {"items": [], "one": {"n": "2"}}, '.one.n is "2", not a whole number'),
        (Outer, {"items": [], "one": {}}, ".one has no field 'n'"),
        (str, ["x" * 100], f' is ["{"x" * 58}..., not text'),
    ],
)
def test_a_wrong_value_is_named_with_its_place_and_what_belongs_there(
    hint: Any, value: Any, words: str
) -> None:
    assert said(hint, value) == words


def test_a_type_without_a_rule_is_a_mistake_of_the_declaration() -> None:
    with pytest.raises(TypeError, match="Cannot check values of <class 'bytes'>"):
        check_of(list[bytes])


def test_a_type_is_resolved_once() -> None:
    assert check_of(list[int]) is check_of(list[int])
