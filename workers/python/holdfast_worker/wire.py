"""Reading of whole values: what the engine sends has every field, of its type, and no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from holdfast_worker.operation import BadDataError, OperationIO
from holdfast_worker.wire_check import Check, object_check

if TYPE_CHECKING:
    from typing import Self


class Whole:
    """
    Base of the dataclasses in `wire_types`: no field has a default. `from_` is `from` on the line.
    """

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Self:
        """
        Raises BadDataError if a field is missing, unknown or of another type: engine and worker are
        then of different versions.
        """
        names, check = _declared(cls)
        misfit = check(value)
        if misfit:
            raise BadDataError(
                f"Cannot read {cls.__name__} because {misfit.where[1:] or 'it'} {misfit.what}. "
                "Engine and worker are of different versions. Fix: start both from the same "
                "installation"
            )
        return cls(*(value[name] for name in names))


@cache
def _declared(cls: type[Whole]) -> tuple[list[str], Check]:
    """A class's fields as they are on the line, in order, and the check of a value."""
    hints = {
        name.removesuffix("_"): hint
        for name, hint in get_type_hints(cls, include_extras=True).items()
    }
    return list(hints), object_check(hints)


RankOperation = Callable[[dict[str, Any], OperationIO], dict[str, Any]]
Arguments = TypeVar("Arguments", bound=Whole)


def typed(
    arguments: type[Arguments], operation: Callable[[Arguments, OperationIO], Mapping[str, Any]]
) -> RankOperation:
    """The operation as a rank calls it: with what came off the line."""
    return lambda args, io: dict(operation(arguments.of(args), io))
