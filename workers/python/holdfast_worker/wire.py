"""Reading of whole values: what the engine sends has every field, and no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast_worker.operation import BadDataError, OperationIO

if TYPE_CHECKING:
    from typing import Self


class Whole:
    """Base of the dataclasses in `wire_types`: no field has a default. `from_` is `from` on the line."""

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Self:
        """Raises BadDataError if a field is missing or unknown: engine and worker are then of different versions."""
        names = [field.name.removesuffix("_") for field in fields(cls)]  # pyright: ignore[reportArgumentType]
        missing = [name for name in names if name not in value]
        unknown = sorted(set(value) - set(names))
        if missing or unknown:
            what = f"it has no field '{missing[0]}'" if missing else f"it has an unknown field '{unknown[0]}'"
            raise BadDataError(
                f"Cannot read {cls.__name__} because {what}. Engine and worker are of different versions. Fix: start "
                "both from the same installation"
            )
        return cls(*(value[name] for name in names))


Arguments = TypeVar("Arguments", bound=Whole)


def typed(
    arguments: type[Arguments], operation: Callable[[Arguments, OperationIO], Mapping[str, Any]]
) -> Callable[[dict[str, Any], OperationIO], dict[str, Any]]:
    """The operation as a rank calls it: with what came off the line."""
    return lambda args, io: dict(operation(arguments.of(args), io))
