"""How a rank calls an operation: with what came off the line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from holdfast_worker.operation import OperationIO
from holdfast_worker.wire.received import Received, decode

# With what came off the line: arguments that nobody has checked, and an answer to be written.
RankOperation = Callable[[object, OperationIO], Mapping[str, object]]
Arguments = TypeVar("Arguments", bound=Received)


def typed(
    arguments: type[Arguments], operation: Callable[[Arguments, OperationIO], Mapping[str, object]]
) -> RankOperation:
    """The operation as a rank calls it: with the received values."""
    return lambda args, io: dict(operation(decode(arguments, args), io))
