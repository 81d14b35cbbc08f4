"""
Reads complete values: what the engine sends has every field, with the right type, and no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_type_hints

from holdfast_worker.operation import BadDataError, OperationIO
from holdfast_worker.wire.check import Check, object_check

if TYPE_CHECKING:
    from typing import Self


class Whole:
    """
    Base of the dataclasses in `wire.types`: no field has a default. `from_` is `from` on the line.
    """

    @classmethod
    def of(cls, value: object) -> Self:
        """
        Raises BadDataError if a field is missing, unknown or of a different type: engine and worker
        then have different versions.
        """
        names, check = _declared(cls)
        misfit = check(value)
        if misfit:
            raise BadDataError(
                f"Cannot read {cls.__name__} because {misfit.where[1:] or 'it'} {misfit.what}. "
                "Engine and worker are of different versions. Fix: start both from the same "
                "installation"
            )
        fields = cast("Mapping[str, Any]", value)
        return cls(*(fields[name] for name in names))


@cache
def _declared(cls: type[Whole]) -> tuple[list[str], Check]:
    """A class's fields as transmitted, in order, and the check of a value."""
    hints = {
        name.removesuffix("_"): hint
        for name, hint in get_type_hints(cls, include_extras=True).items()
    }
    return list(hints), object_check(hints)


# With what came off the line: arguments that nobody has checked, and an answer to be written.
RankOperation = Callable[[object, OperationIO], Mapping[str, object]]
Arguments = TypeVar("Arguments", bound=Whole)


def typed(
    arguments: type[Arguments], operation: Callable[[Arguments, OperationIO], Mapping[str, object]]
) -> RankOperation:
    """The operation as a rank calls it: with the received values."""
    return lambda args, io: dict(operation(arguments.of(args), io))
