"""The one reader of what comes off a line: every class here is whole, and nothing else passes."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from holdfast_worker.operation import BadDataError

T = TypeVar("T")


class Received(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of the classes that are generated from the engine's declarations."""


class OneOf(Received, frozen=True):
    """An object with exactly one of its fields."""

    def __post_init__(self) -> None:
        fields = self.__struct_fields__
        if sum(getattr(self, name) is not msgspec.UNSET for name in fields) != 1:
            raise ValueError(f"Object needs exactly one of the fields {', '.join(fields)}")


def decode(kind: type[T], received: object, *, called: str | None = None) -> T:
    """
    A value of JSON or MessagePack as an instance of `kind`. Nothing is converted: a number is no
    text, and true is no number. `called`: the kind in messages; None: by its name.

    Raises BadDataError if a field is missing, unknown or of a different type: engine and worker
    then have different versions.
    """
    try:
        return msgspec.convert(received, kind)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        where = place.rstrip("`").removeprefix(".") or "it"
        raise BadDataError(
            f"Cannot read {called or kind.__name__} because {where} is wrong: {what}. Engine and "
            "worker are of different versions. Fix: start both from the same installation"
        ) from None


def plain(value: object) -> Any:
    """As it came off the line, for templates and libraries. None: it was left out."""
    return None if value is msgspec.UNSET else msgspec.to_builtins(value)
