"""How a program's functions and the tests that call them talk, each in a separate interpreter.

This file runs inside of sandboxes: it imports only the standard library. Values travel as what they
are made of (numbers, texts, lists, ...), never as objects with code. What has no such form stays
where it is, and the other side holds a reference. The side of the tests therefore compares plain
values with plain values, which no `__eq__` of a program can answer for.
"""

from __future__ import annotations

import base64
import builtins
import collections
import decimal
import fractions
import sys
from collections.abc import Callable
from typing import Any, TypeGuard, cast

DEPTH_MAX = 200
sys.set_int_max_str_digits(100_000)

Encoded = Any  # What JSON has.


def is_dict(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


class BadMessage(Exception):
    """The other side wrote what is no value."""


class Held:
    """Objects of this side that the other side has references to."""

    def __init__(self) -> None:
        self._by_number: dict[int, Any] = {}

    def put(self, value: Any) -> int:
        number = id(value)
        self._by_number[number] = value  # It lives as long as this, so its id is its own.
        return number

    def get(self, number: object) -> Any:
        if not isinstance(number, int) or number not in self._by_number:
            raise BadMessage("no such object")
        return self._by_number[number]


def encode(value: Any, put: Callable[[Any], dict[str, Encoded]], depth: int = 0) -> Encoded:
    """`put` gives what has no plain form its reference. A subclass of a plain type is encoded as
    that type, by that type's own methods.
    """
    kind: Any = cast("Any", type)(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if depth > DEPTH_MAX:
        raise RecursionError("a value is nested too deeply")

    def inner(one: Any) -> Encoded:
        return encode(one, put, depth + 1)

    if _is_code(value):
        return put(value)
    for plain in (int, float, str):
        if issubclass(kind, plain):
            return cast("Any", plain).__new__(plain, _base_of(plain, value))
    for name, plain in SEQUENCES.items():
        if issubclass(kind, plain):
            return {name: [inner(one) for one in cast("Any", plain).__iter__(value)]}
    if issubclass(kind, dict):
        pairs = cast("Any", dict).items(value)
        return {"dict": [[inner(key), inner(one)] for key, one in pairs]}
    if issubclass(kind, (bytes, bytearray)):
        return {"bytes": base64.b64encode(bytes(memoryview(value))).decode()}
    if kind is complex:
        return {"complex": [value.real, value.imag]}
    if kind is fractions.Fraction:
        return {"fraction": [value.numerator, value.denominator]}
    if kind is decimal.Decimal:
        return {"decimal": str(value)}
    if kind is range:
        return {"range": [value.start, value.stop, value.step]}
    if kind.__module__ == "numpy":
        return inner(value.tolist())  # A number, or lists of numbers.
    return put(value)


SEQUENCES: dict[str, type] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "deque": collections.deque,
}


def _is_code(value: object) -> bool:
    return isinstance(value, type) or (callable(value) and not isinstance(value, dict))


def _base_of(plain: type, value: Any) -> Any:
    if plain is str:
        return str.__str__(value)
    return int.__int__(value) if plain is int else float.__float__(value)


def decode(data: Encoded, get: Callable[[str, Any], Any], depth: int = 0) -> Any:
    """`get` gives a reference its object. Raises BadMessage."""
    if data is None or type(data) in (bool, int, float, str):
        return data
    if depth > DEPTH_MAX or not is_dict(data) or len(data) != 1:
        raise BadMessage("no value")
    ((name, inner),) = data.items()

    def each(many: Any) -> list[Any]:
        if not is_list(many):
            raise BadMessage("no list of values")
        return [decode(one, get, depth + 1) for one in many]

    try:
        if name in SEQUENCES:
            return SEQUENCES[name](each(inner))
        match name:
            case "dict":
                return dict(each(pair) for pair in inner)
            case "bytes":
                return base64.b64decode(inner)
            case "complex":
                return complex(*inner)
            case "fraction":
                return fractions.Fraction(*inner)
            case "decimal":
                return decimal.Decimal(inner)
            case "range":
                return range(*inner)
            case _:
                return get(name, inner)
    except BadMessage:
        raise
    except Exception as error:
        raise BadMessage(f"no {name}: {error}") from None


def encode_error(error: BaseException) -> Encoded:
    """The names of its classes, the nearest first, and its message."""
    try:
        text = str(error)[:1000]
    except BaseException:
        text = ""
    return {"classes": [kind.__name__ for kind in type(error).__mro__], "text": text}


def decode_error(data: Encoded, known: dict[str, type[BaseException]]) -> BaseException:
    """The nearest class that this side has: of `known`, or a builtin one."""
    fields = data if is_dict(data) else {}
    names = fields.get("classes")
    for name in names if is_list(names) else []:
        found: Any = known.get(str(name)) or getattr(builtins, str(name), None)
        if isinstance(found, type) and issubclass(found, BaseException):
            try:
                return found(str(fields.get("text", "")))
            except Exception:
                continue
    return RuntimeError("the program raised what is no exception")
