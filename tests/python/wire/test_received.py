"""Values off the line are of the declared types, or refused by place and what belongs there."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal

import pytest
from msgspec import UNSET, Meta, UnsetType, field

from holdfast_worker.json_value import JsonValue, Number
from holdfast_worker.operation import BadDataError
from holdfast_worker.wire.received import OneOf, Received, decode, plain


class Inner(Received, frozen=True, kw_only=True):
    n: int
    label: str | UnsetType = UNSET


class Square(Received, frozen=True, kw_only=True, tag_field="kind", tag="square"):
    side: Number


class Circle(Received, frozen=True, kw_only=True, tag_field="kind", tag="circle"):
    radius: Number


class Payload(OneOf, frozen=True, kw_only=True):
    json: str | UnsetType = UNSET
    blob: int | UnsetType = UNSET


class Outer(Received, frozen=True, kw_only=True):
    items: list[Inner]
    one: Inner | None
    from_: str = field(name="from")


OUTER = {"items": [{"n": 1}], "one": None, "from": "v0"}


def said(hint: Any, value: Any) -> str:
    with pytest.raises(BadDataError) as caught:
        decode(hint, value, called="it")
    found = re.fullmatch(
        r"Cannot read it because (.*)\. Engine and worker are of different versions\. "
        r"Fix: start both from the same installation",
        str(caught.value),
    )
    assert found
    return found[1]


@pytest.mark.parametrize(
    ("hint", "values"),
    [
        (str, ["", "a", "\ud800"]),
        (bool, [True, False]),
        (int, [0, -1, 2**53, 2**70]),
        (Number, [0, 0.5, 2**70, 1e308]),
        (Literal["a", "b"], ["a", "b"]),
        (str | None, ["a", None]),
        (list[Number], [[], [1, 2.5]]),
        (dict[str, int], [{}, {"a": 1}]),
        (Literal["all"] | list[str], ["all", ["q"]]),
        (JsonValue, [None, True, 1, 2**70, 0.5, "a", [1, "a"], {"a": [{}]}]),
        (dict[str, JsonValue], [{"field": [1, None]}]),
    ],
)
def test_a_plain_value_passes_unchanged(hint: Any, values: list[Any]) -> None:
    read = [decode(hint, value) for value in values]
    assert read == values
    assert [type(one) for one in read] == [type(value) for value in values]


def test_a_whole_number_stays_whole_wherever_a_number_is_meant() -> None:
    read = decode(dict[str, list[Number]], json.loads('{"a": [1, 1.0, -0.0, 1e21]}'))
    assert json.dumps(read) == '{"a": [1, 1.0, -0.0, 1e+21]}'


def test_an_object_is_an_instance_of_its_class() -> None:
    read = decode(Outer, {**OUTER, "items": [{"n": 1}, {"n": 2, "label": "x"}], "one": {"n": 3}})
    assert read == Outer(items=[Inner(n=1), Inner(n=2, label="x")], one=Inner(n=3), from_="v0")
    assert plain(decode(Outer, OUTER)) == OUTER
    with pytest.raises(AttributeError):
        read.one = None  # type: ignore[misc]


def test_the_tag_says_which_class_of_a_union_is_meant() -> None:
    read = decode(
        dict[str, Square | Circle],
        {"a": {"kind": "square", "side": 1}, "b": {"kind": "circle", "radius": 0.5}},
    )
    assert read == {"a": Square(side=1), "b": Circle(radius=0.5)}


def test_a_field_that_was_left_out_is_unset() -> None:
    assert decode(Inner, {"n": 1}).label is UNSET
    assert plain(UNSET) is None


WRONG: list[tuple[Any, Any, str]] = [
    (str, 1, "it is wrong: Expected `str`, got `int`"),
    (int, 1.5, "it is wrong: Expected `int`, got `float`"),
    (int, 1.0, "it is wrong: Expected `int`, got `float`"),
    (int, True, "it is wrong: Expected `int`, got `bool`"),
    (int, float("nan"), "it is wrong: Expected `int`, got `float`"),
    (Number, False, "it is wrong: Expected `int | float`, got `bool`"),
    (Number, "0.1", "it is wrong: Expected `int | float`, got `str`"),
    (bool, 1, "it is wrong: Expected `bool`, got `int`"),
    (bool, None, "it is wrong: Expected `bool`, got `null`"),
    (Literal["a", "b"], "c", "it is wrong: Invalid enum value 'c'"),
    (str | None, 1, "it is wrong: Expected `str | null`, got `int`"),
    (list[str], "ab", "it is wrong: Expected `array`, got `str`"),
    (list[Number], [1, "2", 3], "[1] is wrong: Expected `int | float`, got `str`"),
    (dict[str, int], {"a": 1, "b": None}, "[...] is wrong: Expected `int`, got `null`"),
    (dict[str, int], [], "it is wrong: Expected `object`, got `array`"),
    (Literal["all"] | list[str], "some", "it is wrong: Invalid enum value 'some'"),
    (Inner, [], "it is wrong: Expected `object`, got `array`"),
    (Inner, {"label": "x"}, "it is wrong: Object missing required field `n`"),
    (Inner, {"n": 1, "m": 2}, "it is wrong: Object contains unknown field `m`"),
    (Inner, {"n": 1, "label": None}, "label is wrong: Expected `str`, got `null`"),
    (
        Outer,
        {**OUTER, "items": [{"n": 1}, {"n": "2"}]},
        "items[1].n is wrong: Expected `int`, got `str`",
    ),
    (
        Outer,
        {**OUTER, "items": [{"n": 1}, {"n": 2, "m": 3}]},
        "items[1] is wrong: Object contains unknown field `m`",
    ),
    (Outer, {**OUTER, "one": {}}, "one is wrong: Object missing required field `n`"),
    (Outer, {**OUTER, "from_": "v0"}, "it is wrong: Object contains unknown field `from_`"),
    (
        list[Square | Circle],
        [{"kind": "circle", "radius": "1"}],
        "[0].radius is wrong: Expected `int | float`, got `str`",
    ),
    (
        list[Square | Circle],
        [{"kind": "circle", "radius": 1, "side": 1}],
        "[0] is wrong: Object contains unknown field `side`",
    ),
    (
        list[Square | Circle],
        [{"kind": "line"}],
        "[0].kind is wrong: Invalid value 'line'",
    ),
    (
        Square | Circle,
        {"radius": 1},
        "it is wrong: Object missing required field `kind`",
    ),
    (
        list[Payload],
        [{}],
        "[0] is wrong: Object needs exactly one of the fields json, blob",
    ),
    (
        Payload,
        {"json": "{}", "blob": 1},
        "it is wrong: Object needs exactly one of the fields json, blob",
    ),
    (Payload, {"text": ""}, "it is wrong: Object contains unknown field `text`"),
    (
        Annotated[int, Meta(gt=0)],
        0,
        "it is wrong: Expected `int` >= 1",
    ),
]


@pytest.mark.parametrize(("hint", "value", "words"), WRONG)
def test_a_wrong_value_is_named_with_its_place_and_what_belongs_there(
    hint: Any, value: Any, words: str
) -> None:
    assert said(hint, value) == words


def test_a_class_is_called_by_its_name() -> None:
    with pytest.raises(BadDataError, match="^Cannot read Inner because it is wrong: "):
        decode(Inner, None)
