"""
Checks received values against the types that `wire.types` declares. A type is resolved once into a
check of its values; a list of plain values is checked as a whole because it may be long.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    NotRequired,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

VALUE_CHARS_MAX = 60
# What JSON's plain values are in Python, and what people call them. A whole number is a number.
PLAIN: dict[Any, tuple[frozenset[type], str]] = {
    str: (frozenset({str}), "text"),
    bool: (frozenset({bool}), "true or false"),
    int: (frozenset({int}), "a whole number"),
    float: (frozenset({int, float}), "a number"),
    NoneType: (frozenset({NoneType}), "null"),
}


class Misfit:
    """
    A value of the wrong type, or an object with `wrong` fields. `where`: its place inside the
    checked value, such as `.betas[0]`. The text is created only if it is shown: an option of a
    union that does not match is not an error.
    """

    def __init__(self, value: Any, hint: Any, wrong: str = "") -> None:
        self.where = ""
        self.is_inside = bool(wrong)  # Of a value of the right kind.
        self._value, self._hint, self._wrong = value, hint, wrong

    def below(self, place: str) -> Misfit:
        self.where = place + self.where
        self.is_inside = True
        return self

    @property
    def what(self) -> str:
        return self._wrong or f"is {_shown(self._value)}, not {_called(self._hint)}"


Check = Callable[[Any], Misfit | None]


@cache
def check_of(hint: Any) -> Check:
    """The check of a type as `wire.types` spells it."""
    parts = get_args(hint)
    match get_origin(hint):
        case None if hint in PLAIN:
            return _plain(hint)
        case None if hint is Any:
            return lambda value: None
        case None if is_typeddict(hint):
            return object_check(get_type_hints(hint, include_extras=True))
        case origin if origin is list:
            return _list(parts[0])
        case origin if origin is dict:
            return _dict(parts[1])
        case origin if origin is NotRequired:
            return check_of(parts[0])
        case origin if origin is Literal:
            return lambda value: None if value in parts else Misfit(value, hint)
        case origin if origin in (Union, UnionType):
            return _union(hint)
        case _:
            raise TypeError(f"Cannot check values of {hint} because no rule is known for it")


def object_check(hints: Mapping[str, Any]) -> Check:
    """The check of an object with exactly these fields, except for those that are `NotRequired`."""
    checks = {name: check_of(hint) for name, hint in hints.items()}
    required = [name for name, hint in hints.items() if get_origin(hint) is not NotRequired]

    def check(value: Any) -> Misfit | None:
        if type(value) is not dict:
            return Misfit(value, dict)
        fields = cast("dict[str, object]", value)
        for name in required:
            if name not in fields:
                return Misfit(value, dict, f"has no field '{name}'")
        for name, one in fields.items():
            if name not in checks:
                return Misfit(value, dict, f"has an unknown field '{name}'")
            if misfit := checks[name](one):
                return misfit.below(f".{name}")
        return None

    return check


def _plain(hint: Any) -> Check:
    kinds, _ = PLAIN[hint]
    return lambda value: None if type(value) in kinds else Misfit(value, hint)


def _list(hint: Any) -> Check:
    item = check_of(hint)
    kinds = PLAIN[hint][0] if hint in PLAIN else None

    def check(value: Any) -> Misfit | None:
        if type(value) is not list:
            return Misfit(value, list)
        items = cast("list[Any]", value)
        if kinds is not None and kinds.issuperset(map(type, items)):
            return None
        for place, one in enumerate(items):
            if misfit := item(one):
                return misfit.below(f"[{place}]")
        return None

    return check


def _dict(hint: Any) -> Check:
    item = check_of(hint)

    def check(value: Any) -> Misfit | None:
        if type(value) is not dict:
            return Misfit(value, dict)
        if hint is Any:
            return None
        fields = cast("dict[str, object]", value)
        for name, one in fields.items():
            if misfit := item(one):
                return misfit.below(f".{name}")
        return None

    return check


def _union(hint: Any) -> Check:
    options = [check_of(option) for option in get_args(hint)]

    def check(value: Any) -> Misfit | None:
        misfits: list[Misfit] = []
        for option in options:
            misfit = option(value)
            if misfit is None:
                return None
            misfits.append(misfit)
        # A value that is wrong only inside was the intended option.
        inside = [misfit for misfit in misfits if misfit.is_inside]
        return inside[0] if len(inside) == 1 else Misfit(value, hint)

    return check


def _called(hint: Any) -> str:
    if hint in PLAIN:
        return PLAIN[hint][1]
    if get_origin(hint) is Literal:
        return " or ".join(map(_shown, get_args(hint)))
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(_called, get_args(hint))))
    return "a list" if list in (hint, get_origin(hint)) else "an object"


def _shown(value: Any) -> str:
    """As JSON, shortened."""
    text = json.dumps(value, default=repr)
    return text if len(text) <= VALUE_CHARS_MAX else f"{text[:VALUE_CHARS_MAX]}..."
